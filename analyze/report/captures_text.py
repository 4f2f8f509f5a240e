"""Several captures side by side: the table below the reports of a capture folder."""

from collections.abc import Sequence

from rich.text import Text

from analyze.engine.result import TraceReport
from analyze.report.compare import glance
from analyze.report.compare_text import table_of_rows
from analyze.report.compare_words import NUMBERS, absence, differing_shapes
from analyze.report.console import buffer_console, rendered
from analyze.trace.capture_json import CaptureEntry

_HEADINGS = (
    "latency", "GPU busy", "kernels", "copies", "CPU", "peak memory", "numerics", "findings",
)  # fmt: skip


def render_captures(
    reports: Sequence[TraceReport], absent: Sequence[CaptureEntry], *, color: bool = False
) -> str:
    """Return a table with a row for each captured trace; nothing for fewer than two.

    Args:
        reports: in the order of the rows; those that ``capture`` did not write are left out.
        absent: captures without a trace; each gets a line with its reason.
        color: use terminal colours.
    """
    captured = [glance(report) for report in reports if report.coverage["capture"] is not None]
    if len(captured) + len(absent) < 2:
        return ""
    console = buffer_console(color=color)
    headings = [*differing_shapes(captured), *_HEADINGS]
    columns = {heading: NUMBERS[heading] for heading in headings}
    title = "\nCaptures side by side, medians of a forward"
    console.print(table_of_rows(title, "capture", columns, captured))
    for entry in absent:
        console.print(Text(absence(entry.name, entry.status, entry.reason)))
    return rendered(console)
