"""Why a device had nothing to do: what each gap before GPU work was caused by."""

import polars as pl

_MOST = 0.5
"""Share of a gap that the profiler's own overhead must cover to be its cause."""


def gap_causes(gpu_ops: pl.DataFrame, calls: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """Return the cause of the gap before each GPU work; null where its launch is not known.

    Args:
        gpu_ops: in the order of their starts; columns ``start_ns``, ``gap_before_ns``,
            ``api_start_ns``, ``lane`` (of the launch), ``device_label``, ``forward``.
        calls: columns ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        other: the events of no family, with the profiler's ``overhead``.
    """
    gaps = gpu_ops.select(
        "lane",
        "api_start_ns",
        "start_ns",
        "gap_before_ns",
        gap_start=pl.col("start_ns") - pl.col("gap_before_ns"),
        outside=pl.col("forward").is_null()
        | pl.col("gap_before_ns").is_null()
        | pl.struct("device_label", "forward").is_first_distinct(),
    )
    is_late = pl.col("api_start_ns") >= pl.col("gap_start")
    overhead = _overhead_before(gaps["start_ns"], other) - _overhead_before(
        gaps["gap_start"], other
    )
    cause = (
        pl.when(pl.col("api_start_ns").is_null() | pl.col("start_ns").is_null())
        .then(None)
        .when("outside")
        .then(pl.lit("outside"))
        .when(pl.col("gap_before_ns") == 0)
        .then(pl.lit("none"))
        .when(~is_late)
        .then(pl.lit("device"))
        .when(is_late & (pl.lit(overhead) > _MOST * pl.col("gap_before_ns")))
        .then(pl.lit("profiler"))
        .when(is_late & pl.lit(_was_blocked(gaps, calls)))
        .then(pl.lit("sync"))
        .when(is_late)
        .then(pl.lit("host"))
    )
    return gaps.select(cause.alias("gap_cause"))["gap_cause"]


def _was_blocked(gaps: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Tell of each gap whether the thread that ended it was in a blocking call when it began."""
    blocking = calls.filter("blocking").select("lane", gap_start="start_ns", blocked_until="end_ns")
    asked = gaps.select("lane", "gap_start").with_row_index("gap").sort("gap_start")
    found = asked.join_asof(
        blocking.drop_nulls().sort("gap_start"),
        on="gap_start",
        by="lane",
        strategy="backward",
        check_sortedness=False,
    ).sort("gap")
    return (found["blocked_until"] > found["gap_start"]).fill_null(value=False)


def _overhead_before(points: pl.Series, other: pl.DataFrame) -> pl.Series:
    """Return how much overhead the profiler recorded before each point in time."""
    spans = (
        other.filter((pl.col("cat") == "overhead") & (pl.col("dur_ns") > 0))
        .select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .drop_nulls()
        .sort("start_ns")
    )
    if spans.is_empty():
        return pl.repeat(0, len(points), dtype=pl.Int64, eager=True)
    spans = spans.select(
        start_ns=pl.max_horizontal("start_ns", pl.col("end_ns").cum_max().shift(1)),
        end_ns=pl.col("end_ns").cum_max(),
    ).with_columns(before=(pl.col("end_ns") - pl.col("start_ns")).cum_sum())
    found = (
        pl.DataFrame({"start_ns": points, "point": points})
        .with_row_index("row")
        .sort("start_ns")
        .join_asof(spans, on="start_ns", strategy="backward", check_sortedness=False)
        .sort("row")
    )
    still_open = (pl.col("end_ns") - pl.col("point")).clip(0)
    return found.select((pl.col("before") - still_open).fill_null(0).alias("before"))["before"]
