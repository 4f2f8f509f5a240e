"""Amounts as people guess them: ``5``, ``~5``, ``3-6``, ``at most 2 ms``, ``10 % +- 5``, ``none``.

An answer typed at a question and a value in a guess file are read alike.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from analyze.guess.answers import UnreadableAnswerError

_LARGEST = 1e15
"""Numbers above this are refused; it is below what float64 counts exactly."""

_PLAIN_TIME = 0.2
_ROUGH_TIME = 0.5
_PLAIN_SHARE = 0.05
_ROUGH_SHARE = 0.1
_ROUGH_COUNT = 0.2

_NONE = ("none", "no", "zero", "nothing", "never", "0")
_SOME = ("yes", "some", "any", "y")
_ROUGHLY = re.compile(r"(?:~|about|around|roughly|approx\.?|ca\.?)\s*(.+)")
_AT_MOST = re.compile(r"(<=?|at most|up to|no more than|less than|below|under)\s*(.+)")
_AT_LEAST = re.compile(r"(>=?|at least|no less than|more than|above|over)\s*(.+)")
_TOLERANCE = re.compile(r"(.+?)\s*\+-\s*(.+)")
_BETWEEN = re.compile(r"(?:between\s+)?(.+?)\s*(?:-|\.\.\.?|\bto\b|\band\b)\s*(.+)")
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z%]*(?: [a-z]+)?)")
_EXCLUSIVE = ("<", ">", "less than", "more than", "below", "above", "under", "over")

_PERCENT = ("%", "percent")
_TIMES = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "sec": 1e6}
_COUNTED = (
    "kernel", "kernels", "op", "ops", "gpu op", "gpu ops", "cpu op", "cpu ops", "call", "calls",
    "copy", "copies", "memcpy", "memcpys", "sync", "syncs",
)  # fmt: skip


class Unit(Enum):
    """What an amount is counted in; the value says how to write one."""

    COUNT = "a number: 5, ~5, 3-6, at most 4, none"
    TIME = "a time with its unit: 300 us, ~2 ms, 1-3 ms, at most 5 ms"
    SHARE = "a percentage: 10 %, ~50 %, 5-20 %, at most 10 %"


@dataclass(frozen=True)
class Amount:
    """A guessed amount.

    Attributes:
        low, high: what is still as guessed, both included; microseconds, a share of 0 to 1, or a
            count. Without an upper end ``high`` is :data:`OPEN`.
        text: as it was written.
    """

    low: float
    high: float
    text: str


OPEN = _LARGEST
"""The upper end of an amount that has none."""


def parse_amount(written: str, unit: Unit) -> Amount:
    """Return the amount that a text means.

    A plain time stands for itself and 20 % around it, a plain share for itself and 5 points; with
    ``~`` it is 50 % and 10 points, and 20 % of a count, at least 1.

    Raises:
        UnreadableAnswerError: it is no amount of that unit.
    """
    text = _normal(written)
    low, high = _interval(text, unit)
    if high < 0:
        raise UnreadableAnswerError(f"'{text}' can never be: write 'none' for 0")
    if low > high:
        raise UnreadableAnswerError(f"'{text}' runs backwards: write the smaller number first")
    return Amount(max(low, 0.0), min(high, OPEN), text)


def _normal(written: str) -> str:
    text = " ".join(written.lower().split())
    for odd, plain in (("\u2013", "-"), ("\u00b1", "+-"), ("+/-", "+-"), ("\u2248", "~")):
        text = text.replace(odd, plain)
    return text.replace("\u00b5s", "us").replace("\u03bcs", "us")


def _interval(text: str, unit: Unit) -> tuple[float, float]:
    *words, last = text.split(" ")
    word = " ".join(words) if words and last in _COUNTED else text
    if word in _NONE:
        return 0.0, 0.0
    if word in _SOME and unit is Unit.COUNT:
        return 1.0, OPEN
    for pattern, read in _FORMS:
        if found := pattern.fullmatch(text):
            return read(found, unit)
    return _around(_value(text, unit), unit, is_rough=False)


def _roughly(found: re.Match[str], unit: Unit) -> tuple[float, float]:
    return _around(_value(found[1], unit), unit, is_rough=True)


def _within(found: re.Match[str], unit: Unit) -> tuple[float, float]:
    value = _value(found[1], unit)
    margin = _margin(found[2], value, unit)
    return value - margin, value + margin


def _at_most(found: re.Match[str], unit: Unit) -> tuple[float, float]:
    return 0.0, _value(found[2], unit) - _step(found[1], unit)


def _at_least(found: re.Match[str], unit: Unit) -> tuple[float, float]:
    return _value(found[2], unit) + _step(found[1], unit), OPEN


def _around(value: float, unit: Unit, *, is_rough: bool) -> tuple[float, float]:
    if unit is Unit.TIME:
        margin = value * (_ROUGH_TIME if is_rough else _PLAIN_TIME)
    elif unit is Unit.SHARE:
        margin = _ROUGH_SHARE if is_rough else _PLAIN_SHARE
    else:
        margin = max(1.0, math.floor(value * _ROUGH_COUNT)) if is_rough else 0.0
    return value - margin, value + margin


def _margin(text: str, value: float, unit: Unit) -> float:
    """Return a tolerance: percent are of the value, but of a share they are points."""
    number = _matched(text, unit)
    if unit is Unit.SHARE and number[2] not in ("", *_PERCENT):
        raise UnreadableAnswerError(f"'{text}' is not a number of percent")
    if unit is Unit.SHARE or number[2] in _PERCENT:
        return float(number[1]) / 100 * (1 if unit is Unit.SHARE else value)
    return _value(text, unit)


def _between(found: re.Match[str], unit: Unit) -> tuple[float, float]:
    """Return a range; the unit may be written once, behind the second number."""
    high, suffix = _value(found[2], unit), _matched(found[2], unit)[2]
    first = found[1] if _matched(found[1], unit)[2] else f"{found[1]} {suffix}".strip()
    return _value(first, unit), high


def _step(comparison: str, unit: Unit) -> int:
    """Return how far a bound is from the number that must not be reached."""
    return 1 if unit is Unit.COUNT and comparison in _EXCLUSIVE else 0


def _matched(text: str, unit: Unit) -> re.Match[str]:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise UnreadableAnswerError(f"'{text}' is not {unit.value}")
    return found


def _value(text: str, unit: Unit) -> float:
    number = _matched(text, unit)
    value, suffix = float(number[1]), number[2]
    if value > _LARGEST:
        raise UnreadableAnswerError(f"'{text}' is too large")
    if unit is Unit.TIME:
        return _time(value, suffix, text)
    if unit is Unit.SHARE:
        return _share(value, suffix, text)
    if (suffix and suffix not in _COUNTED) or not value.is_integer():
        raise UnreadableAnswerError(f"'{text}' is not a whole number; write {unit.value}")
    return value


def _time(value: float, suffix: str, text: str) -> float:
    if suffix not in _TIMES:
        raise UnreadableAnswerError(f"'{text}' has no unit of time: write us, ms or s behind it")
    return value * _TIMES[suffix]


def _share(value: float, suffix: str, text: str) -> float:
    if suffix not in ("", *_PERCENT):
        raise UnreadableAnswerError(f"'{text}' is not {Unit.SHARE.value}")
    if not suffix and 0 < value <= 1:
        raise UnreadableAnswerError(
            f"'{text}' could be {value:g} % or {value * 100:g} %: write it with the % sign"
        )
    if value > 100:
        raise UnreadableAnswerError(f"'{text}' is more than 100 %")
    return value / 100


_FORMS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str], Unit], tuple[float, float]]]] = (
    (_ROUGHLY, _roughly),
    (_TOLERANCE, _within),
    (_AT_MOST, _at_most),
    (_AT_LEAST, _at_least),
    (_BETWEEN, _between),
)
"""How amounts are written, and how each form is read; the first that fits decides."""
