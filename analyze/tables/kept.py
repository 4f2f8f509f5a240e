"""What of a recording the file still holds: all of it, or what a cut or ``analyze trim`` left.

An amount of work is unknown, not nothing, where the work itself may be missing from the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from analyze.tables.trimmed import Trimmed

_FURTHEST_NS = (1 << 63) - 1
"""Times have 64 bits."""


@dataclass(frozen=True)
class Kept:
    """The host's time of which the file holds every launch with its GPU work.

    Attributes:
        until_ns: the end of it in a file that is cut short; None for a whole file.
        trims: the windows that each run of ``analyze trim`` kept, as (first nanosecond, first no
            longer kept).
    """

    until_ns: int | None = None
    trims: tuple[tuple[tuple[int, int], ...], ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is missing."""
        return self.until_ns is None and not self.trims

    def of_ops(self) -> "Kept":
        """Return of which time every op and annotation is there: a cut takes what is after them."""
        return replace(self, until_ns=None)

    def known_in(
        self, columns: Iterable[str], end: pl.Expr, *, begun_is_whole: bool = False
    ) -> list[pl.Expr]:
        """Set columns to null in the rows of which a part may be missing.

        Args:
            columns: amounts of the work in intervals; the frame has ``start_ns`` as well.
            end: the end of the intervals, in nanoseconds.
            begun_is_whole: trimming kept the whole of what begins in the kept time, as of ops.
        """
        if self.is_everything:
            return []
        is_whole = self._is_whole(end, begun_is_whole=begun_is_whole)
        return [pl.when(is_whole).then(pl.col(name)).alias(name) for name in columns]

    def units_in_part(self, units: pl.DataFrame) -> int:
        """Return of how many units a part may be missing.

        Args:
            units: columns ``start_ns`` and ``end_ns``.
        """
        if self.is_everything:
            return 0
        is_whole = self._is_whole(pl.col("end_ns"), begun_is_whole=False)
        return units.filter(~is_whole).height

    def holds_all_of(self, windows: Iterable[tuple[int, int]]) -> bool:
        """Whether no cut took anything of these times, (first nanosecond, first no longer)."""
        return self.until_ns is None or all(end <= self.until_ns for _, end in windows)

    def _is_whole(self, end: pl.Expr, *, begun_is_whole: bool) -> pl.Expr:
        start = pl.col("start_ns")
        conditions = [] if self.until_ns is None else [end <= self.until_ns]
        for windows in self.trims:
            inside = [
                (start >= first) & (start < last if begun_is_whole else end <= last)
                for first, last in windows
            ]
            conditions.append(pl.any_horizontal(pl.lit(value=False), *inside))
        return pl.all_horizontal(conditions)


def what_is_kept(
    trimmed: Iterable[Trimmed], origin_ns: int, calls: pl.DataFrame, *, truncated: bool
) -> Kept:
    """Return what a file still holds.

    Args:
        trimmed: what the file says of being trimmed, the latest last.
        origin_ns: the start of the trace in the file's own time.
        calls: columns ``start_ns``, ``is_launch``, ``gpu_ops``.
        truncated: the file ends before its event list does.
    """
    trims = tuple(
        tuple((_within(first - origin_ns), _within(last - origin_ns)) for first, last in windows)
        for note in trimmed
        if (windows := note.windows_ns) is not None
    )
    return Kept(_last_known_ns(calls) if truncated else None, trims)


def _within(time_ns: int) -> int:
    """Return a time that a table can hold, whatever a note says."""
    return max(-_FURTHEST_NS, min(time_ns, _FURTHEST_NS))


def _last_known_ns(calls: pl.DataFrame) -> int:
    """Return when the last call of a cut file began of which the GPU work is there as well.

    Kineto writes ops first, then calls and GPU work about in the order of time. What it wrote after
    the cut belongs to later calls, or to calls of which the file has no GPU work.
    """
    launches = calls.filter("is_launch")
    last_with_work = launches.filter(pl.col("gpu_ops") > 0)["start_ns"].max()
    if not isinstance(last_with_work, int):
        return 0
    without = launches.filter(pl.col("start_ns") > last_with_work)["start_ns"].min()
    last = calls["start_ns"].max()
    return without if isinstance(without, int) else last if isinstance(last, int) else 0
