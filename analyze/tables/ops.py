"""The ops: what of the host's trees is reported, with the GPU work each op launched."""

import polars as pl

from analyze.tables.host import CHAIN_SEPARATOR, Host
from analyze.tables.kept import Kept

_COLUMNS = (
    "name",
    "start_ns",
    "dur_ns",
    "self_ns",
    "op_chain",
    "depth",
    "pid",
    "tid",
    "lane",
    "dtype",
    "shapes",
    "phase",
    "source",
    "module",
    "op_row",
)


_END = pl.col("start_ns") + pl.col("dur_ns")
_DEVICE_COLUMNS = ("own_device_ns", "own_gpu_ops", "device_ns", "gpu_ops")
"""Unknown, not nothing, where no GPU work was recorded, or some of it may be missing."""


def build_ops(host: Host, gpu_ops: pl.DataFrame, calls: pl.DataFrame, kept: Kept) -> pl.DataFrame:
    """Return the ops in the order of their starts; times in nanoseconds.

    Args:
        host: the ops and annotations.
        gpu_ops: columns ``op_row`` and ``dur_ns``.
        calls: columns ``op_row``, ``dur_ns`` and ``blocking``.
        kept: of which time the file holds all work.
    """
    nodes = host.nodes
    names = nodes["name"]
    waits = calls.filter("blocking").group_by("op_row").agg(waiting_ns=pl.col("dur_ns").sum())
    ops = nodes.select_seq(
        *(*_COLUMNS, "parent", "root_row", "region_row"),
        *_device_times(nodes, gpu_ops),
        _at_nodes(nodes, waits)["waiting_ns"],
        finished=pl.col("finished").fill_null(value=True),
    )[_reported_rows(nodes)]
    return (
        ops.drop("root_row", "region_row")
        .with_columns_seq(
            parent=names.gather(ops["parent"]),
            root_op=names.gather(ops["root_row"]),
            region=names.gather(ops["region_row"]),
        )
        .pipe(_add_call_index)
        .with_columns_seq(pl.when(gpu_ops.height > 0).then(pl.col(_DEVICE_COLUMNS)))
        .with_columns_seq(kept.known_in(_DEVICE_COLUMNS, _END, begun_is_whole=True))
    )


def _reported_rows(nodes: pl.DataFrame) -> pl.Series:
    """Return the rows of the ops that are reported, in the order of their starts."""
    is_reported = pl.col("is_op") & ~pl.col("absorbed")
    reported = nodes.select_seq("op_row", "start_ns", is_reported=is_reported).filter("is_reported")
    return reported.sort("start_ns", maintain_order=True)["op_row"]


def _add_call_index(ops: pl.DataFrame) -> pl.DataFrame:
    """Count the calls of each name; an op inside one of its own name is part of that call."""
    chains = ops["op_chain"].drop_nulls().unique()
    is_outermost = ops["op_chain"].replace_strict(
        chains, [_is_outermost(chain) for chain in chains], default=True, return_dtype=pl.Boolean
    )
    count = is_outermost.cast(pl.Int64).alias("call_index")
    return ops.with_columns_seq(count).with_columns_seq(
        pl.col("call_index").cum_sum().over("name") - 1
    )


def _is_outermost(chain: str) -> bool:
    *around, name = chain.split(CHAIN_SEPARATOR)
    return name not in around


def _device_times(nodes: pl.DataFrame, gpu_ops: pl.DataFrame) -> list[pl.Series]:
    """Sum GPU time and count GPU work per node: its own, and with its descendants'.

    A sum is unknown where a part of it is.
    """
    known = pl.col("dur_ns").null_count() == 0
    launched = (
        gpu_ops.drop_nulls("op_row")
        .group_by("op_row")
        .agg(
            own_device_ns=pl.when(known).then(pl.col("dur_ns").sum()),
            own_gpu_ops=pl.len().cast(pl.Int64),
        )
    )
    own = _at_nodes(nodes, launched)
    total_ns: list[int | None] = own["own_device_ns"].to_list()
    total_ops: list[int] = own["own_gpu_ops"].to_list()
    parents: list[int | None] = nodes["parent"].to_list()
    for row in range(nodes.height - 1, -1, -1):
        parent = parents[row]
        if parent is not None and total_ops[row]:
            total_ns[parent] = _added(total_ns[parent], total_ns[row])
            total_ops[parent] += total_ops[row]
    return [
        *(own["own_device_ns"], own["own_gpu_ops"]),
        pl.Series("device_ns", total_ns, dtype=pl.Int64),
        pl.Series("gpu_ops", total_ops, dtype=pl.Int64),
    ]


def _added(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _at_nodes(nodes: pl.DataFrame, sums: pl.DataFrame) -> pl.DataFrame:
    """Give each node its row of ``sums``, by their column ``op_row``; zeros where it has none."""
    rows = pl.DataFrame({"op_row": pl.int_range(nodes.height, dtype=pl.UInt32, eager=True)})
    found = sums.with_columns_seq(is_found=True)
    joined = rows.join(found, on="op_row", how="left", maintain_order="left")
    amounts = pl.exclude("op_row", "is_found")
    return joined.with_columns_seq(pl.when("is_found").then(amounts).otherwise(0))
