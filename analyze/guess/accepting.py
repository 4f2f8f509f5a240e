"""Turn a trace that is known to be good into guesses: counts exact, times and shares with room."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyze.engine.data import TraceTables
from analyze.guess.amounts import Unit
from analyze.guess.observing import Observation, observe
from analyze.guess.order import forwards_in_order
from analyze.guess.quantities import QUANTITIES
from analyze.guess.words import PRECISIONS
from analyze.tables.build import Trace

TIME_TOLERANCE = 0.2
SHARE_TOLERANCE = 0.05

MAX_ACCEPTED_ORDER = 100
"""GPU ops of a forward up to which their order is written; longer ones nobody reads."""

_MOST_FAMILIES = 3
_ROUNDING = 0.01
"""Room for the digits that are not written."""

_CPU_ONLY = ("cpu_ops", "cpu_time")
_GPU = tuple(key for key, quantity in QUANTITIES.items() if quantity.about_gpu)

Value = str | int | list[str]


@dataclass(frozen=True)
class Accepted:
    """What was taken from a trace.

    Attributes:
        values: per key of a guess file, its value.
        left_out: per key that is not in it, why.
    """

    values: dict[str, Value]
    left_out: dict[str, str]


def accept(trace: Trace) -> Accepted:
    """Return guesses that the trace itself meets in all its forwards.

    GPU work is what is guessed about; ops and time of the CPU only where there is none.
    """
    tables = TraceTables(trace)
    accepted = Accepted({}, {})
    keys = _GPU if tables.facts["has_gpu"] else _CPU_ONLY
    for key in keys:
        observation = observe(QUANTITIES[key], tables)
        is_known_order = key == "order" and observation.unknown is None
        value, reason = _order(trace) if is_known_order else _value(observation)
        if value is not None:
            accepted.values[key] = value
        else:
            accepted.left_out[key] = reason
    return accepted


def _value(observation: Observation) -> tuple[Value | None, str]:
    """Return the value that all units meet; or None, and why there is none."""
    if observation.unknown is not None:
        return None, observation.unknown
    kind = observation.quantity.kind
    if kind == "families":
        return _families(observation.values)
    if kind == "precisions":
        return _one_or_list(_precisions(observation)), ""
    low, high = min(observation.values), max(observation.values)
    middle = observation.typical
    match observation.quantity.unit:
        case Unit.TIME:
            return _time(low, high, middle), ""
        case Unit.SHARE:
            return f"{max(middle, 0) * 100:.1f} % +- {SHARE_TOLERANCE * 100:g}", ""
        case _:
            return int(low) if low == high else f"{low:.0f}-{high:.0f}", ""


def _families(values: list[str]) -> tuple[Value | None, str]:
    found = sorted(set(values))
    if len(found) > _MOST_FAMILIES:
        return None, f"{len(found)} families take most of the time, each in some forwards"
    return _one_or_list(found), ""


def _precisions(observation: Observation) -> list[str]:
    """Return the precisions that any unit spends time in."""
    units = observation.units
    return [name for name in PRECISIONS if units[f"{name}_us"].sum() > 0]


def _one_or_list(words: list[str]) -> Value:
    return words[0] if len(words) == 1 else words


def _time(low: float, high: float, middle: float) -> str:
    """Return the median with its tolerance, or a range where single forwards differ more."""
    margin = TIME_TOLERANCE - _ROUNDING
    if middle * (1 - margin) < low and high < middle * (1 + margin):
        return f"{_digits(middle)} us +- {TIME_TOLERANCE * 100:g} %"
    lowest = math.floor(low * (1 - TIME_TOLERANCE) * 10) / 10
    highest = math.ceil(high * (1 + TIME_TOLERANCE) * 10) / 10
    return f"{lowest} us to {highest} us"


def _digits(value: float) -> str:
    """Return a time in microseconds with four digits and no exponent."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _order(trace: Trace) -> tuple[Value | None, str]:
    """Return the short names of the GPU ops, where all forwards launch the same in one order."""
    first: list[str] | None = None
    for rows in _names(trace):
        if len(rows) > MAX_ACCEPTED_ORDER:
            listed = f"at most {MAX_ACCEPTED_ORDER} are listed"
            return None, f"a forward has {len(rows):,} GPU ops; {listed}"
        if first is not None and rows != first:
            return None, "the forwards differ in their GPU ops or in their order"
        first = rows
    if not first:
        return None, "no GPU op belongs to a forward"
    if None in first:
        return None, "a GPU op has no name"
    return first, ""


def _names(trace: Trace) -> Iterator[list[Any]]:
    for rows in forwards_in_order(trace):
        yield [row["short_name"] for row in rows]
