"""Slices laid out on tracks, as trace viewers need it.

A viewer draws the slices of a thread as a stack, so that two that overlap without nesting cannot
both be drawn: Perfetto leaves one out (google/perfetto#4280). Slices that overlap therefore get
tracks of their own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from analyze.annotate.slices import Slice


@dataclass(frozen=True)
class Track:
    """Slices of one rule that do not overlap, in the order of time."""

    code: str
    name: str
    slices: list[Slice]


def tracks_of(slices: Iterable[Slice]) -> list[Track]:
    """Lay out slices: the rules in the order of their first finding, each on its own tracks."""
    slices = list(slices)
    order = {part.finding.code: part.number for part in reversed(slices)}
    ranked = sorted(slices, key=lambda part: order[part.finding.code])
    return [
        Track(code, lane[0].finding.name, lane)
        for code, parts in groupby(ranked, key=lambda part: part.finding.code)
        for lane in _lanes(parts)
    ]


def _lanes(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Put each slice into the first lane that is free when it starts."""
    lanes: list[list[Slice]] = []
    for part in sorted(slices, key=lambda part: (part.start_ns, -part.dur_ns)):
        free = (lane for lane in lanes if _is_over(lane[-1], part.start_ns))
        lane = next(free, None)
        if lane is None:
            lanes.append([part])
        else:
            lane.append(part)
    return lanes


def _is_over(part: Slice, at_ns: int) -> bool:
    """Whether a slice has ended; one without a duration still occupies its moment."""
    return part.start_ns + max(part.dur_ns, 1) <= at_ns
