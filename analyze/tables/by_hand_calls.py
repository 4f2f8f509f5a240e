"""Attention written out as ops, as units like the calls of attention ops."""

from typing import Any

import orjson
import polars as pl

from analyze.tables.by_hand import BATCHED_PRODUCTS
from analyze.tables.calls import attention_flop
from analyze.tables.unit_rows import UnitWork
from analyze.tables.units import Units

BY_HAND = "attention by hand"


def find_by_hand(ops: pl.DataFrame) -> Units:
    """Return the hand-written attentions: from their first batched product to the last one's end.

    Args:
        ops: the result of ``build_ops`` with ``forward``, ``step`` and ``by_hand``.
    """
    parts = ops.drop_nulls("by_hand").sort("start_ns", maintain_order=True)
    products = parts.filter(pl.col("name").is_in(BATCHED_PRODUCTS))
    of_first = ("pid", "lane", "op_chain", "source", "region", "forward", "step", "dtype")
    spans = (
        products.group_by("by_hand", maintain_order=True)
        .agg(
            pl.col(*of_first, "start_ns").first(),
            end_ns=(pl.col("start_ns") + pl.col("dur_ns")).max(),
            scores=pl.struct("name", "shapes").first(),
            output=pl.struct("name", "shapes").last(),
        )
        .sort("start_ns")
    )
    inputs = [_inputs(*row) for row in spans.select_seq("scores", "output").iter_rows()]
    intervals = spans.drop("scores", "output", "by_hand").with_columns_seq(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("index"),
        pl.lit(BY_HAND).alias("name"),
        input_shapes=pl.Series(inputs, dtype=pl.String),
    )
    return Units(BY_HAND, intervals, any_thread=False, backward_elsewhere=False)


def build_by_hand(work: UnitWork) -> pl.DataFrame:
    """Return the hand-written attentions with their amounts, times in nanoseconds.

    ``tflops`` counts both matrix products in full: written out, a mask saves none of them.

    Args:
        work: what was launched in the units of :func:`find_by_hand`.
    """
    rows = work.rows()
    asked = rows.select_seq(shapes="input_shapes").unique()
    flop = pl.Series([_flop(*row) for row in asked.iter_rows()], dtype=pl.Float64)
    known = rows.with_columns_seq(shapes="input_shapes").join(
        asked.with_columns_seq(flop=flop),
        on="shapes",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return known.with_columns_seq(
        backend=pl.lit(None, dtype=pl.String),
        causal=pl.lit(None, dtype=pl.Boolean),
        tflops=pl.when(pl.col("gpu_busy_ns") > 0).then(
            pl.col("flop") / pl.col("gpu_busy_ns") / 1000
        ),
    )


def _flop(shapes: str | None) -> float | None:
    return None if shapes is None else attention_flop(*orjson.loads(shapes))


def _inputs(scores: dict[str, Any], output: dict[str, Any]) -> str | None:
    """Return the shapes of query, key and value that the two products imply, as JSON."""
    first, last = _operands(**scores), _operands(**output)
    if first is None or last is None:
        return None
    (batch, queries, size), (_, _, keys) = first
    (_, rows, columns), value = last
    if (rows, columns) != (queries, keys):
        return None
    return orjson.dumps([[batch, queries, size], [batch, keys, size], value]).decode()


def _operands(name: str, shapes: str | None) -> tuple[list[int], list[int]] | None:
    """Return the shapes of the two factors of a batched product; ``baddbmm`` adds to a third."""
    written = orjson.loads(shapes or "[]")
    factors = written[1:3] if name == "aten::baddbmm" else written[:2]
    if len(factors) != 2 or not all(_is_batch_of_matrices(shape) for shape in factors):
        return None
    left, right = factors
    return (left, right) if left[0] == right[0] and left[2] == right[1] else None


def _is_batch_of_matrices(shape: Any) -> bool:
    return (
        isinstance(shape, list) and len(shape) == 3 and all(type(n) is int and n > 0 for n in shape)
    )
