"""What was written into an annotated copy, as text."""

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from analyze.annotate.copying import Annotated
from analyze.annotate.events import PROCESS_NAME
from analyze.engine.result import TraceReport
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.report.finding_words import closing_line
from analyze.words import counted, printable


def render_annotated(output: Path, annotated: Annotated, report: TraceReport) -> str:
    """Return what the copy holds, and what is not in it."""
    console = buffer_console()
    console.print(Text(printable(str(output))))
    print_pairs(console, _lines(annotated, report))
    return rendered(console)


def _lines(annotated: Annotated, report: TraceReport) -> Iterator[tuple[str, str]]:
    yield "events", _events(annotated)
    yield "findings", closing_line(report)
    if annotated.slices:
        yield "drawn", _drawn(annotated)
    if annotated.left_out:
        places = counted(annotated.left_out, "place")
        yield "left out", f"{places} of findings; every finding has its first ones"
    yield "look", "drop the file on https://ui.perfetto.dev, or use `analyze open` on the trace"


def _events(annotated: Annotated) -> str:
    how = "repaired where it was damaged" if annotated.repaired else "unchanged"
    sentence = f"{annotated.events:,} of the trace, {how}"
    if annotated.replaced:
        sentence += f"; {annotated.replaced:,} of earlier annotations replaced"
    if annotated.events_lost:
        sentence += f"; {annotated.events_lost:,} too damaged to copy"
    return sentence


def _drawn(annotated: Annotated) -> str:
    slices, tracks = counted(annotated.slices, "slice"), counted(annotated.tracks, "thread")
    arrows = counted(annotated.arrows, "arrow")
    return f"{slices} on {tracks} of the process {PROCESS_NAME!r}, {arrows} to the events"
