"""Lengths of unions of time intervals: overlap is counted once."""

import polars as pl


def covered_ns(intervals: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return how much time the intervals of each group cover together.

    Args:
        intervals: columns ``start_ns`` and ``dur_ns`` (Int64) and those of ``by``. Rows with a null
            time are left out.
        by: the grouping columns.

    Returns:
        One row a group: the ``by`` columns, ``busy_ns`` (length of the union), ``span_ns`` (first
        start to last end) and ``sum_ns`` (sum of the durations).
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    placed = (
        intervals.select(*by, "start_ns", "dur_ns", end_ns=end)
        .drop_nulls(["start_ns", "dur_ns"])
        .sort(*by, "start_ns", maintain_order=True)
    )
    covered_until = pl.col("end_ns").cum_max().shift(1)
    if by:
        covered_until = covered_until.over(by)
    newly_covered = pl.col("end_ns") - pl.max_horizontal("start_ns", "covered_until")
    return (
        placed.with_columns(covered_until=covered_until)
        .with_columns(new_ns=newly_covered.clip(0))
        .group_by(by, maintain_order=True)
        .agg(
            busy_ns=pl.col("new_ns").sum(),
            span_ns=pl.col("end_ns").max() - pl.col("start_ns").min(),
            sum_ns=pl.col("dur_ns").sum(),
        )
    )
