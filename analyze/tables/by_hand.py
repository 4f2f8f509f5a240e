"""Attention written out as ops: a batched product, a softmax, and a batched product again."""

import polars as pl

BATCHED_PRODUCTS = ("aten::bmm", "aten::baddbmm")
"""What the two products of an attention are."""

_PRODUCTS = (
    *BATCHED_PRODUCTS,
    "aten::mm",
    "aten::addmm",
    "aten::mv",
    "aten::addmv",
    "aten::linear",
    "aten::_scaled_mm",
    "aten::convolution",
    "aten::scaled_dot_product_attention",
)
_SOFTMAX = "aten::_softmax"
_FUSED_OR_ITS_MATH = "scaled_dot_product"


def find_spans(ops: pl.DataFrame) -> pl.DataFrame:
    """Return the attentions written out as ops.

    One spans the ops of a thread from the batched product whose result a softmax takes to the end
    of the batched product after it. A router's or a classifier's softmax lies between products that
    are not batched; the math backend of scaled_dot_product_attention is not written by hand.

    Args:
        ops: columns ``name``, ``op_chain``, ``lane``, ``start_ns``, ``dur_ns``.

    Returns:
        Columns ``number``, ``lane``, ``start_ns``, ``end_ns``, sorted by start.
    """
    own = ~pl.col("op_chain").str.contains(_FUSED_OR_ITS_MATH, literal=True)
    parts = (
        ops.select_seq(
            "name", "op_chain", "lane", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
        )
        .filter(pl.col("name").is_in([*_PRODUCTS, _SOFTMAX]))
        .with_columns_seq(own=own.fill_null(value=True))
        .filter(pl.col("own") | (pl.col("name") != _SOFTMAX))
        .sort("lane", "start_ns", maintain_order=True)
    )
    batched = pl.col("name").is_in(BATCHED_PRODUCTS) & pl.col("own")
    return (
        parts.with_columns_seq(
            start_ns=pl.col("start_ns").shift(1).over("lane"),
            end_ns=pl.col("end_ns").shift(-1).over("lane"),
            before=batched.shift(1).over("lane"),
            after=batched.shift(-1).over("lane"),
        )
        .filter((pl.col("name") == _SOFTMAX) & pl.col("before") & pl.col("after"))
        .select_seq("lane", "start_ns", "end_ns")
        .sort("start_ns")
        .with_row_index("number")
    )


def number_at(points: pl.DataFrame, spans: pl.DataFrame) -> pl.Series:
    """Return the number of the attention written out as ops at each point; null for none.

    Args:
        points: columns ``lane``, ``start_ns``; null where not known.
        spans: the result of :func:`find_spans`.

    Returns:
        Int64 ``by_hand`` in the order of ``points``.
    """
    if spans.is_empty():
        return pl.repeat(None, points.height, dtype=pl.Int64, eager=True).alias("by_hand")
    found = (
        points.select_seq("lane", "start_ns")
        .with_row_index("row")
        .sort("start_ns")
        .join_asof(spans, on="start_ns", by="lane", strategy="backward", check_sortedness=False)
        .sort("row")
    )
    inside = pl.when(pl.col("start_ns") < pl.col("end_ns")).then("number").cast(pl.Int64)
    return found.select_seq(inside.alias("by_hand"))["by_hand"]
