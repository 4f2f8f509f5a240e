"""Attention calls: what was asked of each, which implementation computed it, and how fast.

A call is the outermost attention op of its thread. A backward pass is none, although its ops have
the same words in their names.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
import polars as pl

from analyze.tables.nesting import outermost
from analyze.tables.unit_rows import UNIT_OF_ROW, UnitWork
from analyze.tables.units import Units

ATTENTION_CALL = "attention call"

_CALL = re.compile(
    r"aten::_?scaled_dot_product_\w*attention\w*"
    r"|aten::_(flash|efficient|cudnn)_attention_forward\w*"
    r"|flash_attn\w*::\w*(forward|fwd)\w*"
    r"|flash_attn_\w+"
    r"|FlashAttn\w*Func"
    r"|_vllm_fa\d_C::\w*fwd\w*"
    r"|vllm::unified_\w*attention\w*"
    r"|xformers::efficient_attention_forward\w*"
    r"|xformers_flash\d?::flash_fwd\w*"
    r"|(\w+::)?flex_attention"
    r"|triton_(tem_fused_)?(\w+_)?flex_attention\w*"
)
"""Names of forward attention ops: torch's, and those of packages with kernels of their own."""

_NO_CALL = re.compile(r"backward|bwd|fwd_combine|^triton_(poi|red|per)_", re.IGNORECASE)
"""Backward ops, a helper of flash-attn, and what Inductor generates beside a flex attention."""

_BACKENDS: tuple[tuple[str, str | None], ...] = (
    (r"aten::_?scaled_dot_product_attention$", None),
    (r"aten::_scaled_dot_product_attention_math", "math"),
    (r"aten::_(scaled_dot_product_flash_attention|flash_attention_forward)", "flash"),
    (r"aten::_(scaled_dot_product_efficient_attention|efficient_attention_forward)", "efficient"),
    (r"aten::_(scaled_dot_product_cudnn_attention|cudnn_attention_forward)", "cudnn"),
    (r"aten::_scaled_dot_product_fused_attention_overrideable", "overrideable"),
    (r"aten::_scaled_dot_product_\w*attention(?!\w*backward)", "other"),
    (r"flash_attn|FlashAttn|_vllm_fa\d_C::", "flash_attn"),
    (r"xformers", "xformers"),
    (r"(\w+::|triton_\w*)?flex_attention", "flex"),
)
"""How names begin, and the implementation that they name; the first that fits."""

_IS_CAUSAL = {"True": True, "False": False}
_MASK_TYPE = {"0": False, "1": True, "2": True}
"""No mask; causal, aligned at the top left or at the bottom right corner."""

_CAUSAL: Mapping[str, tuple[int, Mapping[str, bool]]] = {
    "aten::scaled_dot_product_attention": (5, _IS_CAUSAL),
    "aten::_scaled_dot_product_attention_math": (5, _IS_CAUSAL),
    "aten::_scaled_dot_product_fused_attention_overrideable": (5, _IS_CAUSAL),
    "aten::_scaled_dot_product_flash_attention": (4, _IS_CAUSAL),
    "aten::_scaled_dot_product_flash_attention_for_cpu": (4, _IS_CAUSAL),
    "aten::_scaled_dot_product_efficient_attention": (6, _IS_CAUSAL),
    "aten::_scaled_dot_product_cudnn_attention": (6, _IS_CAUSAL),
    "aten::_flash_attention_forward": (8, _IS_CAUSAL),
    "aten::_efficient_attention_forward": (9, _MASK_TYPE),
    "aten::_cudnn_attention_forward": (10, _IS_CAUSAL),
    "flash_attn::_flash_attn_forward": (5, _IS_CAUSAL),
}
"""Which input says whether a mask is causal, and what its values mean.

From the signatures of torch 2.13 and flash-attn 2.8; older ones have something else at that place,
which is then taken as unknown.
"""

_HEADS_FIRST = re.compile(r"aten::_?scaled_dot_product_|aten::_cudnn_attention_forward")
"""Ops with inputs [..., heads, length, features]; others have [batch, length, heads, features]."""


