"""Annotations and the GPU work launched inside them.

GPU work is attributed to a region by which launches happened inside it, never by time overlap:
``record_function`` does not synchronise, so the work of a region usually runs after its CPU end.
Backward work is launched by autograd's threads; it is reported apart.
"""

from collections.abc import Iterable, Iterator

import polars as pl

from analyze.tables.gpu_runs import amounts_of_runs, runs_of_work
from analyze.tables.host import IS_ANNOTATION, Host
from analyze.tables.intervals import covered_ns
from analyze.tables.kept import Kept

_ROWS_AT_A_TIME = 1 << 18
"""Work is looked at once for each annotation around it: at most about so many rows at a time."""

_AMOUNTS = ("gpu_busy_ns", "gpu_sum_ns", "gpu_ops", "kernels", "copies")


def build_regions(
    host: Host, gpu_ops: pl.DataFrame, calls: pl.DataFrame, kept: Kept
) -> pl.DataFrame:
    """Return one row per annotation with the work launched on its thread, and the backward's.

    Args:
        host: the ops and annotations.
        gpu_ops: columns ``kind``, ``device_label``, ``start_ns``, ``dur_ns``, ``region_row``,
            ``lane``, ``api_start_ns``, ``phase``.
        calls: columns ``is_sync``, ``profiler_own``, ``region_row``, ``start_ns``, ``lane``.
        kept: of which time the file holds all work; elsewhere amounts are null.

    Returns:
        The documented columns, and ``node`` and ``last`` (see :func:`spans_of_regions`) and
        ``work_end_ns`` (last end of all that work; null where there is none).
    """
    nodes = host.nodes.with_row_index("node")
    regions = nodes.filter(IS_ANNOTATION).select_seq(
        "node", "name", "pid", "tid", "start_ns", "dur_ns", "phase"
    )
    spans = spans_of_regions(host)
    runs = runs_of_work(work_of_regions(host, gpu_ops))
    amounts = [_amounts(batch) for batch in rows_inside(spans.with_columns_seq(key="node"), runs)]
    syncs = calls.filter(pl.col("is_sync") & ~pl.col("profiler_own"))
    counts = spans.select_seq("node", "last", syncs=_count_inside(spans, syncs))
    joined = regions.join(counts, on="node", how="left", maintain_order="left").join(
        pl.concat(amounts), on="node", how="left", maintain_order="left"
    )
    counted = joined.with_columns_seq(
        *no_work_is_zero(_AMOUNTS), *no_work_is_zero(_AMOUNTS, "backward_")
    )
    amounts_of_all = (*_AMOUNTS, *(f"backward_{name}" for name in _AMOUNTS), "syncs")
    end = pl.col("start_ns") + pl.col("dur_ns")
    return counted.with_columns_seq(kept.known_in(amounts_of_all, end)).sort("start_ns")


