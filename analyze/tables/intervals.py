"""Lengths of unions of time intervals: overlap is counted once; what lies between is idle."""

from collections.abc import Sequence

import polars as pl


def busy_until(*by: str) -> pl.Expr:
    """Return the latest ``end_ns`` of the rows before each one, which are in order of their starts.

    Null in the first row of a group, and after a row whose end is unknown.

    Args:
        by: the grouping columns; a null in one is a group of its own.
    """
    return _of_group(pl.col("end_ns").cum_max().shift(1), by)


_NOTHING = pl.lit(0, dtype=pl.Int64)


def covered_ns(
    intervals: pl.DataFrame, by: list[str], not_recorded: pl.Expr = _NOTHING
) -> pl.DataFrame:
    """Return how much time the intervals of each group cover together.

    Args:
        intervals: columns ``start_ns`` and ``dur_ns`` (Int64) and those of ``by``. Rows with a null
            time are left out.
        by: the grouping columns.
        not_recorded: nanoseconds before each interval that nobody saw, and that are left out of the
            span.

    Returns:
        One row a group: the ``by`` columns, ``busy_ns`` (length of the union), ``span_ns`` (first
        start to last end) and ``sum_ns`` (sum of the durations).
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    placed = (
        intervals.select_seq(*by, "start_ns", "dur_ns", end_ns=end, not_recorded_ns=not_recorded)
        .drop_nulls(["start_ns", "dur_ns"])
        .sort(*by, "start_ns", maintain_order=True)
    )
    between = pl.col("not_recorded_ns").slice(1).sum()
    newly_covered = pl.col("end_ns") - pl.max_horizontal("start_ns", "covered_until")
    return (
        placed.with_columns_seq(covered_until=busy_until(*by))
        .with_columns_seq(new_ns=newly_covered.clip(0))
        .group_by(by, maintain_order=True)
        .agg(
            busy_ns=pl.col("new_ns").sum(),
            span_ns=pl.col("end_ns").max() - pl.col("start_ns").min() - between,
            sum_ns=pl.col("dur_ns").sum(),
        )
    )


def summed_ns(durations: pl.Series) -> int | None:
    """Sum times that may be unknown; None where there are some, all unknown."""
    is_known = durations.is_empty() or durations.count() > 0
    return int(durations.sum()) if is_known else None


def covered_before(points: pl.DataFrame, intervals: pl.DataFrame, by: list[str]) -> pl.Series:
    """Return how much time the intervals of each point's group cover before it.

    Args:
        points: columns ``start_ns`` (Int64) and those of ``by``.
        intervals: columns ``start_ns``, ``dur_ns`` and those of ``by``; rows with a null time are
            left out.
        by: the grouping columns; a null in one is in no group.

    Returns:
        Int64 nanoseconds in the order of ``points``; 0 before the first interval of the group.
    """
    until = pl.col("end_ns").cum_max()
    new = until - pl.max_horizontal("start_ns", until.shift(1))
    covered = (
        intervals.select_seq(*by, "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .drop_nulls()
        .sort("start_ns")
        .with_columns_seq(until_ns=_of_group(until, by), covered_ns=_of_group(new.cum_sum(), by))
    )
    found = (
        points.select_seq(*by, "start_ns")
        .with_row_index("row")
        .sort("start_ns")
        .join_asof(
            covered, on="start_ns", by=by or None, strategy="backward", check_sortedness=False
        )
        .sort("row")
    )
    still_open = (pl.col("until_ns") - pl.col("start_ns")).clip(0)
    before = (pl.col("covered_ns") - still_open).fill_null(0)
    return found.select_seq(before.alias("before"))["before"]


def _of_group(running: pl.Expr, by: Sequence[str]) -> pl.Expr:
    return running.over(by) if by else running
