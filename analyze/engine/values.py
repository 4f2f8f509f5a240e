"""Typed polars expressions: what an expression of a rule compiles to."""

from enum import Enum
from typing import NamedTuple

import polars as pl

MAX_NUMBER = 2**53
"""Largest whole number that float64 counts exactly."""

Scalar = bool | int | float | str
"""A constant of a rule."""

Value = Scalar | list[Scalar]
"""The value of a parameter."""


class Kind(Enum):
    """What the values of an expression are; the value is the word for people."""

    NUMBER = "a number"
    TEXT = "text"
    FLAG = "true or false"
    NULL = "null"


def kind_of_dtype(dtype: pl.DataType | type[pl.DataType]) -> Kind:
    """Return the kind of a column's values."""
    if dtype == pl.String:
        return Kind.TEXT
    return Kind.FLAG if dtype == pl.Boolean else Kind.NUMBER


def kind_of_value(value: Scalar | None) -> Kind:
    """Return the kind of a constant."""
    if value is None:
        return Kind.NULL
    if isinstance(value, bool):
        return Kind.FLAG
    return Kind.TEXT if isinstance(value, str) else Kind.NUMBER


def is_usable(value: Scalar | None) -> bool:
    """Whether a constant can be computed with: numbers must be finite and exact in float64."""
    return isinstance(value, str) or value is None or abs(value) <= MAX_NUMBER


class Typed(NamedTuple):
    """A compiled expression.

    Attributes:
        expr: the polars expression.
        kind: of its values.
        constant: its value, when it is a constant of the rule.
        per_row: it has one value per row of the table.
        source: the one text column it is a function of, if that is all it depends on.
    """

    expr: pl.Expr
    kind: Kind
    constant: Scalar | None = None
    per_row: bool = False
    source: str | None = None


_DTYPES = {Kind.NUMBER: pl.Float64, Kind.TEXT: pl.String, Kind.FLAG: pl.Boolean}


def unknown(kind: Kind) -> Typed:
    """Return null as a value of some kind."""
    return Typed(pl.lit(None, dtype=_DTYPES[kind]), kind)


def literal(value: Scalar | None) -> Typed:
    """Return a constant as an expression."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and is_usable(value)
    expr = pl.lit(value, dtype=pl.Int64) if is_whole else pl.lit(value)
    return Typed(expr, kind_of_value(value), constant=value)


def is_among(expr: pl.Expr, values: list[Scalar]) -> pl.Expr:
    """Return whether values are among constants of the same kind; numbers compare as float64."""
    if kind_of_value(values[0]) is Kind.NUMBER:
        return expr.cast(pl.Float64).is_in([float(value) for value in values])
    return expr.is_in(values)
