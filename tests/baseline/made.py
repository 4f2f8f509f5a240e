"""Reports and findings made by hand."""

import dataclasses
from typing import Any

from analyze.engine.result import Checked, Finding, NotApplicable, TraceReport, UnitCount

NAIVE = {
    "name": "naive", "phase": "forward", "dtype": "bf16", "batch": 2, "heads": 4, "kv_heads": 4,
    "seq": 128, "seq_kv": 128, "head_dim": 32, "causal": True,
}  # fmt: skip
"""What ``capture`` notes about a trace, as coverage has it."""

FOUND = Finding(
    code="COPY101",
    name="hidden-memcpy",
    title="A copy",
    category="copies",
    state="mismatch",
    severity="warning",
    worst_severity="warning",
    worst_unit=0,
    guess="no copy",
    message="1 copy",
    fix=None,
    measures={"n": 1, "us": 100.0},
    group={},
    per="forward",
    units_total=10,
    units_mismatching=5,
    units_unknown=0,
    savings_us=100.0,
    savings_kind="upper_bound",
    savings_of="gpu",
    savings_share=0.1,
    confidence="high",
    status="stable",
    because=None,
    uncertain=(),
    evidence=(),
    places=(),
    places_total=0,
    source=None,
    known_problems=(),
    references=(),
    fingerprint="1" * 16,
)


def finding(**changed: Any) -> Finding:
    """Return a finding that differs from :data:`FOUND` in some attributes."""
    return dataclasses.replace(FOUND, **changed)


def report(
    *findings: Finding,
    trace: str = "trace.json",
    capture: dict[str, Any] | None = None,
    forward_is: str = "attn_fwd",
    passed: tuple[Checked, ...] = (),
    not_applicable: tuple[str, ...] = (),
    **quality: Any,
) -> TraceReport:
    """Return a report of a trace.

    Args:
        findings: of the trace.
        trace: its path.
        capture: what ``capture`` noted.
        forward_is: what a forward is in it.
        passed: rules that hold.
        not_applicable: codes of rules that could not be answered.
        quality: what is not well with the file.
    """
    return TraceReport(
        trace=trace,
        unit=UnitCount("attn_fwd", 10),
        coverage={"capture": capture, "forward_is": forward_is},
        quality={"truncated": False, "events_lost": 0, **quality},
        findings=findings,
        passed=passed,
        not_applicable=tuple(NotApplicable(code, "a-rule", "no GPU") for code in not_applicable),
    )
