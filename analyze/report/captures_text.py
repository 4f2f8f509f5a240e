"""Several captures side by side: the table below the reports of a capture folder."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.text import Text

from analyze.engine.result import TraceReport
from analyze.report.console import buffer_console, plain_table, rendered
from analyze.trace.capture_json import CaptureEntry
from analyze.words import duration, printable, size

Data = Mapping[str, Any]
NOTHING = "-"


def render_captures(
    reports: Sequence[TraceReport], absent: Sequence[CaptureEntry], *, color: bool = False
) -> str:
    """Return a table with a row for each captured trace; nothing for fewer than two.

    Args:
        reports: in the order of the rows; those that ``capture`` did not write are left out.
        absent: captures without a trace; each gets a line with its reason.
        color: use terminal colours.
    """
    captured = [report for report in reports if report.coverage["capture"] is not None]
    if len(captured) + len(absent) < 2:
        return ""
    console = buffer_console(color=color)
    columns = _columns(captured)
    table = plain_table("\nCaptures side by side, medians of a forward", *columns)
    for report in captured:
        table.add_row(*(Text(cell(report)) for cell in columns.values()))
    console.print(table)
    for entry in absent:
        reason = printable(entry.reason or "without a reason")
        console.print(Text(f"{printable(entry.name)}: {printable(entry.status)}: {reason}"))
    return rendered(console)


def _columns(captured: Sequence[TraceReport]) -> dict[str, Callable[[TraceReport], str]]:
    """Return the columns; the sequence length is shown where it differs."""
    columns: dict[str, Callable[[TraceReport], str]] = {
        "capture": lambda report: printable(_notes(report)["name"]),
        "seq": lambda report: _or_nothing(_notes(report)["seq"], str),
        "latency": lambda report: _or_nothing(_notes(report)["latency_us"], duration),
        "GPU busy": lambda report: _gpu(report, "gpu_busy_us", duration),
        "kernels": lambda report: _gpu(report, "kernels", _count),
        "copies": lambda report: _gpu(report, "copies", _count),
        "CPU": lambda report: _or_nothing(_median(report)["cpu_us"], duration),
        "peak memory": lambda report: _or_nothing(_notes(report)["peak_bytes"], size),
        "numerics": _numerics,
        "findings": _findings,
    }
    if len({_notes(report)["seq"] for report in captured}) < 2:
        del columns["seq"]
    return columns


def _notes(report: TraceReport) -> Data:
    notes: Data = report.coverage["capture"]
    return notes


def _median(report: TraceReport) -> Data:
    median: Data = report.coverage["forward_median"]
    return median


def _gpu(report: TraceReport, name: str, word: Callable[[Any], str]) -> str:
    """Word an amount of GPU work; without a recorded GPU it is unknown, not 0."""
    return _or_nothing(_median(report)[name], word) if report.coverage["gpu_ops"] else NOTHING


def _or_nothing(value: object, word: Callable[[Any], str]) -> str:
    return NOTHING if value is None else word(value)


def _count(value: float) -> str:
    return f"{value:g}"


def _numerics(report: TraceReport) -> str:
    return _or_nothing(_notes(report)["numerics_ok"], lambda ok: "ok" if ok else "WRONG")


def _findings(report: TraceReport) -> str:
    codes = [finding.code for finding in report.findings if finding.state != "benign"]
    return " ".join(dict.fromkeys(codes)) or "none"
