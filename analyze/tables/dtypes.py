"""Data types of op inputs, in the one list of names that the tables use.

``precision``, ``op_dtype`` and ``root_dtype`` share it: fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8
complex other; null is unknown.
"""

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


def input_dtypes(types: pl.Series) -> pl.Series:
    """Map what was recorded of ops' input types to dtypes; null where nothing was.

    Args:
        types: Kineto's argument ``Input type`` as JSON text.
    """
    distinct = types.drop_nulls().unique()
    dtypes = [_dtype_of(orjson.loads(text)) for text in distinct]
    return types.replace_strict(distinct, dtypes, default=None, return_dtype=pl.String)


def _dtype_of(types: object) -> str | None:
    if not isinstance(types, list):
        return None
    return input_dtype([name for name in types if isinstance(name, str)])
