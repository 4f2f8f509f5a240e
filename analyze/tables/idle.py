"""Why a device had nothing to do: what each gap before GPU work was caused by."""

import polars as pl

from analyze.tables.intervals import covered_before

MOST = 0.5
"""Share of a gap that something must fill to be its cause."""

LONG_IN_QUEUE_NS = 100_000
"""Work that was launched longer ago was not begun at once. In 25 of 28 real GPU traces the work
that ends a gap begins within 9 us of its launch's return, on an MI300X within 84 us, in two that
hold late ones after 2 ms and more; after the work of another stream it begins within 6 us."""


def gap_causes(gpu_ops: pl.DataFrame, calls: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """Return the cause of the gap before each GPU work; null where its launch is not known.

    Args:
        gpu_ops: in the order of their starts; columns ``start_ns``, ``gap_before_ns``,
            ``api_start_ns``, ``api_end_ns``, ``lane`` (of the launch), ``device_label``,
            ``forward``.
        calls: columns ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        other: the events of no family, with the profiler's ``overhead``.
    """
    gaps = gpu_ops.select_seq(
        "lane",
        "api_start_ns",
        "api_end_ns",
        "start_ns",
        "gap_before_ns",
        gap_start_ns=pl.col("start_ns") - pl.col("gap_before_ns"),
        outside=pl.col("forward").is_null()
        | pl.col("gap_before_ns").is_null()
        | pl.struct("device_label", "forward").is_first_distinct(),
    )
    cause = (
        pl.when(pl.col("api_start_ns").is_null() | pl.col("start_ns").is_null())
        .then(None)
        .when("outside")
        .then(pl.lit("outside"))
        .when(pl.col("gap_before_ns") == 0)
        .then(pl.lit("none"))
        .otherwise(why_idle(gaps, calls, other))
    )
    return gaps.select_seq(cause.alias("gap_cause"))["gap_cause"]


def why_idle(gaps: pl.DataFrame, calls: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """Return why the device had run dry: host, sync, profiler or device, as in ``gap_cause``.

    Args:
        gaps: columns ``gap_start_ns``, ``start_ns`` (the end of the gap: the start of the work
            after it), and of the call that launched that work ``lane``, ``api_start_ns`` and
            ``api_end_ns``.
        calls: columns ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        other: the events of no family, with the profiler's ``overhead``.

    Returns:
        Strings in the order of ``gaps``; null where the launch or a time is not known.
    """
    overhead = other.filter(pl.col("cat") == "overhead")
    is_late = pl.col("api_start_ns") >= pl.col("gap_start_ns")
    most = MOST * (pl.col("start_ns") - pl.col("gap_start_ns"))
    is_profiler = pl.lit(covered_in(gaps, overhead, [])) > most
    in_queue = pl.col("start_ns") - pl.col("api_end_ns")
    cause = (
        pl.when(~is_late)
        .then(pl.lit("device"))
        .when(is_late & is_profiler)
        .then(pl.lit("profiler"))
        .when(is_late & (in_queue > most) & (in_queue > LONG_IN_QUEUE_NS))
        .then(pl.lit("device"))
        .when(is_late & pl.lit(_was_blocked(gaps, calls)))
        .then(pl.lit("sync"))
        .when(is_late)
        .then(pl.lit("host"))
    )
    return gaps.select_seq(cause.alias("cause"))["cause"]


def covered_in(gaps: pl.DataFrame, intervals: pl.DataFrame, by: list[str]) -> pl.Series:
    """Return how many nanoseconds of each gap the intervals of its group cover.

    Args:
        gaps: columns ``gap_start_ns``, ``start_ns`` and those of ``by``.
        intervals: columns ``start_ns``, ``dur_ns`` and those of ``by``.
        by: the grouping columns.
    """
    begins = gaps.select_seq(*by, start_ns="gap_start_ns")
    return covered_before(gaps, intervals, by) - covered_before(begins, intervals, by)


def _was_blocked(gaps: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Tell of each gap whether the thread that ended it was in a blocking call when it began."""
    blocking = calls.filter("blocking").select_seq(
        "lane", gap_start_ns="start_ns", blocked_until="end_ns"
    )
    asked = gaps.select_seq("lane", "gap_start_ns").with_row_index("gap").sort("gap_start_ns")
    found = asked.join_asof(
        blocking.drop_nulls().sort("gap_start_ns"),
        on="gap_start_ns",
        by="lane",
        strategy="backward",
        check_sortedness=False,
    ).sort("gap")
    return (found["blocked_until"] > found["gap_start_ns"]).fill_null(value=False)


def idle_begun_in(calls: pl.DataFrame, gpu_ops: pl.DataFrame) -> pl.Series:
    """Return the idle time of the GPU that began while each blocking call ran.

    It lasts until the next work, which the thread of the call launched: what it takes to fill the
    queue again after a wait. While the GPU works on, a wait costs nothing of its time.

    Args:
        calls: columns ``api_row``, ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        gpu_ops: columns ``start_ns``, ``gap_before_ns``, and ``lane`` of the launch.

    Returns:
        Int64 nanoseconds in the order of ``calls``, summed over devices; null for calls that do
        not block.
    """
    blocking = calls.filter("blocking").select_seq(
        "api_row", "lane", gap_start_ns="start_ns", blocked_until="end_ns"
    )
    gaps = gpu_ops.filter(pl.col("gap_before_ns") > 0).select_seq(
        "lane", "gap_before_ns", gap_start_ns=pl.col("start_ns") - pl.col("gap_before_ns")
    )
    idle = (
        gaps.drop_nulls()
        .sort("gap_start_ns")
        .join_asof(
            blocking.drop_nulls().sort("gap_start_ns"),
            on="gap_start_ns",
            by="lane",
            strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("blocked_until") > pl.col("gap_start_ns"))
        .group_by("api_row")
        .agg(idle_ns=pl.col("gap_before_ns").sum())
    )
    joined = calls.select_seq("api_row", "blocking").join(
        idle, on="api_row", how="left", maintain_order="left"
    )
    began = pl.when("blocking").then(pl.col("idle_ns").fill_null(0))
    return joined.select_seq(began.alias("idle_ns"))["idle_ns"]
