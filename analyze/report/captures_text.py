"""Several traces side by side: the table below their reports."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from analyze.engine.result import TraceReport, Uncaptured, uncaptured
from analyze.report.compare import Row, glance, unique_names
from analyze.report.compare_text import table_of_rows
from analyze.report.compare_words import (
    NUMBERS,
    Cell,
    absence,
    differing_shapes,
    medians_of,
    telling,
    unsteady_latencies,
)
from analyze.report.console import buffer_console, rendered

_HEADINGS = (
    "latency", "GPU busy", "communication", "kernels", "copies", "CPU", "peak memory", "numerics",
    "findings",
)  # fmt: skip
_RARE = "communication"


def render_captures(reports: Sequence[TraceReport], *, color: bool = False) -> str:
    """Return a table with a row for each captured trace; nothing for fewer than two.

    What could not be captured has a line below it, with the reason.

    Args:
        reports: in the order of the rows; those that ``capture`` did not write are left out.
        color: use terminal colours.
    """
    captured = [glance(report) for report in reports if report.coverage["capture"] is not None]
    absent = uncaptured(reports)
    if len(captured) + len(absent) < 2:
        return ""
    columns = {heading: NUMBERS[heading] for heading in _headings(captured)}
    title = f"\nCaptures side by side, {medians_of(captured)}"
    table = table_of_rows(title, "capture", columns, captured)
    return _rendered(table, captured, absent, color=color)


def render_traces(reports: Sequence[TraceReport], *, color: bool = False) -> str:
    """Return a table with a row for each trace, whoever recorded it; see :func:`side_by_side`."""
    if all(report.coverage["capture"] is not None for report in reports):
        return render_captures(reports, color=color)
    columns, rows = side_by_side(reports)
    table = table_of_rows(f"\n{traces_title(rows)}", "trace", columns, rows)
    return _rendered(table, rows, uncaptured(reports), color=color)


def traces_title(rows: Sequence[Row]) -> str:
    """Return the title above traces side by side."""
    return f"Traces side by side, {medians_of(rows)}"


def side_by_side(reports: Sequence[TraceReport]) -> tuple[dict[str, Cell], list[Row]]:
    """Return the traces at a glance, each under a name of its own, and columns to show of them.

    Columns in which no trace has something to say are left out.
    """
    names = unique_names(reports)
    rows = [{**glance(report), "name": name} for report, name in zip(reports, names, strict=True)]
    return telling({heading: NUMBERS[heading] for heading in _headings(rows)}, rows), rows


def _headings(rows: Sequence[Row]) -> list[str]:
    """Return the columns; one that few traces have anything for only where one of them has."""
    rare = telling({_RARE: NUMBERS[_RARE]}, rows)
    usual = (heading for heading in _HEADINGS if heading != _RARE or heading in rare)
    return [*differing_shapes(rows), *usual]


def _rendered(
    table: Table, rows: Sequence[Row], absent: Sequence[Uncaptured], *, color: bool
) -> str:
    console = buffer_console(color=color)
    console.print(table)
    for note in unsteady_latencies(rows):
        console.print(Text(note, style="dim"))
    for entry in absent:
        console.print(Text(absence(entry.name, entry.status, entry.reason)))
    return rendered(console)
