"""Units of repetition: the intervals that numbers are given per.

A *forward* is the region the user names; else the annotation that ``capture`` writes; else the
ProfilerStep; else the whole trace. Work belongs to the unit whose CPU interval holds its launch,
never to the one it overlaps on the GPU.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import polars as pl

from analyze.errors import NoSuchForwardError
from analyze.tables.host import STEP_PREFIX
from analyze.tables.nesting import outermost
from analyze.words import closest, printable

CAPTURE_ANNOTATIONS = ("attn_step", "attn_fwd", "sdpa_fwd", "attn_bwd")
"""Annotations around one call of the captured workload, most inclusive first."""

WHOLE_TRACE = "trace"
PROFILER_STEP = "ProfilerStep"

UnitName = Literal["forward", "step", "trace"]


def unit_name(source: str | None) -> UnitName:
    """Return in a word what a forward is in a trace: where nothing marks one, a step or the trace.

    Args:
        source: what the units are, as in :class:`Units`; None where that is not known.
    """
    if source == PROFILER_STEP:
        return "step"
    return "trace" if source == WHOLE_TRACE else "forward"


def common_unit_name(sources: Iterable[str]) -> UnitName:
    """Return what a forward is in all of several traces, and ``forward`` where that differs."""
    names = {unit_name(source) for source in sources}
    return names.pop() if len(names) == 1 else "forward"


class Units(NamedTuple):
    """One kind of unit.

    Attributes:
        source: what the units are: an annotation's name, ``ProfilerStep``, or ``trace``.
        intervals: columns ``index`` (Int64), ``name``, ``pid``, ``lane``, ``start_ns``, ``end_ns``,
            sorted by start; of ProfilerSteps also ``number``. For ``trace`` one row without times.
        any_thread: work launched by any thread of the process belongs to the unit; otherwise only
            its own thread's, and the backward work that other threads launch meanwhile.
        backward_elsewhere: that backward work does belong to the unit.
    """

    source: str
    intervals: pl.DataFrame
    any_thread: bool
    backward_elsewhere: bool = True

    def index_at(self, points: pl.DataFrame) -> pl.Series:
        """Return the index of the unit each point in time belongs to; null for none.

        Args:
            points: columns ``pid``, ``lane``, ``start_ns``, ``phase``.
        """
        if self.source == WHOLE_TRACE:
            return pl.repeat(0, points.height, dtype=pl.Int64, eager=True)
        if self.any_thread:
            return self._unit_at(points, by="pid")
        own_thread = self._unit_at(points, by="lane")
        if not self.backward_elsewhere:
            return own_thread
        elsewhere = self._unit_at(points, by="pid")
        is_backward = points["phase"].eq_missing("backward")
        return own_thread.zip_with(own_thread.is_not_null() | ~is_backward, elsewhere)

    def number_of(self, index: pl.Series) -> pl.Series:
        """Return the numbers of the ProfilerSteps of an index; null for none."""
        return self.intervals["number"].gather(index)

    def _unit_at(self, points: pl.DataFrame, by: str) -> pl.Series:
        asked = points.select_seq(by, "start_ns").with_row_index("point").sort("start_ns")
        found = asked.join_asof(
            self.intervals.select_seq(by, "start_ns", "end_ns", "index"),
            on="start_ns",
            by=by,
            strategy="backward",
            check_sortedness=False,
        )
        inside = pl.when(pl.col("start_ns") < pl.col("end_ns")).then("index")
        return found.sort("point").select_seq(inside.alias("index"))["index"]


def find_steps(annotations: pl.DataFrame) -> Units:
    """Return the ProfilerSteps; ``number`` is what follows ``ProfilerStep#``.

    Each process counts for itself, and a second recording may begin anew: several steps can bear
    one number, so it is the index that tells them apart.

    Args:
        annotations: annotation nodes of the host forest.
    """
    steps = annotations.filter(pl.col("name").str.starts_with(STEP_PREFIX))
    number = pl.col("name").str.strip_prefix(STEP_PREFIX).cast(pl.Int64, strict=False)
    intervals = _intervals(steps).with_columns_seq(number=number)
    return Units(PROFILER_STEP, intervals, any_thread=True)


def find_forwards(
    annotations: pl.DataFrame, steps: Units, region: str | None, captured: str | None = None
) -> Units:
    """Return the forwards of a trace.

    Args:
        annotations: annotation nodes of the host forest.
        steps: the result of :func:`find_steps`.
        region: the annotation the user named, if any.
        captured: the annotation around one call, if ``capture`` noted it in the trace.

    Raises:
        NoSuchForwardError: the trace has no annotation of that name.
    """
    names = set(annotations["name"].unique())
    if region is not None and region not in names:
        raise NoSuchForwardError(f"forward {printable(region)}", _names_instead(region, names))
    known = [captured, *CAPTURE_ANNOTATIONS]
    chosen = region or next((name for name in known if name in names), None)
    if chosen is not None:
        found = annotations.filter((pl.col("name") == chosen) & ~pl.col("absorbed"))
        return Units(chosen, _intervals(outermost(found)), any_thread=False)
    if steps.intervals.height:
        return steps
    return Units(WHOLE_TRACE, _whole_trace(), any_thread=True)


def _intervals(annotations: pl.DataFrame) -> pl.DataFrame:
    index = pl.int_range(pl.len(), dtype=pl.Int64).alias("index")
    return annotations.sort("start_ns").select_seq(
        index, "name", "pid", "lane", "start_ns", "end_ns"
    )


def _whole_trace() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "index": [0],
            "name": [WHOLE_TRACE],
            "pid": [None],
            "lane": [None],
            "start_ns": [None],
            "end_ns": [None],
        },
        schema={
            "index": pl.Int64,
            "name": pl.String,
            "pid": pl.String,
            "lane": pl.UInt32,
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
        },
    )


def _names_instead(region: str, names: set[str]) -> str:
    known = sorted(name for name in names if not name.startswith(STEP_PREFIX))
    close = closest(region, known)
    if close:
        return f"did you mean {printable(close)!r}?"
    shown = ", ".join(printable(name) for name in known[:5])
    return f"it has {shown}" if known else "it has no record_function annotations"
