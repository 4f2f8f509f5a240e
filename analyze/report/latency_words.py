"""How far the latencies that ``capture`` measured are apart, in words."""

from collections.abc import Mapping
from typing import Any

from analyze.words import duration

UNSTEADY = 2.0
"""A 90th percentile this many times the 10th: something else ran on the machine; as in capture."""


def unsteady_latency(notes: Mapping[str, Any]) -> str | None:
    """Return from when to when the calls took, where a median says little of them; else None.

    Args:
        notes: what ``capture`` noted of a trace; results that were stored earlier lack the spread.
    """
    low, high = notes.get("latency_p10_us"), notes.get("latency_p90_us")
    if low is None or high is None or high < UNSTEADY * low:
        return None
    return f"{duration(low)} to {duration(high)} (p10 to p90)"
