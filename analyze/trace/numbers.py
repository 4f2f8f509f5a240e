"""Numbers of a trace, exactly: microsecond texts to integer nanoseconds, ids to 64 bits.

``ts`` and ``dur`` are microseconds with up to three decimals in every Kineto trace. A float64 holds
such a value exactly enough to recover its nanoseconds up to 2**43 us (about 102 days), which covers
every trace with relative times; above that (epoch times with decimals) the digits themselves are
needed, see :func:`keep_digits`.
"""

import re
from array import array
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import cast

import polars as pl

EXACT_FLOAT_US = float(1 << 43)
"""From here on a float64 of microseconds no longer tells neighbouring nanoseconds apart."""

_MAX_NS = (1 << 63) - 1
_NUMBERS = frozenset({int, float})
_LONG_TS = re.compile(
    rb"""("ts"\s*:\s*)
    (-?(?:(?:[89]\d{12}|\d{14,})\.\d+(?![\d.eE])|\d+(?:\.\d+)?[eE][-+]?\d+))""",
    re.VERBOSE,
)
"""At least as large as :data:`EXACT_FLOAT_US` and fractional, or of any size with an exponent."""

_PLAIN_DECIMAL = r"^(?:[0-9]{1,15}|[0-8][0-9]{15})\.[0-9]{1,3}$"
"""Microseconds whose nanoseconds need no rounding and fit into 64 bits."""


def keep_digits(text: bytes) -> bytes:
    """Turn every large fractional ``ts`` in JSON ``text`` into a string, so no digit is lost.

    Those with an exponent become strings as well, large or not.
    """
    parts = _LONG_TS.split(text)  # what is between, then "ts": and its number, and so on
    parts[2::3] = [b'"%b"' % number for number in parts[2::3]]
    return b"".join(parts)


def as_floats(values: Sequence[object]) -> "array[float] | None":
    """Pack numbers; None when any value is not a number, or too large."""
    if not set(map(type, values)) <= _NUMBERS:
        return None
    try:
        return array("d", cast("Sequence[float]", values))
    except OverflowError:
        return None


def to_ns(values: Sequence[object]) -> pl.Series:
    """Convert microseconds as decoded from JSON to int64 nanoseconds.

    Args:
        values: ints, floats or decimal strings; anything else becomes null. In an array, NaN.

    Returns:
        A series of dtype Int64 of the same length; null where a value is missing, not a finite
        number, or beyond int64.
    """
    kinds = {float} if isinstance(values, array) else set(map(type, values)) - {type(None)}
    if kinds <= _NUMBERS:
        return _from_numbers(values)
    if kinds <= {*_NUMBERS, str}:
        return _from_texts_and_numbers(values)
    return _one_by_one(values)


def _from_numbers(values: Sequence[object]) -> pl.Series:
    try:
        microseconds = pl.Series(values, dtype=pl.Float64)
    except OverflowError:
        return _one_by_one(values)
    if _too_large(microseconds):
        return _one_by_one(values)
    whole = microseconds.cast(pl.Int64, strict=False)
    fraction_ns = ((microseconds - whole) * 1000).round()
    return whole * 1000 + fraction_ns.cast(pl.Int64, strict=False)


def _from_texts_and_numbers(values: Sequence[object]) -> pl.Series:
    texts = pl.Series([value if isinstance(value, str) else None for value in values])
    if not texts.str.contains(_PLAIN_DECIMAL).all():
        return _one_by_one(values)
    whole_us, thousandths = texts.str.split_exact(".", 1).struct.unnest()
    ns = whole_us.cast(pl.Int64) * 1000 + thousandths.str.pad_end(3, "0").cast(pl.Int64)
    return ns.fill_null(_from_numbers([None if isinstance(v, str) else v for v in values]))


def _one_by_one(values: Sequence[object]) -> pl.Series:
    return pl.Series([exact_ns(value) for value in values], dtype=pl.Int64)


def _too_large(microseconds: pl.Series) -> bool:
    """Whether int64 nanoseconds could overflow."""
    extremes = microseconds.min(), microseconds.max()
    return any(isinstance(us, float) and not abs(us) < _MAX_NS / 1000 for us in extremes)


def exact_ns(value: object) -> int | None:
    """Convert one value of microseconds to nanoseconds; the slow, exact path of :func:`to_ns`.

    Args:
        value: as decoded from JSON, of any kind.

    Returns:
        None where it is not a finite number, or beyond int64.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        nanoseconds = (Decimal(value) * 1000).to_integral_value(ROUND_HALF_EVEN)
        result = int(nanoseconds)
    except (ArithmeticError, ValueError):
        return None
    return result if abs(result) <= _MAX_NS else None
