"""Write a copy of a trace in which its findings can be seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from analyze.annotate.arrows import Targets, Thread
from analyze.annotate.events import FindingEvents
from analyze.annotate.free_numbers import NumbersInUse
from analyze.annotate.slices import slices_of
from analyze.annotate.tracks import tracks_of
from analyze.engine.result import TraceReport
from analyze.report.trace_file import write_trace
from analyze.tables.build import Trace
from analyze.tables.lost import KEY as LOST_KEY
from analyze.tables.noted import free_key
from analyze.trace.families import FINDINGS_CATEGORY
from analyze.trace.raw import raw_events
from analyze.trace.reader import Progress


@dataclass(frozen=True)
class Annotated:
    """What an annotated copy holds.

    Attributes:
        events: events of the trace itself.
        replaced: annotations of an earlier run that were left out.
        events_lost: events of the trace that are too damaged to read.
        slices, left_out: places of findings that are drawn, and that are not.
        tracks: threads they are on.
        arrows: slices with an arrow to the event they are about.
        repaired: the trace was not valid JSON.
        threads: process and thread of the first slice of each finding, by the finding's number.
    """

    events: int
    replaced: int
    events_lost: int
    slices: int
    left_out: int
    tracks: int
    arrows: int
    repaired: bool
    threads: Mapping[int, Thread]


def annotate(
    path: str | Path,
    output: Path,
    trace: Trace,
    report: TraceReport,
    progress: Progress | None = None,
) -> Annotated:
    """Copy the trace at ``path`` to ``output``, with the findings as a process of their own.

    Every intact event is copied by its own text. Events that an earlier run added are replaced.

    Args:
        path: the file that ``trace`` was read from.
        output: see :func:`analyze.report.trace_file.write_trace`.
        trace: its tables.
        report: its findings.
        progress: is told, now and then, how many bytes of the file have been read.

    Raises:
        TraceError: the file can no longer be read.
        AnalyzeError: the copy cannot be written.
    """
    slices = slices_of(report, trace)
    tracks = tracks_of(slices.kept)
    targets, numbers, replaced = Targets(slices.kept), NumbersInUse(), 0
    lost = trace.lost_of_file.as_note() or {}
    with (
        raw_events(path, progress) as raw,
        write_trace(output, raw.head_with(lost)) as document,
    ):
        for text, event in raw:
            if event.get("cat") == FINDINGS_CATEGORY:
                replaced += 1
                continue
            targets.see(event)
            numbers.see(event)
            document.write(text)
        events = document.events
        drawing = FindingEvents(report, tracks, numbers.threads.run(len(tracks) + 1))
        for text in drawing.texts(targets.found, numbers.arrows.run(len(targets.found))):
            document.write(text)
        document.tail = raw.tail_with({free_key(raw.metadata(), LOST_KEY): lost} if lost else {})
    return Annotated(
        events,
        replaced,
        raw.repairs.events_lost,
        len(slices.kept),
        slices.left_out,
        len(tracks),
        len(targets.found),
        raw.repairs.any,
        drawing.threads(),
    )