def find_calls(ops: pl.DataFrame) -> Units:
    """Return the attention calls; what describes a call stands beside its interval.

    Args:
        ops: the result of ``build_ops`` with ``forward`` and ``step``, sorted by start.
    """
    names = ops["name"].drop_nulls().unique()
    calling = [name for name in names if is_attention_call(name)]
    found = ops.filter(pl.col("name").is_in(calling)).with_columns_seq(
        end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    calls = outermost(found).select_seq(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("index"),
        *("name", "pid", "lane", "start_ns", "end_ns"),
        *("op_chain", "source", "region", "forward", "step_row", "step", "dtype"),
        input_shapes="shapes",
    )
    return Units(ATTENTION_CALL, calls, any_thread=False, backward_elsewhere=False)


def is_attention_call(name: str) -> bool:
    """Whether a name is that of a forward attention op."""
    return bool(_CALL.fullmatch(name)) and not _NO_CALL.search(name)


def build_calls(work: UnitWork) -> pl.DataFrame:
    """Return the attention calls with their amounts; times in nanoseconds.

    Args:
        work: what was launched in the units of :func:`find_calls`.
    """
    inside = (
        work.facts.ops.lazy()
        .select_seq(UNIT_OF_ROW, "name", "lane", "start_ns")
        .drop_nulls(UNIT_OF_ROW)
        .collect()
    )
    told = pl.DataFrame(
        {
            "index": inside[UNIT_OF_ROW],
            "backend": _backends(inside["name"]),
            "causal": _causal(inside, work.facts.attention_inputs),
        }
    )
    by_call = told.group_by("index").agg(pl.col("backend", "causal").drop_nulls().first())
    rows = work.rows().join(by_call, on="index", how="left", maintain_order="left")
    return _add_speed(rows)


def _backends(names: pl.Series) -> pl.Series:
    distinct = names.drop_nulls().unique()
    backends = [_backend(name) for name in distinct]
    return names.replace_strict(distinct, backends, default=None, return_dtype=pl.String)


def _backend(name: str) -> str | None:
    return next((backend for start, backend in _BACKENDS if re.match(start, name)), None)


def _causal(ops: pl.DataFrame, attention_inputs: pl.DataFrame) -> pl.Series:
    """Return whether each op was asked for a causal mask; null where that was not recorded.

    Args:
        ops: columns ``name``, ``lane``, ``start_ns``.
        attention_inputs: the same, and ``concrete_inputs``.
    """
    written = attention_inputs.select_seq("name", "concrete_inputs").unique()
    known = written.with_columns_seq(
        causal=pl.Series([_is_causal(*row) for row in written.iter_rows()], dtype=pl.Boolean)
    )
    of_events = attention_inputs.join(
        known, on=["name", "concrete_inputs"], nulls_equal=True
    ).unique(["name", "lane", "start_ns"], keep="first")
    found = ops.join(of_events, on=["name", "lane", "start_ns"], how="left", maintain_order="left")
    return found["causal"]


def _is_causal(name: str, concrete_inputs: str | None) -> bool | None:
    values = orjson.loads(concrete_inputs or "null")
    if name not in _CAUSAL or not isinstance(values, list):
        return None
    place, meanings = _CAUSAL[name]
    value = values[place] if place < len(values) else None
    return meanings.get(value) if isinstance(value, str) else None


def _add_speed(calls: pl.DataFrame) -> pl.DataFrame:
    """Add ``shapes`` and ``tflops``, the matrix products of the forward over its GPU busy time.

    A causal mask halves the work, as in FlashAttention-2 (Dao, 2023, section 4.1). That holds where
    queries and keys are equally many; elsewhere it depends on how the mask is aligned: null.
    """
    asked = calls.select_seq("name", "input_shapes").unique()
    sizes = pl.DataFrame(
        [attention_call_size(*row) for row in asked.iter_rows()],
        schema={"shapes": pl.String, "flop": pl.Float64, "is_square": pl.Boolean},
        orient="row",
    )
    known = calls.join(
        pl.concat([asked, sizes], how="horizontal"),
        on=["name", "input_shapes"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    flop = pl.when(~pl.col("causal")).then("flop").when("is_square").then(pl.col("flop") / 2)
    speed = pl.when(pl.col("gpu_busy_ns") > 0).then(flop / pl.col("gpu_busy_ns") / 1000)
    return known.with_columns_seq(tflops=pl.when(pl.col("causal").is_not_null()).then(speed))


class CallSize(NamedTuple):
    """Shapes of query, key and value as JSON, and what they cost without a mask, in flop."""

    shapes: str | None
    flop: float | None
    is_square: bool | None


def attention_call_size(name: str, input_shapes: str | None) -> CallSize:
    """Return what an attention op computes, from the shapes of its inputs.

    Args:
        name: of the op.
        input_shapes: of all its inputs, as JSON.
    """
    shapes = orjson.loads(input_shapes or "[]")
    inputs = shapes[:3]
    if len(inputs) < 3 or not all(_is_shape(shape) for shape in inputs):
        return CallSize(None, None, None)
    text = orjson.dumps(inputs).decode()
    query, key, value = inputs
    if not len(query) == len(key) == len(value) or query[-1] != key[-1]:
        return CallSize(text, None, None)
    if not _HEADS_FIRST.match(name):
        if len(query) != 4 or _are_packed(shapes[3:]):
            return CallSize(text, None, None)
        query, key, value = (
            [batch, *heads, length, features] for batch, length, *heads, features in inputs
        )
    return attention_size(text, query, key, value)


def attention_size(text: str, query: list[int], key: list[int], value: list[int]) -> CallSize:
    """Return the size of an attention whose inputs are [..., heads, length, features]."""
    return CallSize(text, attention_flop(query, key, value), query[-2] == key[-2])


def _is_shape(shape: Any) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) >= 2
        and all(type(length) is int and length > 0 for length in shape)
    )


def _are_packed(others: list[Any]) -> bool:
    """Whether any other input is a vector: the lengths of sequences packed into one."""
    return any(isinstance(shape, list) and len(shape) == 1 for shape in others)


def attention_flop(query: list[int], key: list[int], value: list[int]) -> float:
    """Return what both matrix products cost, 2 flop for each multiplication and addition.

    For heads of one size it is ``4 * batch * heads * queries * keys * features``. Fewer heads of
    keys than of queries are shared, so the larger number counts.
    """
    batches = math.prod(max(pair) for pair in zip(query[:-2], key[:-2], strict=True))
    return 2.0 * batches * query[-2] * key[-2] * (query[-1] + value[-1])
