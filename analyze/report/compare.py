"""Several traces at a glance, as plain data: one row a trace, amounts are medians of a forward."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from analyze.diff.comparability import share_outside_forwards
from analyze.diff.same_work import input_shapes
from analyze.engine.result import Finding, TraceReport, Uncaptured
from analyze.errors import AnalyzeError
from analyze.report.compare_words import unrelated
from analyze.report.summary import precision_split
from analyze.tables.build import Trace
from analyze.tables.captured import SHAPE_COLUMNS
from analyze.words import closest, printable

SCHEMA_VERSION = 1

_WORD = re.compile(r"[^\W\d_]+")
_GENERIC_WORD = re.compile(
    "traces?|workers?|ranks?|steps?|pt|kineto|profil(?:es?|ers?|ing)|logs?|te?mp|out(?:puts?)?"
    "|results?|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)
"""Of file names as profilers and scripts write them, and of the folders they write to."""

_SUFFIXES = (".gz", ".zst", ".json", ".trace", ".pt")
_TIMES = ("gpu_busy_us", "latency_us", "cpu_us")
"""What traces are ranked by: the first that all of them have."""

_NAMED = 8
"""Names of rows that a message lists."""

Row = dict[str, Any]


def compare(
    sides: Sequence[tuple[Trace, TraceReport]],
    absent: Sequence[Uncaptured] = (),
    baseline: str | None = None,
) -> Row:
    """Return the traces side by side; times are microseconds, sizes bytes, null is unknown.

    ``unlike`` says what keeps their times from being multiples of each other; then there are no
    relative times unless a baseline is asked for.

    Args:
        sides: traces, each with what the rules found in it.
        absent: captures without a trace.
        baseline: name of the row that the others are relative to; without it the fastest.

    Raises:
        AnalyzeError: there is no row of that name.
    """
    reports = [report for _, report in sides]
    names = unique_names(reports)
    rows = [
        {
            **glance(report),
            "name": name,
            "gpu_time_share_outside_forwards": share_outside_forwards(trace),
            **paths(trace),
            "capture_problem": trace.header.capture_problem,
            "lesson": _lesson(report),
        }
        for (trace, report), name in zip(sides, names, strict=True)
    ]
    unlike = unrelated(rows, [input_shapes(trace) for trace, _ in sides])
    return {
        "schema_version": SCHEMA_VERSION,
        "relative_to": add_relative(rows, baseline, is_related=not unlike or baseline is not None),
        "unlike": unlike,
        "traces": rows,
        "absent": [
            {"name": entry.name, "status": entry.status, "reason": entry.reason} for entry in absent
        ],
    }


def glance(report: TraceReport) -> Row:
    """Return what the report of a trace says at a glance.

    GPU amounts are null where no GPU work was launched in a forward; ``why_nothing`` says why no
    rule came to a verdict, null where one did.
    """
    coverage, median = report.coverage, report.coverage["forward_median"]
    notes: Mapping[str, Any] = coverage["capture"] or {}
    codes = [finding.code for finding in report.findings if finding.state != "benign"]
    return {
        "name": notes.get("name"),
        "trace": report.trace,
        "device": coverage["device"],
        "forward_is": coverage["forward_is"],
        "forwards": coverage["forwards"],
        "synthetic": coverage["synthetic"],
        "truncated": report.quality["truncated"],
        **{name: notes.get(name) for name in ("dtype", "phase", *SHAPE_COLUMNS)},
        "gpu_ops_per_forward": median["gpu_ops"],
        "kernels_per_forward": median["kernels"],
        "copies_per_forward": median["copies"],
        "gpu_busy_us": median["gpu_busy_us"],
        "communication_share": _communication_share(coverage),
        "cpu_us": median["cpu_us"],
        "latency_us": notes.get("latency_us"),
        "latency_p10_us": notes.get("latency_p10_us"),
        "latency_p90_us": notes.get("latency_p90_us"),
        "peak_bytes": notes.get("peak_bytes"),
        "numerics_ok": notes.get("numerics_ok"),
        "capture_status": notes.get("capture_status"),
        "capture_reason": notes.get("capture_reason"),
        "findings": list(dict.fromkeys(codes)),
        "why_nothing": report.why_nothing,
    }


def _communication_share(coverage: Mapping[str, Any]) -> float | None:
    """Return the share of the trace's GPU busy time that is communication; null for none."""
    communication = (coverage["gpu_time"] or {}).get("communication")
    return communication["share"] if communication else None


