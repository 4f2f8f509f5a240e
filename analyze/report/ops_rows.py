"""The rows behind ``analyze ops``: every host event that torch's ``key_averages()`` counts.

Those are ops, annotations and calls of the GPU runtime, nested into each other by time on their
thread. As in torch the self time of an op is without the runtime calls it makes: they are rows of
their own (torch 2.13, torch/autograd/profiler.py ``_parse_kineto_results``).
"""

import polars as pl

from analyze.tables.build import Trace
from analyze.tables.host import IS_ANNOTATION, STEP_PREFIX
from analyze.tables.intervals import covered_ns
from analyze.tables.nesting import ROUNDING_NS, nest

OP, ANNOTATION, RUNTIME = "op", "annotation", "runtime"

EVERY_STEP = "ProfilerStep*"
"""What torch's table calls the ProfilerSteps, which it counts as one."""

_FACTS = ("shapes", "source", "module", "phase", "region", "step")


def host_rows(trace: Trace) -> pl.DataFrame:
    """Return one row per op, annotation and runtime call; times in integer nanoseconds.

    Returns:
        ``kind`` (op, annotation, runtime), ``name``, ``cpu_ns`` (duration), ``self_cpu_ns``
        (without what the rows inside it cover), ``device_ns`` (GPU work launched inside it,
        summed), ``self_device_ns`` (of that, what it launched itself: an op what no op inside it
        did, an annotation what no op did; null where no time of GPU work is known), and the columns
        ``shapes``, ``source``, ``module``, ``phase``, ``region``, ``step`` of table ``ops``. The
        ops come first, in the order of that table.
    """
    calls = _runtime_calls(trace)
    inside = _time_of_rows_inside(trace, calls)
    rows = pl.concat([_ops(trace, inside), _annotations(trace, inside), _runtime(calls)])
    recorded = trace.facts.gpu_ops["dur_ns"].count() > 0
    return rows.with_columns(
        pl.when(recorded).then(pl.col("self_device_ns", "device_ns")),
        as_one_step("name"),
        as_one_step("region"),
    )


def as_one_step(column: str) -> pl.Expr:
    """Return a column of names with the ProfilerSteps under one name, as in torch's table."""
    is_step = pl.col(column).str.starts_with(STEP_PREFIX)
    return pl.when(is_step).then(pl.lit(EVERY_STEP)).otherwise(column).alias(column)


def _ops(trace: Trace, inside: pl.DataFrame) -> pl.DataFrame:
    ops = trace.facts.ops.join(
        inside, left_on="op_row", right_on="node", how="left", maintain_order="left"
    )
    return ops.select(
        *(pl.lit(OP).alias("kind"), "name", *_FACTS),
        cpu_ns="dur_ns",
        self_cpu_ns=_without_rows_inside(),
        device_ns="device_ns",
        self_device_ns="own_device_ns",
    )


def _annotations(trace: Trace, inside: pl.DataFrame) -> pl.DataFrame:
    """Return the annotations; each is the region that it and what it launches itself lie in."""
    facts = trace.facts
    nodes = facts.host.nodes.with_row_index("node")
    annotations = nodes.filter(IS_ANNOTATION)
    unowned = facts.gpu_ops.filter(pl.col("op_row").is_null() & pl.col("region_row").is_not_null())
    known = pl.col("dur_ns").null_count() == 0
    own = unowned.group_by(node="region_row").agg(
        self_device_ns=pl.when(known).then(pl.col("dur_ns").sum()), launches=pl.lit(value=True)
    )
    launched = trace.regions.select("node", device_ns="gpu_sum_ns")
    for part in (inside, launched, own):
        annotations = annotations.join(part, on="node", how="left", maintain_order="left")
    step = facts.steps.number_of(facts.steps.index_at(annotations))
    return annotations.with_columns(step=step).select(
        *(pl.lit(ANNOTATION).alias("kind"), "name"),
        *(pl.col("name").alias("region") if fact == "region" else fact for fact in _FACTS),
        cpu_ns="dur_ns",
        self_cpu_ns=_without_rows_inside(),
        device_ns="device_ns",
        self_device_ns=pl.when("launches").then("self_device_ns").otherwise(0),
    )


def _without_rows_inside() -> pl.Expr:
    return pl.col("dur_ns") - pl.col("inside_ns").fill_null(0)


def _runtime_calls(trace: Trace) -> pl.DataFrame:
    """Return the runtime calls with ``node`` (innermost op or annotation around), nested."""
    calls = trace.facts.api_calls.with_columns(
        node=pl.max_horizontal("op_row", "region_row"),  # of two around it, the inner comes later
        event_index=pl.lit(None, dtype=pl.Int64),
    ).drop_nulls(["start_ns", "end_ns"])
    return nest(calls).nodes


def _time_of_rows_inside(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """Return, per op or annotation, the time that the rows directly inside it cover together."""
    nodes = trace.facts.host.nodes
    children = nodes.filter(~pl.col("absorbed")).select("start_ns", "end_ns", node="parent")
    outermost = calls.filter(pl.col("parent").is_null())
    made = outermost.select("start_ns", "end_ns", node=_holding(outermost, nodes))
    rows = pl.concat([children, made])
    return _time_inside(rows, "node", nodes["end_ns"])


def _holding(calls: pl.DataFrame, nodes: pl.DataFrame) -> pl.Series:
    """Return what each call lies in as a whole; null for nothing.

    Calls that outlast what they started in are recorded: as in torch and in :func:`nest`, such a
    call is no child of it, and the ancestors are tried.
    """
    node, ends, parents = calls["node"], nodes["end_ns"] + ROUNDING_NS, nodes["parent"]
    while True:
        outlasts = (calls["end_ns"] > ends.gather(node)).fill_null(value=False)
        if not outlasts.any():
            return node
        node = node.zip_with(~outlasts, parents.gather(node))


def _time_inside(intervals: pl.DataFrame, around: str, ends: pl.Series) -> pl.DataFrame:
    """Return the time that intervals cover of what is directly around them; overlap counts once.

    Args:
        intervals: columns ``start_ns``, ``end_ns`` and ``around``.
        around: the column that names, by its row in ``ends``, what each interval lies in; null for
            nothing.
        ends: the end of each of those.

    Returns:
        ``around`` and ``inside_ns``; what has nothing inside is left out.
    """
    inside = intervals.drop_nulls(around)
    until = pl.min_horizontal("end_ns", ends.gather(inside[around]))
    cut = inside.with_columns(dur_ns=until - pl.col("start_ns"))
    return covered_ns(cut, [around]).select(around, inside_ns="busy_ns")


def _runtime(calls: pl.DataFrame) -> pl.DataFrame:
    inner = calls.filter(pl.col("parent").is_not_null())
    of_inner = _time_inside(inner, "parent", calls["end_ns"]).rename({"parent": "row"})
    joined = calls.with_row_index("row").join(of_inner, on="row", how="left", maintain_order="left")
    nothing = pl.lit(0, dtype=pl.Int64)
    return joined.with_columns(
        shapes=pl.lit(None, dtype=pl.String), phase=pl.col("phase").fill_null("other")
    ).select(
        *(pl.lit(RUNTIME).alias("kind"), "name"),
        *_FACTS,
        cpu_ns="dur_ns",
        self_cpu_ns=_without_rows_inside(),
        device_ns=nothing,
        self_device_ns=nothing,
    )
