"""Which moment of a trace the viewer is to show for a finding."""

from collections.abc import Mapping

from analyze.annotate.arrows import Thread
from analyze.annotate.slices import Slice, recorded_time, slices_of
from analyze.engine.result import TraceReport
from analyze.kernels.display import shorten
from analyze.report.finding_words import closing_line
from analyze.tables.build import Trace
from analyze.viewer.link import Moment
from analyze.words import duration, printable

_LONG_NAME = 60


def moment_of(
    number: int, report: TraceReport, trace: Trace, threads: Mapping[int, Thread] | None = None
) -> tuple[Slice, Moment]:
    """Return the first place of a finding, and the moment to show.

    Args:
        number: of the finding, from 1.
        report: the findings.
        trace: what they were found in.
        threads: where annotations are, by the number of the finding.
    """
    part = next(part for part in slices_of(report, trace).kept if part.number == number)
    first_ns, last_ns = recorded_time(trace)
    thread = (threads or {}).get(number, Thread(None, None))
    return part, Moment(part.start_ns, part.dur_ns, first_ns, last_ns, thread.pid, thread.tid)


def describe(report: TraceReport, part: Slice | None = None) -> str:
    """Say what the viewer shows, in one line."""
    if part is None:
        return f"{closing_line(report)}; the whole trace"
    finding = part.finding
    sentence = f"finding {part.number} of {len(report.findings)}, {finding.code} {finding.name}"
    if part.place is None:
        return f"{sentence}, about the whole trace"
    total = max(finding.places_total, len(finding.places))
    at_us = duration(part.place.start_us)
    name = part.place.name
    shown = printable(shorten(name) if len(name) > _LONG_NAME else name)
    return f"{sentence}, place 1 of {total:,}: {shown} at {at_us}"
