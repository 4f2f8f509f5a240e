"""Gaps: when a device had nothing to do, why, and what the CPU did in the meantime.

A gap lies between the union of a device's earlier work and the start of its next. Per device, busy
time and gaps add up to the time from its first to its last work, to the nanosecond; what lies
between work that was launched before and after a time that ``analyze trim`` left out is neither.

The causes are those of ``gpu_ops.gap_cause``, divided further: of ``host`` and ``sync``, ``input``
is what loading of data fills; of ``host`` and ``device``, ``launch`` is what the launching call
itself fills, or of ``host`` one before it that returned late; of ``host``, what other blocking
calls fill is ``sync``; of ``device``, ``stream`` is what follows the work of another stream at
once: where nothing runs for long, no stream is waited for. ``gap_cause`` says ``outside`` of the
first work of a forward and of work in none; here every gap has a cause, and ``in_forward`` and
``between_forwards`` tell where it lies.
"""

import polars as pl

from analyze.tables.api import DRIVER_ALLOCATIONS
from analyze.tables.facts import Facts
from analyze.tables.idle import (
    LONG_IN_QUEUE_NS,
    MOST,
    covered_in,
    loading_in,
    loads_data,
    why_idle,
)
from analyze.tables.intervals import busy_until
from analyze.tables.nesting import outermost
from analyze.tables.sources import sources_at

OUTSIDE_FORWARDS = ~pl.col("in_forward") & ~pl.col("between_forwards")
"""Gaps before the first forward, after the last, and beside work that is of none."""

_TAKES_MEMORY = pl.col("api").is_in(DRIVER_ALLOCATIONS)
_BUSY_UNTIL = busy_until("device_label")


