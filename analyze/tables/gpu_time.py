"""Where the time of the GPUs goes: to which kernel families, and why they had nothing to do."""

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from analyze.tables.build import Trace

MOST_FAMILIES = 5
"""Families that are named; there are some thirty."""


def gpu_time(trace: "Trace") -> dict[str, Any] | None:
    """Return the idle time with its causes and the families with most time.

    Idle is the time between a device's first and last work in which it had nothing to do; several
    devices are added up. Families are shares of the durations of all GPU work, summed.

    Returns:
        Plain data, times in microseconds, shares 0 to 1; None without GPU work of a known time.
    """
    work = trace.facts.gpu_ops.drop_nulls(["start_ns", "dur_ns"])
    if work.is_empty():
        return None
    span_us = trace.table("trace")["gpu_span_us"].item()
    gaps = trace.causes_of_gaps
    idle_us = gaps["dur_ns"].sum() / 1000
    return {
        "idle_us": idle_us,
        "idle_share": idle_us / span_us if span_us else None,
        "idle_causes": _shares(gaps, ["cause"]),
        "families": _shares(work.select("kind", _family(), "dur_ns"), ["kind", "family"])[
            :MOST_FAMILIES
        ],
    }


def _family() -> pl.Expr:
    """Return the family of kernels; names of copies and sets have none."""
    return pl.when(pl.col("kind") == "kernel").then("family").alias("family")


def _shares(times: pl.DataFrame, keys: list[str]) -> list[dict[str, Any]]:
    """Sum ``dur_ns`` for each combination of keys, most time first."""
    whole = times["dur_ns"].sum()
    sums = (
        times.group_by(keys)
        .agg(total_ns=pl.col("dur_ns").sum())
        .sort("total_ns", *keys, descending=[True, *(False for _ in keys)])
    )
    return [
        {
            **{key: row[key] for key in keys},
            "time_us": row["total_ns"] / 1000,
            "share": row["total_ns"] / whole if whole else None,
        }
        for row in sums.iter_rows(named=True)
    ]
