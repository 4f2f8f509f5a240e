"""In which traces a finding is the same: those of one captured workload, or of any name."""

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from analyze.engine.result import TraceReport
from analyze.words import printable

_SHAPE = {
    "batch": "b", "heads": "h", "kv_heads": "kv", "seq": "s", "seq_kv": "skv", "head_dim": "d",
}  # fmt: skip


def scope_of(report: TraceReport, *, by_trace: bool) -> str | None:
    """Return what a finding of a report is known by beside its fingerprint.

    A trace that ``capture`` wrote says itself which variant and workload it holds, so that captures
    do not hide each other's findings, and the file may have any name. Other traces have new names
    in every run of CI: what is known in one is known in all, unless file names are to count.

    Args:
        report: of the trace.
        by_trace: whether the names of files count.
    """
    notes = report.coverage["capture"]
    if notes is not None:
        return _workload(notes)
    return printable(PurePath(report.trace).name) if by_trace else None


def distinct_traces(reports: Sequence[TraceReport]) -> int:
    """Return of how many files the reports are: one that was given twice proves no more."""
    return len({os.path.realpath(report.trace) for report in reports})


def _workload(notes: Mapping[str, Any]) -> str:
    """Word a captured workload, like ``naive-forward-b2h4kv4s128skv128d32-bf16-causal``."""
    shape = "".join(f"{letter}{notes[name]}" for name, letter in _SHAPE.items() if notes[name])
    causal = "causal" if notes["causal"] else None
    parts = (notes["name"], notes["phase"], shape, notes["dtype"], causal)
    return printable("-".join(part for part in parts if part))
