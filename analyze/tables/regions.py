"""Annotations and the GPU work launched inside them.

GPU work is attributed to a region by which launches happened inside it, never by time overlap:
``record_function`` does not synchronise, so the work of a region usually runs after its CPU end.
Backward work is launched by autograd's threads; it is reported apart.
"""

import polars as pl

from analyze.tables.host import Host
from analyze.tables.intervals import covered_ns

_AMOUNTS = ("gpu_busy_ns", "gpu_sum_ns", "gpu_ops", "kernels", "copies", "syncs")


def build_regions(host: Host, gpu_ops: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Return one row per annotation with the work launched on its thread, and the backward's.

    Args:
        host: the ops and annotations.
        gpu_ops: columns ``kind``, ``device_label``, ``start_ns``, ``dur_ns``, ``region_row``,
            ``lane``, ``api_start_ns``, ``phase``.
        calls: columns ``is_sync``, ``profiler_own``, ``region_row``, ``start_ns``, ``lane``.
    """
    nodes = host.nodes.with_row_index("node")
    regions = nodes.filter(~pl.col("is_op") & ~pl.col("absorbed")).select(
        "node", "name", "pid", "tid", "start_ns", "dur_ns", "phase"
    )
    work = work_of_regions(host, gpu_ops)
    backward = gpu_amounts(work.filter("elsewhere"), ["node"])
    joined = regions
    for part in (
        gpu_amounts(work.filter(~pl.col("elsewhere")), ["node"]),
        _syncs(calls, enclosing_regions(host)),
        backward.rename({name: f"backward_{name}" for name in backward.columns if name != "node"}),
    ):
        joined = joined.join(part, on="node", how="left", maintain_order="left")
    filled = [*_AMOUNTS, *(f"backward_{name}" for name in _AMOUNTS if name != "syncs")]
    return joined.with_columns(pl.col(filled).fill_null(0)).sort("start_ns")


def work_of_regions(host: Host, gpu_ops: pl.DataFrame) -> pl.DataFrame:
    """Return the GPU work of every annotation.

    Returns:
        The linked work, once for each annotation that it belongs to: ``node`` (the annotation, a
        row of ``host.nodes``), ``gpu_row`` (row of ``gpu_ops``), ``kind``, ``device_label``,
        ``start_ns``, ``dur_ns``, and ``elsewhere``: it is backward work that another thread
        launched while the annotation was open.
    """
    linked = gpu_ops.with_row_index("gpu_row").filter(pl.col("linked"))
    columns = ("gpu_row", "kind", "device_label", "start_ns", "dur_ns")
    own = linked.select(*columns, open_region="region_row", elsewhere=False)
    backward = _backward_elsewhere(linked, host).select(*columns, "open_region", elsewhere=True)
    return pl.concat([own, backward]).join(
        enclosing_regions(host), left_on="open_region", right_on="region_row", how="inner"
    )


def enclosing_regions(host: Host) -> pl.DataFrame:
    """Return (``region_row``, ``node``): each annotation with itself and all around it."""
    nodes = host.nodes
    annotations = nodes.with_row_index("node").filter(~pl.col("is_op"))
    parents = dict(zip(annotations["node"], annotations["parent"], strict=True))
    regions = nodes["region_row"].to_list()
    pairs: list[tuple[int, int]] = []
    for node in parents:
        around: int | None = node
        while around is not None:
            pairs.append((node, around))
            parent = parents[around]
            around = None if parent is None else regions[parent]
    return pl.DataFrame(pairs, schema={"region_row": pl.UInt32, "node": pl.UInt32}, orient="row")


def _syncs(calls: pl.DataFrame, enclosing: pl.DataFrame) -> pl.DataFrame:
    return (
        calls.filter(pl.col("is_sync") & ~pl.col("profiler_own"))
        .join(enclosing, on="region_row", how="inner")
        .group_by("node")
        .agg(syncs=pl.len().cast(pl.Int64))
    )


def _backward_elsewhere(gpu_ops: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Return the backward work that other threads launched while an annotation was open.

    The column ``open_region`` is the innermost such annotation of each other thread.
    """
    backward = gpu_ops.filter(pl.col("phase") == "backward")
    lanes = host.nodes.filter(~pl.col("is_op")).select("lane", "pid").unique(maintain_order=True)
    parts = [backward.clear().with_columns(open_region="region_row")]
    for lane, pid in lanes.iter_rows():
        elsewhere = backward.filter((pl.col("lane") != lane) & (pl.col("host_pid") == pid))
        points = elsewhere.select(
            pl.lit(lane, dtype=pl.UInt32).alias("lane"), start_ns=pl.col("api_start_ns")
        )
        node = host.forest.innermost_at(points)
        parts.append(elsewhere.with_columns(open_region=host.nodes["region_row"].gather(node)))
    return pl.concat(parts)


def gpu_amounts(gpu_ops: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return counts and times of GPU work per group.

    Args:
        gpu_ops: columns ``kind``, ``device_label``, ``start_ns``, ``dur_ns`` and those of ``by``.
        by: the grouping columns.

    Returns:
        The ``by`` columns, ``gpu_busy_ns`` (union on each device, devices added up),
        ``gpu_span_ns`` (first start to last end on each device, added up), ``gpu_sum_ns``,
        ``gpu_ops``, ``kernels``, ``copies``; all Int64.
    """
    times = (
        covered_ns(gpu_ops, [*by, "device_label"])
        .group_by(by)
        .agg(
            gpu_busy_ns=pl.col("busy_ns").sum(),
            gpu_span_ns=pl.col("span_ns").sum(),
            gpu_sum_ns=pl.col("sum_ns").sum(),
        )
    )
    counts = gpu_ops.group_by(by).agg(
        gpu_ops=pl.len().cast(pl.Int64),
        kernels=(pl.col("kind") == "kernel").sum().cast(pl.Int64),
        copies=(pl.col("kind") == "memcpy").sum().cast(pl.Int64),
    )
    return counts.join(times, on=by, how="left", nulls_equal=True).with_columns(
        pl.col("gpu_busy_ns", "gpu_span_ns", "gpu_sum_ns").fill_null(0)
    )