def _amounts(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the amounts of the work of whole annotations, by ``node``."""
    own = amounts_of_runs(runs.filter(~pl.col("elsewhere")), "node")
    backward = amounts_of_runs(runs.filter("elsewhere"), "node")
    backward = backward.rename({n: f"backward_{n}" for n in backward.columns if n != "node"})
    ends = runs.group_by("node").agg(work_end_ns=pl.col("end_ns").max())
    return ends.join(own, on="node", how="left").join(backward, on="node", how="left")


def work_of_regions(host: Host, gpu_ops: pl.DataFrame) -> pl.DataFrame:
    """Return the GPU work launched while an annotation was open.

    Returns:
        The linked work, once for each thread in an annotation of which it was launched:
        ``region_row`` (the innermost annotation, a row of ``host.nodes``), ``gpu_row`` (row of
        ``gpu_ops``), ``kind``, ``device_label``, ``start_ns``, ``dur_ns``, and ``elsewhere``: it is
        backward work that another thread launched while the annotation was open.
    """
    linked = gpu_ops.with_row_index("gpu_row").filter(pl.col("linked"))
    columns = ("gpu_row", "kind", "device_label", "start_ns", "dur_ns", "region_row")
    own = linked.select_seq(*columns, elsewhere=False)
    backward = _backward_elsewhere(linked, host).select_seq(*columns, elsewhere=True)
    return pl.concat([own, backward]).drop_nulls("region_row")


def spans_of_regions(host: Host) -> pl.DataFrame:
    """Return (``node``, ``last``): each annotation with the last annotation inside it, or itself.

    Both are rows of ``host.nodes``, where parents stand before their children: the annotations
    inside one are all those from it to the last.
    """
    nodes = host.nodes
    annotations = nodes.with_row_index("node").filter(IS_ANNOTATION)
    around = nodes["region_row"].gather(annotations["parent"])
    rows: list[int] = annotations["node"].to_list()
    last = dict(zip(rows, rows, strict=True))
    for node, parent in zip(reversed(rows), reversed(around.to_list()), strict=True):
        if parent is not None:
            last[parent] = max(last[parent], last[node])
    schema = {"node": pl.UInt32, "last": pl.UInt32}
    return pl.DataFrame({"node": rows, "last": list(last.values())}, schema=schema)


def rows_inside(spans: pl.DataFrame, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows inside annotations, once for each annotation, some annotations at a time.

    All of them at once would be as many as the rows times the depth of the nesting.

    Args:
        spans: columns ``node`` and ``last`` as of :func:`spans_of_regions`, ``key``, and any
            others, which the rows get. Spans with the same key are yielded together.
        rows: column ``region_row``, the innermost annotation around each, and any others.

    Yields:
        At least one frame, without ``key`` and ``region_row``; about ``_ROWS_AT_A_TIME`` rows, or
        those of one key.
    """
    rows = rows.drop_nulls("region_row").sort("region_row", maintain_order=True)
    places = rows.get_column("region_row")
    spans = spans.with_columns_seq(
        begin=places.search_sorted(spans["node"], side="left").cast(pl.Int64),
        end=places.search_sorted(spans["last"], side="right").cast(pl.Int64),
    )
    rows = rows.drop("region_row")
    for batch in _batches(spans):
        found = batch.with_columns_seq(row=pl.int_ranges("begin", "end")).explode("row")
        found = found.drop_nulls("row")
        spread = found.drop("key", "begin", "end", "row")
        yield pl.concat([spread, rows[found["row"]]], how="horizontal")


def _batches(spans: pl.DataFrame) -> list[pl.DataFrame]:
    """Cut spans of ``begin`` to ``end`` into batches of whole keys; at least one."""
    size = (pl.col("end") - pl.col("begin")).sum().over("key")
    sized = spans.with_columns_seq(size=size).sort("key", maintain_order=True)
    until = pl.when(pl.col("key").is_first_distinct()).then("size").otherwise(0).cum_sum()
    numbered = sized.with_columns_seq(batch=(until - pl.col("size")) // _ROWS_AT_A_TIME).drop(
        "size"
    )
    parts = numbered.partition_by("batch", maintain_order=True, include_key=False)
    return parts or [numbered.drop("batch")]


def _count_inside(spans: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Return how many rows, by their ``region_row``, lie in each annotation."""
    places = rows["region_row"].drop_nulls().sort()
    until = places.search_sorted(spans["last"], side="right").cast(pl.Int64)
    return until - places.search_sorted(spans["node"], side="left").cast(pl.Int64)


def _backward_elsewhere(gpu_ops: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Return the backward work that other threads launched while an annotation was open.

    The column ``region_row`` is the innermost such annotation of each other thread.
    """
    backward = gpu_ops.filter(pl.col("phase") == "backward")
    lanes = (
        host.nodes.filter(~pl.col("is_op")).select_seq("lane", "pid").unique(maintain_order=True)
    )
    parts = [backward.clear()]
    for lane, pid in lanes.iter_rows():
        same_process = pl.col("host_pid") == pl.lit(pid, dtype=pl.String)
        elsewhere = backward.filter((pl.col("lane") != lane) & same_process)
        points = elsewhere.select_seq(
            pl.lit(lane, dtype=pl.UInt32).alias("lane"), start_ns=pl.col("api_start_ns")
        )
        node = host.forest.innermost_at(points)
        region_row = host.nodes["region_row"].gather(node)
        parts.append(elsewhere.with_columns_seq(region_row=region_row).drop_nulls("region_row"))
    return pl.concat(parts)


def gpu_amounts(gpu_ops: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return counts and times of GPU work per group.

    Args:
        gpu_ops: columns ``kind``, ``device_label``, ``start_ns``, ``dur_ns``,
            ``removed_before_ns`` and those of ``by``.
        by: the grouping columns.

    Returns:
        The ``by`` columns, ``gpu_busy_ns`` (union on each device, devices added up),
        ``gpu_span_ns`` (first start to last end on each device, added up), ``gpu_sum_ns``,
        ``gpu_ops``, ``kernels``, ``copies``; all Int64. Times are null where there is work, but
        none with usable times.
    """
    times = (
        covered_ns(gpu_ops, [*by, "device_label"], pl.col("removed_before_ns"))
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
    return counts.join(times, on=by, how="left", nulls_equal=True)


def no_work_is_zero(amounts: Iterable[str], prefix: str = "") -> list[pl.Expr]:
    """Set amounts of :func:`gpu_amounts` to 0 where there was no group; unknown times stay null."""
    has_none = pl.col(f"{prefix}gpu_ops").is_null()
    return [
        pl.when(has_none).then(0).otherwise(pl.col(f"{prefix}{name}")).alias(f"{prefix}{name}")
        for name in amounts
    ]
