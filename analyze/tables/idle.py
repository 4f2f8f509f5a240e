"""Why a device had nothing to do: what each gap before GPU work was caused by."""

import polars as pl

from analyze.tables.intervals import covered_before
from analyze.tables.nesting import outermost

MOST = 0.5
"""Share of a gap that something must fill to be its cause."""

LONG_IN_QUEUE_NS = 100_000
"""Work that was launched longer ago was not begun at once. In 25 of 28 real GPU traces the work
that ends a gap begins within 9 us of its launch's return, on an MI300X within 84 us, in two that
hold late ones after 2 ms and more; after the work of another stream it begins within 6 us."""

DATA_LOADING = r"(?i)data_?loader"
"""Names of what loads data: torch's ``enumerate(DataLoader)#...``, and annotations like it."""


def idle_causes(gpu_ops: pl.DataFrame, calls: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """Return why the device had run dry before each GPU work, whatever the forward.

    Args:
        gpu_ops: columns ``start_ns``, ``gap_before_ns``, ``api_start_ns``, ``api_end_ns``, ``lane``
            (of the launch).
        calls: columns ``api_row``, ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        other: the events of no family, with the profiler's ``overhead``.

    Returns:
        As :func:`why_idle` says; ``none`` where there is no gap, null where the launch or what was
        before is not known.
    """
    gaps = gpu_ops.select_seq(
        *("lane", "api_start_ns", "api_end_ns", "start_ns", "gap_before_ns"),
        gap_start_ns=pl.col("start_ns") - pl.col("gap_before_ns"),
    )
    is_known = pl.col("api_start_ns").is_not_null() & pl.col("gap_before_ns").is_not_null()
    cause = (
        pl.when(is_known & (pl.col("gap_before_ns") == 0))
        .then(pl.lit("none"))
        .when(is_known)
        .then(why_idle(gaps, calls, other))
    )
    return gaps.select_seq(cause.alias("idle_cause"))["idle_cause"]


def gap_cause() -> pl.Expr:
    """Return the cause of the gap before each GPU work; null where its launch is not known.

    Of frames in the order of starts with ``idle_cause`` (see :func:`idle_causes`),
    ``api_start_ns``, ``start_ns``, ``gap_before_ns``, ``device_label``, ``forward``.
    """
    is_outside = (
        pl.col("forward").is_null()
        | pl.col("gap_before_ns").is_null()
        | pl.struct("device_label", "forward").is_first_distinct()
    )
    return (
        pl.when(pl.col("api_start_ns").is_null() | pl.col("start_ns").is_null())
        .then(None)
        .when(is_outside)
        .then(pl.lit("outside"))
        .otherwise("idle_cause")
    )


def why_idle(gaps: pl.DataFrame, calls: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """Return why the device had run dry: host, sync, profiler or device, as in ``gap_cause``.

    Args:
        gaps: columns ``gap_start_ns``, ``start_ns`` (the end of the gap: the start of the work
            after it), and of the call that launched that work ``lane``, ``api_start_ns`` and
            ``api_end_ns``.
        calls: columns ``api_row``, ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        other: the events of no family, with the profiler's ``overhead``.

    Returns:
        Strings in the order of ``gaps``; null where the launch or a time is not known.
    """
    overhead = other.filter(pl.col("cat") == "overhead")
    is_late = pl.col("api_start_ns") >= pl.col("gap_start_ns")
    most = _most_of_gap()
    is_profiler = pl.lit(covered_in(gaps, overhead, [])) > most
    in_queue = pl.col("start_ns") - pl.col("api_end_ns")
    cause = (
        pl.when(~is_late)
        .then(pl.lit("device"))
        .when(is_late & is_profiler)
        .then(pl.lit("profiler"))
        .when(is_late & (in_queue > most) & (in_queue > LONG_IN_QUEUE_NS))
        .then(pl.lit("device"))
        .when(is_late & pl.lit(_blocking_call(gaps, calls).is_not_null()))
        .then(pl.lit("sync"))
        .when(is_late)
        .then(pl.lit("host"))
    )
    return gaps.select_seq(cause.alias("cause"))["cause"]


def loads_data(gaps: pl.DataFrame, nodes: pl.DataFrame) -> pl.Series:
    """Tell of each gap whether the thread that ended it loaded data for most of it.

    Args:
        gaps: columns ``gap_start_ns``, ``start_ns`` (its end), ``lane``.
        nodes: the ops and annotations of the host.
    """
    is_most = pl.lit(covered_in(gaps, loading_in(nodes), ["lane"])) > _most_of_gap()
    return gaps.select_seq(is_most.alias("loads_data"))["loads_data"]


def loading_in(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return those of the ops and annotations of the host that load data, by their names."""
    return nodes.filter(pl.col("name").str.contains(DATA_LOADING))


def _most_of_gap() -> pl.Expr:
    return MOST * (pl.col("start_ns") - pl.col("gap_start_ns"))


def covered_in(gaps: pl.DataFrame, intervals: pl.DataFrame, by: list[str]) -> pl.Series:
    """Return how many nanoseconds of each gap the intervals of its group cover.

    Args:
        gaps: columns ``gap_start_ns``, ``start_ns`` and those of ``by``.
        intervals: columns ``start_ns``, ``dur_ns`` and those of ``by``.
        by: the grouping columns.
    """
    begins = gaps.select_seq(*by, start_ns="gap_start_ns")
    return covered_before(gaps, intervals, by) - covered_before(begins, intervals, by)


def _blocking_call(gaps: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Return the row of the blocking call that the thread which ended each gap was in at its begin.

    Of calls inside each other it is the outermost; null where there is none.
    """
    blocking = outermost(calls.filter("blocking")).select_seq(
        "lane", "api_row", gap_start_ns="start_ns", blocked_until="end_ns"
    )
    asked = gaps.select_seq("lane", "gap_start_ns").with_row_index("gap").sort("gap_start_ns")
    found = asked.join_asof(
        blocking, on="gap_start_ns", by="lane", strategy="backward", check_sortedness=False
    ).sort("gap")
    is_in_it = pl.col("blocked_until") > pl.col("gap_start_ns")
    return found.select_seq(pl.when(is_in_it).then("api_row").alias("api_row"))["api_row"]


def idle_after_waits(calls: pl.DataFrame, gpu_ops: pl.DataFrame, nodes: pl.DataFrame) -> pl.Series:
    """Return the idle time of the GPU that each blocking call left behind.

    It begins while the call runs and lasts until the next work, which the thread of the call
    launched only then: what it takes to fill the queue again after a wait. While the GPU works on,
    or has work that it does not begin, a wait costs nothing of its time. What loading of data fills
    is left out.

    Args:
        calls: columns ``api_row``, ``lane``, ``start_ns``, ``end_ns``, ``blocking``.
        gpu_ops: columns ``start_ns``, ``gap_before_ns``, ``idle_cause`` (see :func:`idle_causes`),
            and ``lane`` of the launch.
        nodes: the ops and annotations of the host.

    Returns:
        Int64 nanoseconds in the order of ``calls``, summed over devices; of calls inside each other
        it is the outermost's; null for calls that do not block.
    """
    gaps = gpu_ops.filter(pl.col("idle_cause") == "sync").select_seq(
        *("lane", "start_ns", "gap_before_ns"),
        gap_start_ns=pl.col("start_ns") - pl.col("gap_before_ns"),
    )
    idle = (
        gaps.with_columns_seq(api_row=_blocking_call(gaps, calls))
        .filter(~loads_data(gaps, nodes))
        .group_by("api_row")
        .agg(idle_ns=pl.col("gap_before_ns").sum())
    )
    joined = calls.select_seq("api_row", "blocking").join(
        idle, on="api_row", how="left", maintain_order="left"
    )
    left_behind = pl.when("blocking").then(pl.col("idle_ns").fill_null(0))
    return joined.select_seq(left_behind.alias("idle_ns"))["idle_ns"]


def dry_in_waits(calls: pl.DataFrame, gpu_ops: pl.DataFrame) -> pl.Series:
    """Return how long no device had work while each blocking call ran.

    A wait with nothing to wait for is the call itself, or is for what the file does not hold.

    Args:
        calls: columns ``api_row``, ``start_ns``, ``end_ns``, ``dur_ns``, ``blocking``.
        gpu_ops: columns ``start_ns``, ``dur_ns``.

    Returns:
        Int64 nanoseconds in the order of ``calls``; null for calls that do not block, and for all
        where no GPU work was recorded.
    """
    waits = calls.filter("blocking").select_seq(
        "api_row", "dur_ns", gap_start_ns="start_ns", start_ns="end_ns"
    )
    timed = waits.clear() if gpu_ops.is_empty() else waits.drop_nulls()
    dry = timed.select_seq("api_row", dry_ns=pl.col("dur_ns") - covered_in(timed, gpu_ops, []))
    joined = calls.select_seq("api_row").join(dry, on="api_row", how="left", maintain_order="left")
    return joined["dry_ns"]
