"""Matrices of attention scores that were written to memory: allocations of just their size.

Fused attention keeps the scores on the chip. An allocation made inside an attention call, or inside
attention written out as ops, whose size is that of batch x heads x queries x keys elements is one
of them, or a copy, a mask of that size or the result of a softmax. The match is by size alone.
"""

from typing import Any

import orjson
import polars as pl

from analyze.report.summary import microseconds
from analyze.tables.build import Trace
from analyze.tables.units import Units

_ITEM_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2}
_UPCAST_BYTES = 4
"""The math backend computes scores in fp32 where it is told not to reduce precision."""
_BLOCK_BYTES = 512
"""Torch's caching allocators round the size of a block up to a multiple of this."""

_SMALLEST_BYTES = 64 * _BLOCK_BYTES
"""Smaller ones cost nothing, and other small blocks would have their size by chance."""

_PRODUCTS = ("aten::bmm", "aten::baddbmm")
_MATRIX_SHAPES = {
    "unit": pl.Int64,
    "elements": pl.Int64,
    "item_bytes": pl.Int64,
    "shape": pl.String,
}


def score_matrices(trace: Trace) -> dict[str, Any]:
    """Return the allocations that have the size of score matrices, grouped.

    Returns:
        ``calls`` (attention calls, and attention written out as ops, whose sizes are known),
        ``calls_of_unknown_size``, ``count`` and ``bytes`` of the matching allocations, and
        ``matches``: by attention, shape and size, the largest in total first.
    """
    found = [_in_calls(trace), _in_ops(trace)]
    matches = [match for part in found for match in part["matches"]]
    return {
        "calls": sum(part["calls"] for part in found),
        "calls_of_unknown_size": sum(part["unknown"] for part in found),
        "count": sum(match["count"] for match in matches),
        "bytes": sum(match["total_bytes"] for match in matches),
        "matches": sorted(matches, key=lambda match: -match["total_bytes"]),
    }


def _in_calls(trace: Trace) -> dict[str, Any]:
    calls = trace.calls
    sizes = [_of_call(*row) for row in calls.select("index", "shapes", "dtype", "flop").iter_rows()]
    return _match(trace, trace.work_of_calls.units, sizes, "attention call")


def _of_call(
    index: int, shapes: str | None, dtype: str | None, flop: float | None
) -> tuple[int, int, int, str] | None:
    """Return the scores of one call: ``flop`` is 2 for each score and feature of key and value."""
    item_bytes = _ITEM_BYTES.get(dtype or "")
    if shapes is None or flop is None or item_bytes is None:
        return None
    query, key, value = orjson.loads(shapes)
    elements = round(flop / (2 * (query[-1] + value[-1])))
    return index, elements, item_bytes, f"query {_by_x(query)}, key {_by_x(key)}"


def _in_ops(trace: Trace) -> dict[str, Any]:
    ops = trace.facts.ops.drop_nulls("by_hand")
    products = ops.filter(pl.col("name").is_in(_PRODUCTS)).unique(
        "by_hand", keep="first", maintain_order=True
    )
    sizes = [_of_product(*row) for row in products.select("by_hand", "shapes", "dtype").iter_rows()]
    spans = (
        ops.group_by("by_hand", "pid", "lane", maintain_order=True)
        .agg(
            start_ns=pl.col("start_ns").min(),
            end_ns=(pl.col("start_ns") + pl.col("dur_ns")).max(),
            name=pl.lit("attention"),
        )
        .rename({"by_hand": "index"})
        .sort("start_ns")
    )
    units = Units("attention as ops", spans, any_thread=False, backward_elsewhere=False)
    return _match(trace, units, sizes, "attention written as ops")


def _of_product(
    index: int, shapes: str | None, dtype: str | None
) -> tuple[int, int, int, str] | None:
    """Return the scores of one batched product: [batch, queries, d] by [batch, d, keys]."""
    item_bytes = _ITEM_BYTES.get(dtype or "")
    matrices = [shape for shape in orjson.loads(shapes or "[]") if _is_batch_of_matrices(shape)]
    if item_bytes is None or len(matrices) < 2:
        return None
    (batch, queries, features), (_, inner, keys) = matrices[-2:]
    if inner != features:
        return None
    return index, batch * queries * keys, item_bytes, f"{batch}x{queries}x{keys}"


def _is_batch_of_matrices(shape: object) -> bool:
    return isinstance(shape, list) and len(shape) == 3 and all(type(n) is int for n in shape)


def _by_x(shape: list[int]) -> str:
    return "x".join(map(str, shape))


def _match(
    trace: Trace, units: Units, sizes: list[tuple[int, int, int, str] | None], what: str
) -> dict[str, Any]:
    """Match allocations inside the units against the size of their scores."""
    known = [size for size in sizes if size is not None]
    frame = pl.DataFrame(known, schema=_MATRIX_SHAPES, orient="row")
    memory = trace.memory
    located = (
        memory.with_columns(unit=units.index_at(memory))
        .filter(pl.col("kind") == "allocate")
        .join(frame, on="unit", how="inner")
    )
    own, upcast = pl.col("item_bytes"), pl.lit(_UPCAST_BYTES)
    matched = pl.when(_is_size_of(own)).then(own).when(_is_size_of(upcast)).then(upcast)
    matching = located.with_columns(item_bytes=matched).drop_nulls("item_bytes")
    groups = (
        matching.group_by("shape", "device_type", "device", "bytes", "item_bytes", "op_chain")
        .agg(
            count=pl.len(),
            calls=pl.col("unit").n_unique(),
            total_bytes=pl.col("bytes").sum(),
            lifetime_ns=pl.col("lifetime_ns").median(),
            source=pl.col("source").drop_nulls().mode().sort().first(),
        )
        .sort("total_bytes", "op_chain", "shape", descending=[True, False, False])
    )
    return {
        "calls": len(known),
        "unknown": len(sizes) - len(known),
        "matches": [_group(row, what) for row in groups.iter_rows(named=True)],
    }


def _is_size_of(item_bytes: pl.Expr) -> pl.Expr:
    """Tell an allocation of so many bytes an element, exact or rounded up to the next block."""
    exact = pl.col("elements") * item_bytes
    over = pl.col("bytes") - exact
    is_rounded = over.is_between(1, _BLOCK_BYTES - 1) & (pl.col("bytes") % _BLOCK_BYTES == 0)
    return (exact >= _SMALLEST_BYTES) & ((over == 0) | is_rounded)


def _group(row: dict[str, Any], what: str) -> dict[str, Any]:
    names = ("shape", "bytes", "item_bytes", "count", "calls", "total_bytes", "op_chain", "source")
    return {
        "inside": what,
        **{name: row[name] for name in names},
        "median_lifetime_us": microseconds(row["lifetime_ns"]),
    }