def find_gaps(facts: Facts, other: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps with their causes, which takes a small part of what :func:`build_gaps` does.

    Args:
        facts: the linked events of a trace.
        other: the events of no family, with the profiler's ``overhead``.

    Returns:
        One row a gap in the order of the work that ended them, for :func:`build_gaps`; times in
        nanoseconds, ``dur_ns`` and ``cause`` as documented.
    """
    gaps = _find_gaps(facts.gpu_ops)
    return gaps.with_columns_seq(cause=_causes(gaps, facts, other))


def build_gaps(gaps: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return the gaps in the order of their starts; times in nanoseconds.

    Args:
        gaps: the result of :func:`find_gaps`.
        facts: the linked events of a trace.
    """
    activity = _host_activity(gaps, facts)
    return (
        gaps.join(activity, on="gap", how="left", maintain_order="left")
        .drop("start_ns")
        .rename({"gap_start_ns": "start_ns"})
        .sort("start_ns", "device_label", maintain_order=True)
    )


def _find_gaps(gpu_ops: pl.DataFrame) -> pl.DataFrame:
    """Return one row a gap, with what ran before it and what ended it.

    As the functions of ``idle`` want it, ``start_ns`` is the start of the work that ended the gap.
    """
    placed = gpu_ops.drop_nulls(["start_ns", "dur_ns"]).with_row_index("row")
    is_latest = (pl.col("end_ns") > _BUSY_UNTIL).fill_null(value=True)
    latest = pl.when(is_latest).then("row")
    placed = placed.with_columns_seq(
        dur_ns=pl.col("start_ns") - _BUSY_UNTIL,
        gap_start_ns=_BUSY_UNTIL,
        previous=latest.forward_fill().shift(1).over("device_label"),
        last_forward=pl.col("forward").forward_fill().over("device_label"),
        coming_forward=pl.col("forward").backward_fill().over("device_label"),
    )
    gaps = placed.filter((pl.col("dur_ns") > 0) & (pl.col("removed_before_ns") == 0))
    before = placed[gaps["previous"]]
    is_in_one = (gaps["forward"] == before["forward"]).fill_null(value=False)
    is_between_two = (gaps["coming_forward"] != before["last_forward"]).fill_null(value=False)
    return gaps.select_seq(
        *("device", "device_label", "gap_start_ns", "start_ns", "dur_ns"),
        *("lane", "api_start_ns", "api_end_ns", "region", "forward", "step_row", "step", "phase"),
        next_name="short_name",
        next_op="op",
        next_source="source",
        next_stream="stream_label",
    ).with_columns_seq(
        gap=pl.int_range(pl.len(), dtype=pl.UInt32),
        previous_name=before["short_name"],
        previous_op=before["op"],
        previous_stream=before["stream_label"],
        in_forward=is_in_one,
        between_forwards=is_between_two,
    )


def _causes(gaps: pl.DataFrame, facts: Facts, other: pl.DataFrame) -> pl.Series:
    """Refine the causes of ``gap_cause``; null where the launch is not known."""
    broad = why_idle(gaps, facts.api_calls, other)
    length = pl.col("start_ns") - pl.col("gap_start_ns")
    call_start = pl.max_horizontal("api_start_ns", "gap_start_ns")
    in_call = pl.min_horizontal("api_end_ns", "start_ns") - call_start
    cause = pl.col("broad")
    is_another_stream = pl.col("previous_stream") != pl.col("next_stream")
    return gaps.with_columns_seq(
        broad=broad,
        loads_data=loads_data(gaps, facts.host.nodes),
        launching=covered_in(gaps, facts.api_calls.filter("is_launch"), ["lane"]),
        waiting=covered_in(gaps, facts.api_calls.filter("blocking"), ["lane"]),
    ).select_seq(
        cause=pl.when(cause.is_in(["host", "sync"]) & pl.col("loads_data"))
        .then(pl.lit("input"))
        .when(cause.is_in(["host", "device"]) & (in_call > MOST * length))
        .then(pl.lit("launch"))
        .when((cause == "host") & (pl.col("launching") > MOST * length))
        .then(pl.lit("launch"))
        .when((cause == "host") & (pl.col("waiting") > MOST * length))
        .then(pl.lit("sync"))
        .when((cause == "device") & is_another_stream & (length <= LONG_IN_QUEUE_NS))
        .then(pl.lit("stream"))
        .otherwise(cause)
    )["cause"]


def _host_activity(gaps: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return what the thread that launched the next work did in each gap.

    Returns:
        One row a gap whose thread is known: ``gap``; ``in_api_ns``, ``in_ops_ns``,
        ``outside_ops_ns``, which add up to the gap (the last two are null where no ops were
        recorded); ``memory_calls_ns``, a part of ``in_api_ns``, and
        ``memory_call``; ``loader``; ``op``, ``op_chain``, ``op_ns``; ``api``; ``source``.
    """
    pieces = _pieces(gaps.drop_nulls("lane"), facts)
    in_api, in_op = pl.col("api").is_not_null(), pl.col("op_chain").is_not_null()
    length = pl.col("length_ns")
    totals = pieces.group_by("gap").agg(
        in_api_ns=length.filter(in_api).sum(),
        memory_calls_ns=length.filter(_TAKES_MEMORY).sum(),
        in_ops_ns=length.filter(in_op & ~in_api).sum(),
        outside_ops_ns=length.filter(~in_op & ~in_api).sum(),
    )
    if facts.ops.is_empty():
        unknown = pl.lit(None, dtype=pl.Int64)
        totals = totals.with_columns_seq(in_ops_ns=unknown, outside_ops_ns=unknown)
    chains = _longest(pieces.drop_nulls("op_chain"), "op_chain", "op")
    chains = chains.rename({"length_ns": "op_ns"})
    apis = _longest(pieces.drop_nulls("api"), "api").drop("length_ns")
    loaders = _loaders(gaps, facts)
    memory = _longest(pieces.filter(_TAKES_MEMORY), "api").select_seq("gap", memory_call="api")
    sources = _longest(pieces.drop_nulls("source"), "source").drop("length_ns")
    for part in (chains, apis, memory, loaders, sources):
        totals = totals.join(part, on="gap", how="left")
    return totals


def activity_in(gaps: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return everything that the threads which launched the next work ran in gaps.

    Args:
        gaps: rows of :func:`build_gaps`.
        facts: the linked events of a trace.

    Returns:
        One row for each call and op of a gap: ``gap``, ``is_call`` (a runtime or driver call, else
        an op outside such calls), ``name`` (of the call, or of the innermost op), ``length_ns``.
    """
    known = gaps.drop_nulls("lane").select_seq(
        *("gap", "lane", "device_label"),
        gap_start_ns="start_ns",
        start_ns=pl.col("start_ns") + pl.col("dur_ns"),
    )
    return (
        _pieces(known, facts)
        .select_seq(
            "gap",
            "length_ns",
            is_call=pl.col("api").is_not_null(),
            name=pl.coalesce("api", "op"),
        )
        .drop_nulls("name")
        .group_by("gap", "is_call", "name", maintain_order=True)
        .agg(pl.col("length_ns").sum())
    )


def _loaders(gaps: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return ``gap`` and ``loader``: the loading of data that its thread began last before its end.

    Loading that was over before the gap began is none of it.
    """
    nodes = loading_in(facts.host.nodes)
    end = pl.col("start_ns") + pl.col("dur_ns")
    loading = nodes.select_seq("lane", "start_ns", loader="name", until_ns=end).sort("start_ns")
    asked = gaps.select_seq("gap", "lane", "gap_start_ns", "start_ns").drop_nulls("lane")
    found = asked.sort("start_ns").join_asof(
        loading, on="start_ns", by="lane", strategy="backward", check_sortedness=False
    )
    return found.filter(pl.col("until_ns") > pl.col("gap_start_ns")).select_seq("gap", "loader")


def _longest(pieces: pl.DataFrame, key: str, *others: str) -> pl.DataFrame:
    """Return of each gap the value of ``key`` that filled most of it; the earlier of equals."""
    return (
        pieces.group_by("gap", key, maintain_order=True)
        .agg(pl.col("length_ns").sum(), pl.col(others).first())
        .sort("gap", "length_ns", descending=[False, True], maintain_order=True)
        .unique("gap", keep="first", maintain_order=True)
    )


def _pieces(gaps: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Cut each gap where anything begins or ends on its thread; say what runs in each piece.

    Returns:
        Columns ``gap``, ``length_ns``, ``op``, ``op_chain``, ``api``, ``source``; null where
        none runs.
    """
    calls = outermost(facts.api_calls)  # the driver's are made inside the runtime's
    edges = _edges(gaps["lane"], facts.host.nodes, calls, facts.user_frames.nodes)
    of_devices = [
        _cut(part, edges) for part in gaps.partition_by("device_label", maintain_order=True)
    ]
    points = pl.concat([_cut(gaps.clear(), edges), *of_devices])
    nodes = facts.host.nodes
    node = facts.host.forest.innermost_at(points)
    op_row = nodes["op_row"].gather(node)
    source = sources_at(points, facts.user_frames)
    return points.with_columns_seq(
        op=nodes["name"].gather(op_row),
        op_chain=nodes["op_chain"].gather(op_row),
        api=_call_at(points, calls),
        source=source.zip_with(source.is_not_null(), nodes["source"].gather(op_row)),
    )


def _edges(lanes: pl.Series, *frames: pl.DataFrame) -> pl.DataFrame:
    """Return the moments at which anything begins or ends on these threads, in order."""
    moments = [
        frame.select_seq("lane", start_ns=moment)
        for frame in frames
        for moment in ("start_ns", "end_ns")
    ]
    of_lanes = pl.concat(moments).join(lanes.unique().to_frame(), on="lane", how="semi")
    return of_lanes.unique().sort("start_ns")


def _cut(gaps: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Return ``gap``, ``lane``, ``start_ns``, ``length_ns`` of the pieces of one device's gaps."""
    bounds = gaps.select_seq("gap", "lane", start_ns="gap_start_ns", until_ns="start_ns")
    bounds = bounds.sort("start_ns")
    inside = edges.join_asof(
        bounds, on="start_ns", by="lane", strategy="backward", check_sortedness=False
    ).filter(pl.col("start_ns") < pl.col("until_ns"))
    points = pl.concat([bounds, inside.select_seq(bounds.columns)]).unique()
    following = pl.col("start_ns").shift(-1).over("gap")
    return (
        points.sort("gap", "start_ns")
        .with_columns_seq(length_ns=following.fill_null(pl.col("until_ns")) - pl.col("start_ns"))
        .drop("until_ns")
    )


def _call_at(points: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Return the name of the API call that runs at each point on its thread."""
    found = (
        points.select_seq("lane", "start_ns")
        .with_row_index("point")
        .sort("start_ns")
        .join_asof(
            calls.select_seq("lane", "start_ns", "end_ns", "name"),
            on="start_ns",
            by="lane",
            strategy="backward",
            check_sortedness=False,
        )
        .sort("point")
    )
    running = pl.when(pl.col("start_ns") < pl.col("end_ns")).then("name")
    return found.select_seq(running.alias("api"))["api"]
