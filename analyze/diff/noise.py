"""Is a change larger than what differs from forward to forward anyway?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

State = Literal["new", "gone", "more", "less", "unchanged"]

_SIGMAS = 2.0
"""Spreads that two medians must be apart: about 95 % of single forwards lie that close."""

_NORMAL = 1.4826
"""Standard deviation / median absolute deviation, of a normal distribution."""

_RANGE = {2: 1.128, 3: 1.693, 4: 2.059}
"""Mean range / standard deviation of 2, 3 and 4 normal values: d2 of control charts
(ASTM MNL 7, table of factors). The median absolute deviation of so few is often 0 by chance."""

LEAST_CHANGE = 0.01
"""Share of a time below which a change is none, however small the spread is."""


@dataclass(frozen=True)
class Amount:
    """An amount per forward.

    Attributes:
        median: over the forwards.
        spread: estimate of the standard deviation of one forward; None for one forward.
    """

    median: float
    spread: float | None


def amount(values: Sequence[float]) -> Amount:
    """Return the median and spread of the values of all forwards, of which there is at least one.

    The spread is 1.4826 x the median absolute deviation; of fewer than five values, their range
    over its expectation.
    """
    middle = median(values)
    if len(values) == 1:
        return Amount(middle, None)
    if len(values) in _RANGE:
        return Amount(middle, (max(values) - min(values)) / _RANGE[len(values)])
    return Amount(middle, _NORMAL * median(abs(value - middle) for value in values))


def judge(before: Amount, after: Amount, least_change: float = LEAST_CHANGE) -> State:
    """Tell whether an amount changed by more than its noise.

    Where only one side has a spread, it stands for both; where none has, only ``least_change``
    counts, and a reader must be told.

    Args:
        before: the amount.
        after: the same of the other trace.
        least_change: share of the larger one below which a change is none.
    """
    change = abs(after.median - before.median)
    threshold = max(
        _SIGMAS * math.hypot(before.spread or 0.0, after.spread or 0.0),
        least_change * max(abs(before.median), abs(after.median)),
    )
    if change <= threshold:
        return "unchanged"
    return "more" if after.median > before.median else "less"