def unique_names(reports: Sequence[TraceReport]) -> list[str]:
    """Name each trace by its capture, its file, folder and file, or path: the first unique one.

    The folder goes before a file name that any trace could have, such as ``trace``, ``worker0``.
    """
    candidates = [_names(report) for report in reports]
    taken = Counter(name for names in candidates for name in set(names))
    return [next((name for name in names if taken[name] == 1), names[-1]) for names in candidates]


def _names(report: TraceReport) -> list[str]:
    captured = (report.coverage["capture"] or {}).get("name")
    file = _file_name(report.trace)
    folder = Path(report.trace).parent.name
    named = [] if captured is None else [captured]
    telling = [folder] if _says_nothing(file) and not _says_nothing(folder) else []
    return [*named, *telling, file, f"{folder}/{file}", report.trace]


def _says_nothing(name: str) -> bool:
    """Whether a name of a file or folder has only words that say nothing of what was recorded."""
    return all(map(_GENERIC_WORD.fullmatch, _WORD.findall(name.lower())))


def _file_name(trace: str) -> str:
    name = Path(trace).name
    while name.endswith(_SUFFIXES):
        name = name.rpartition(".")[0]
    return name or trace


def paths(trace: Trace) -> Row:
    """Return which precision path the trace takes, and the occupancy of its costliest kernel."""
    return {
        "vendor": trace.header.vendor,
        "precision_path": _precision_path(trace),
        "occupancy": _occupancy(trace),
    }


def _precision_path(trace: Trace) -> Row | None:
    """Return the costliest precision of matrix products, convolutions and attention.

    Its share is of the time of all these kernels, summed; null where there are none.
    """
    split = precision_split(trace)
    total = sum(part["time_us"] or 0 for part in split)
    if not total:
        return None
    costliest = split[0]  # times that are unknown come last
    return {
        "precision": costliest["precision"],
        "tensor_core": costliest["tensor_core"],
        "share": costliest["time_us"] / total,
    }


def _occupancy(trace: Trace) -> Row | None:
    """Return the median occupancies of the kernel, by name, with the most time."""
    kernels = trace.facts.gpu_ops.filter(pl.col("kind") == "kernel")
    costliest = (
        kernels.group_by("name")
        .agg(
            pl.col("short_name").first(),
            pl.col("occupancy_reported", "occupancy").median(),
            pl.col("dur_ns").sum(),
        )
        .sort("dur_ns", "name", descending=[True, False])
        .head(1)
    )
    if costliest.is_empty():
        return None
    row = costliest.row(0, named=True)
    return {
        "kernel": row["short_name"],
        "reported": row["occupancy_reported"],
        "recomputed": row["occupancy"],
        "share_of_kernel_time": row["dur_ns"] / (kernels["dur_ns"].sum() or 1),
    }


def _lesson(report: TraceReport) -> Row | None:
    """Return the top finding after folding; a benign one only where there is no other."""
    top = [finding for finding in report.findings if finding.explained_by is None]
    problems = [finding for finding in top if finding.state != "benign"]
    finding: Finding | None = next(iter([*problems, *top]), None)
    if finding is None:
        return None
    return {
        "code": finding.code,
        "state": finding.state,
        "severity": finding.severity,
        "title": finding.title,
        "message": finding.message,
        "because": finding.because,
    }


def add_relative(
    rows: Sequence[Row], baseline: str | None, *, is_related: bool = True
) -> Row | None:
    """Give each row its time relative to the baseline's; return what that is relative to.

    Args:
        rows: the traces at a glance; they are added to.
        baseline: name of the row that the others are relative to; without it the fastest.
        is_related: otherwise no row has a relative time.

    Raises:
        AnalyzeError: there is no row of that name.
    """
    known = (key for key in _TIMES if is_related and all(row[key] for row in rows))
    time = next(known, None)
    base = _baseline(rows, baseline, time)
    for row in rows:
        row["relative_time"] = row[time] / base[time] if base and time else None
    return {"name": base["name"], "time": time} if base and time else None


def _baseline(rows: Sequence[Row], name: str | None, time: str | None) -> Row | None:
    """Return the row that the others are relative to: the fastest whose results are not wrong.

    Raises:
        AnalyzeError: there is no row of the name given.
    """
    if name is not None:
        names = [row["name"] for row in rows]
        if name not in names:
            close = closest(name, names)
            known = ", ".join(map(printable, names[:_NAMED])) + ", ..." * (len(names) > _NAMED)
            hint = f"did you mean {printable(close)!r}?" if close else f"there are {known}"
            raise AnalyzeError(f"--baseline {printable(name)}: no such trace; {hint}")
        return rows[names.index(name)]
    right = [row for row in rows if row["numerics_ok"] is not False]
    return min(right, key=lambda row: row[time], default=None) if time else None
