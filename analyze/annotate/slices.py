"""Findings as slices of time: one for each place of a finding."""

from dataclasses import dataclass

import polars as pl

from analyze.engine.result import Finding, Place, TraceReport
from analyze.tables.build import Trace

MAX_SLICES = 5_000
"""More than this draws nothing that anybody looks at, and makes the file large."""


@dataclass(frozen=True, eq=False)
class Slice:
    """One finding at one of its places.

    Attributes:
        number: of the finding in the report, from 1.
        finding: what was found.
        place: where; None where the finding is about the whole trace.
        place_number: of the place in the finding, from 1.
        start_ns: in the time of the file.
        dur_ns: 0 where the event has no duration.
    """

    number: int
    finding: Finding
    place: Place | None
    place_number: int
    start_ns: int
    dur_ns: int

    @property
    def end_ns(self) -> int:
        """The end in the time of the file."""
        return self.start_ns + self.dur_ns


@dataclass(frozen=True)
class Slices:
    """The slices of a report.

    Attributes:
        kept: in the order of the report.
        left_out: how many more there would have been.
    """

    kept: list[Slice]
    left_out: int


def slices_of(report: TraceReport, trace: Trace) -> Slices:
    """Return a slice for every place of every finding, at most :data:`MAX_SLICES`.

    Where there are more, every finding keeps its first place before any gets a second one.
    """
    numbered = enumerate(report.findings, start=1)
    slices = [part for number, finding in numbered for part in _slices(number, finding, trace)]
    by_importance = sorted(slices, key=lambda part: part.place_number > 1)
    kept = sorted(by_importance[:MAX_SLICES], key=lambda part: (part.number, part.place_number))
    return Slices(kept, len(slices) - len(kept))


def _slices(number: int, finding: Finding, trace: Trace) -> list[Slice]:
    if not finding.places:
        start_ns, end_ns = recorded_time(trace)
        return [Slice(number, finding, None, 1, start_ns, end_ns - start_ns)]
    return [
        Slice(number, finding, place, index, *_time(place, trace))
        for index, place in enumerate(finding.places, start=1)
    ]


def _time(place: Place, trace: Trace) -> tuple[int, int]:
    """Return start and duration in nanoseconds; rounding gives back the exact ones."""
    start_ns = trace.clock.origin_ns + round(place.start_us * 1000)
    return start_ns, round((place.dur_us or 0) * 1000)


def recorded_time(trace: Trace) -> tuple[int, int]:
    """Return when the first event of a trace starts and the last one ends, in file time."""
    facts, origin_ns = trace.facts, trace.clock.origin_ns
    recorded = (facts.ops, facts.api_calls, facts.gpu_ops, trace.regions)
    return origin_ns, origin_ns + max(map(_end_ns, recorded))


def _end_ns(frame: pl.DataFrame) -> int:
    end = frame.select((pl.col("start_ns") + pl.col("dur_ns").fill_null(0)).max()).item()
    return end if isinstance(end, int) else 0
