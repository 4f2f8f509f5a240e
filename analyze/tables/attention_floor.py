"""The least time an attention can take: its matrix products at the device's published peak."""

from collections.abc import Callable

import orjson
import polars as pl

from analyze.kernels.peaks import Peak
from analyze.tables.by_hand import BATCHED_PRODUCTS
from analyze.tables.by_hand_calls import find_by_hand
from analyze.tables.calls import CallSize, attention_call_size, attention_size, is_attention_call

_CAUSAL_PART = 0.5
"""Share of the products that a causal mask leaves (Dao, FlashAttention-2, 2023, section 4.1)."""

_AT = ["lane", "start_ns"]


def attention_floor(ops: pl.DataFrame, peak: Peak | None) -> pl.Series:
    """Return the least time of the attention that begins with each op, in nanoseconds.

    It begins with an attention op, or with the first product of an attention written out as ops.
    Where queries and keys are equally many a causal mask may save half of the products, so only
    the other half counts: a bound that holds for any implementation in that dtype.

    Args:
        ops: the result of ``build_ops`` with ``forward``, ``step`` and ``by_hand``.
        peak: of the device; None where it is not known.

    Returns:
        Integers in the order of ``ops``; null where no attention begins, and where its shapes, its
        dtype or the peak are not known.
    """
    rows = ops.select_seq("name", "shapes", "dtype", *_AT).with_row_index("row")
    of_ops = _floors(_attention_ops(rows), attention_call_size, ["name", "shapes"], peak)
    by_hand = _floors(_first_products(rows, ops), _by_hand_size, ["input_shapes"], peak)
    floors = pl.concat([of_ops, by_hand]).unique("row")
    return rows.join(floors, on="row", how="left", maintain_order="left")["floor_ns"]


def _attention_ops(rows: pl.DataFrame) -> pl.DataFrame:
    names = rows["name"].drop_nulls().unique()
    return rows.filter(pl.col("name").is_in(list(filter(is_attention_call, names))))


def _first_products(rows: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    begins = find_by_hand(ops).intervals.select_seq(*_AT, "input_shapes")
    return rows.filter(pl.col("name").is_in(BATCHED_PRODUCTS)).join(begins, on=_AT)


def _by_hand_size(input_shapes: str | None) -> CallSize:
    if input_shapes is None:
        return CallSize(None, None, None)
    return attention_size(input_shapes, *orjson.loads(input_shapes))


def _floors(
    begins: pl.DataFrame,
    size_of: Callable[..., CallSize],
    arguments: list[str],
    peak: Peak | None,
) -> pl.DataFrame:
    """Return ``row`` and ``floor_ns``; each combination of arguments and dtype is asked once."""
    keys = [*arguments, "dtype"]
    asked = begins.select_seq(keys).unique()
    floors = [_floor_ns(size_of(*inputs), dtype, peak) for *inputs, dtype in asked.iter_rows()]
    known = asked.with_columns_seq(floor_ns=pl.Series(floors, dtype=pl.Int64))
    return begins.join(known, on=keys, how="left", nulls_equal=True).select_seq("row", "floor_ns")


def _floor_ns(size: CallSize, dtype: str | None, peak: Peak | None) -> int | None:
    tflops = peak.tflops.get(dtype or "") if peak is not None else None
    if tflops is None or size.flop is None:
        return None
    part = _CAUSAL_PART if size.is_square else 1.0
    return round(size.flop * part / tflops / 1000)
