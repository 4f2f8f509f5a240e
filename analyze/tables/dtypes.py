"""Data types of op inputs, in the one list of names that the tables use.

``precision``, ``op_dtype`` and ``root_dtype`` share it: fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8
complex other; null is unknown.
"""

from collections.abc import Callable
from typing import Any

import orjson
import polars as pl

_BY_PREFIX: tuple[tuple[str, str], ...] = (
    ("c10::complex", "complex"),
    ("c10::Half", "fp16"),
    ("c10::BFloat16", "bf16"),
    ("c10::Float8", "fp8"),
    ("c10::Float4", "fp4"),
    ("double", "fp64"),
    ("float", "fp32"),
    ("signed char", "int8"),
    ("unsigned char", "int8"),
    ("c10::qint8", "int8"),
    ("c10::quint8", "int8"),
)
_NOT_TENSORS = frozenset({"", "Scalar", "ScalarList", "TensorList", "GenericList", "None"})
_FLOATING = frozenset({"fp64", "fp32", "fp16", "bf16", "fp8", "fp4", "complex"})


def input_dtype(types: list[str]) -> str | None:
    """Return the dtype an op computes on: its first floating tensor's, else its first tensor's.

    Args:
        types: the op's ``Input type`` argument as Kineto writes it, C++ type names.
    """
    dtypes = [_dtype(name) for name in types if name not in _NOT_TENSORS]
    floating = (dtype for dtype in dtypes if dtype in _FLOATING)
    return next(floating, dtypes[0] if dtypes else None)


def _dtype(name: str) -> str:
    return next((dtype for prefix, dtype in _BY_PREFIX if name.startswith(prefix)), "other")


def input_dtypes(inputs: pl.Series) -> pl.Series:
    """Map the recorded inputs of ops to dtypes; null where none was recorded.

    Args:
        inputs: the column ``inputs`` of the ``ops`` family: JSON objects of Kineto's arguments.
    """
    return _map_distinct(inputs, _dtype_of)


def input_shapes(inputs: pl.Series) -> pl.Series:
    """Map the recorded inputs of ops to their shapes as JSON text; null where none was recorded."""
    return _map_distinct(inputs, _shapes_of)


def _map_distinct(inputs: pl.Series, get: Callable[[dict[str, Any]], str | None]) -> pl.Series:
    distinct = inputs.drop_nulls().unique()
    values = [get(orjson.loads(text)) for text in distinct]
    return inputs.replace_strict(distinct, values, default=None, return_dtype=pl.String)


def _dtype_of(inputs: dict[str, Any]) -> str | None:
    types = inputs.get("Input type")
    if not isinstance(types, list):
        return None
    return input_dtype([name for name in types if isinstance(name, str)])


def _shapes_of(inputs: dict[str, Any]) -> str | None:
    shapes = inputs.get("Input Dims", inputs.get("Input dims"))
    return orjson.dumps(shapes).decode() if isinstance(shapes, list) else None
