"""Gaps before GPU work that nobody saw: what ran in them went when ``analyze trim`` left time out.

They are no idle time. Work is kept with its launch, so they lie between work that was launched
before and after a time of the host that was left out, whenever the GPU came to run it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import polars as pl

from analyze.tables.intervals import busy_until

Windows = Sequence[tuple[int, int]]
"""Kept time of the host, as (first nanosecond, first no longer kept)."""


def without_removed_time(gpu_ops: pl.DataFrame, trims: Iterable[Windows]) -> pl.DataFrame:
    """Tell how much of the time before each GPU op was left out, and take it for unknown.

    Args:
        gpu_ops: in the order of their starts; columns ``start_ns``, ``end_ns``, ``api_start_ns``,
            ``device_label``, ``gap_before_ns``.
        trims: the windows that each run of ``analyze trim`` kept.

    Returns:
        The frame with ``removed_before_ns``, 0 where nothing was left out; ``gap_before_ns`` is
        null where something was.
    """
    holes = [hole for windows in trims for hole in _holes(windows)]
    if not holes:
        return gpu_ops.with_columns_seq(removed_before_ns=pl.lit(0, dtype=pl.Int64))
    removed = _gaps_over(gpu_ops, holes)
    rows = gpu_ops.with_row_index("row").join(removed, on="row", how="left", maintain_order="left")
    return rows.drop("row").with_columns_seq(
        pl.col("removed_before_ns").fill_null(0),
        gap_before_ns=pl.when(pl.col("removed_before_ns").is_null()).then("gap_before_ns"),
    )


def _holes(windows: Windows) -> Iterator[tuple[int, int]]:
    """Yield the time between windows, from an end to the next start."""
    for (_, end), (start, _) in pairwise(sorted(windows)):
        if end < start:
            yield end, start


def _gaps_over(gpu_ops: pl.DataFrame, holes: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """Return ``row`` and ``removed_before_ns`` of the work that ends a gap over a hole."""
    until = busy_until("device_label")
    launched = pl.coalesce("api_start_ns", "start_ns")
    gaps = (
        gpu_ops.with_row_index("row")
        .drop_nulls(["start_ns", "end_ns"])
        .with_columns_seq(until_ns=until, launched_ns=launched)
        .with_columns_seq(launched_before_ns=_launch_of_work_before())
        .filter(pl.col("until_ns") < pl.col("start_ns"))
    )
    first = gaps.select_seq(pl.min_horizontal("launched_before_ns", "launched_ns")).to_series()
    last = gaps.select_seq(pl.max_horizontal("launched_before_ns", "launched_ns")).to_series()
    starts, ends = (pl.Series(sorted(times), dtype=pl.Int64) for times in zip(*holes, strict=True))
    begun, over = starts.search_sorted(last, side="left"), ends.search_sorted(first, side="right")
    return gaps.filter(begun > over).select_seq(
        "row", removed_before_ns=pl.col("start_ns") - pl.col("until_ns")
    )


def _launch_of_work_before() -> pl.Expr:
    """Return when the work was launched with whose end the gap before each row begins."""
    is_latest = (pl.col("end_ns") > pl.col("until_ns")).fill_null(value=True)
    return pl.when(is_latest).then("launched_ns").forward_fill().shift(1).over("device_label")
