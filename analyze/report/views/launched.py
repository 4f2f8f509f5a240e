"""What was launched in calls, ops and annotations: of all GPU work of the trace, drawn or not."""

import polars as pl

SUMS = ("launched", "launched_ns")
"""Columns of rows that know it: GPU ops of known duration, and their durations, summed."""


def launched_by(calls: pl.DataFrame, gpu_ops: pl.DataFrame) -> pl.DataFrame:
    """Return calls, whose ``id`` is their ``api_row``, with what each launched."""
    launches = (
        _launches(gpu_ops)
        .group_by(id="api_row")
        .agg(launched=pl.len().cast(pl.Int64), launched_ns=pl.col("dur_ns").sum())
    )
    launched = calls.join(launches, on="id", how="left", maintain_order="left")
    return launched.with_columns(pl.col(SUMS).fill_null(0))


def launched_within(spans: pl.DataFrame, gpu_ops: pl.DataFrame) -> pl.DataFrame:
    """Return ops and annotations with what calls that start in each, on its thread, launched."""
    launches = _launches(gpu_ops).select(
        "lane",
        "api_start_ns",
        launched=pl.col("dur_ns").cum_count().cast(pl.Int64).over("lane"),
        launched_ns=pl.col("dur_ns").cum_sum().over("lane"),
    )
    before_start = _launched_before(spans, "start_ns", launches)
    before_end = _launched_before(spans, "end_ns", launches)
    return spans.hstack([before_end[name] - before_start[name] for name in SUMS])


def _launches(gpu_ops: pl.DataFrame) -> pl.DataFrame:
    known = gpu_ops.drop_nulls(["api_row", "api_start_ns", "dur_ns"])
    return _with_known_lane(known.select("api_row", "lane", "api_start_ns", "dur_ns")).sort(
        "api_start_ns"
    )


def _launched_before(spans: pl.DataFrame, edge: str, launches: pl.DataFrame) -> pl.DataFrame:
    """Return for each span what was launched on its thread before an edge of it."""
    edges = _with_known_lane(spans.select("lane", edge)).with_row_index("#place").sort(edge)
    found = edges.join_asof(
        launches,
        left_on=edge,
        right_on="api_start_ns",
        by="lane",
        allow_exact_matches=False,
        check_sortedness=False,  # they are sorted, which polars cannot see through the lanes
    )
    return found.sort("#place").select(pl.col(SUMS).fill_null(0))


def _with_known_lane(rows: pl.DataFrame) -> pl.DataFrame:
    """Give a number to the thread without a name: null joins with nothing."""
    return rows.with_columns(pl.col("lane").cast(pl.Int64).fill_null(-1))
