"""Columns of times as microseconds, exact to the nanosecond."""

from typing import Any

import polars as pl

from analyze.report.views.forward import DrawnForward


def exact_us(nanoseconds: int) -> float:
    """Convert integer nanoseconds to microseconds."""
    return round(nanoseconds / 1000, 3)


def microseconds_of(nanoseconds: pl.Series) -> list[Any]:
    """Convert a column of integer nanoseconds to float microseconds; null stays None."""
    return (nanoseconds / 1000).round(3).to_list()


def relative_us(slices: pl.DataFrame, forward: DrawnForward) -> list[float]:
    """Return the starts of slices from the start of the window."""
    return microseconds_of(slices["start_ns"] - forward.start_ns)
