"""Where the time of the GPUs goes: to which kernel families, and why they had nothing to do.

Beside it stands what the busy share hides: the time before the first work, in which nobody knows of
a GPU that it was idle, and communication, which counts as work while it waits for other ranks.
"""

from typing import TYPE_CHECKING, Any

import polars as pl

from analyze.tables.communication import communicates
from analyze.tables.facts import Facts
from analyze.tables.gaps import OUTSIDE_FORWARDS
from analyze.tables.intervals import covered_ns
from analyze.tables.lead import find_lead
from analyze.tables.units import WHOLE_TRACE

if TYPE_CHECKING:
    from analyze.tables.build import Trace

MOST_FAMILIES = 5
"""Families that are named; there are some thirty."""


def gpu_time(trace: "Trace") -> dict[str, Any] | None:
    """Return the idle time with its causes, the families with most time, and what they hide.

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
        "idle_between_share": _share_of_idle(trace, gaps, pl.col("between_forwards")),
        "idle_outside_share": _share_of_idle(trace, gaps, OUTSIDE_FORWARDS),
        "families": _shares(work.select_seq("kind", _family(), "dur_ns"), ["kind", "family"])[
            :MOST_FAMILIES
        ],
        "lead": _lead(trace.facts),
        "communication": _communication(work),
    }


def _share_of_idle(trace: "Trace", gaps: pl.DataFrame, chosen: pl.Expr) -> float | None:
    """Return the share of the idle time in these gaps; None where nothing marks a forward."""
    idle_ns = int(gaps["dur_ns"].sum())
    if trace.forward_source == WHOLE_TRACE or not idle_ns:
        return None
    return int(gaps.filter(chosen)["dur_ns"].sum()) / idle_ns


def _lead(facts: Facts) -> dict[str, Any] | None:
    """Return the time before the first GPU work, and loading of data in it."""
    lead = find_lead(facts)
    if lead is None:
        return None
    return {
        "time_us": lead.time_ns / 1000,
        "share": lead.time_ns / lead.recorded_ns,
        "loading_us": lead.loading_ns / 1000,
    }


def _communication(work: pl.DataFrame) -> dict[str, Any] | None:
    """Return how much of the busy time is communication, and how much is nothing else.

    None where no kernel is known to communicate.
    """
    communication = work.filter(communicates())
    if communication.is_empty():
        return None
    busy_ns, time_ns = (
        int(covered_ns(part, ["device_label"])["busy_ns"].sum()) for part in (work, communication)
    )
    alone_ns = int(communication["exposed_ns"].sum())
    return {
        "time_us": time_ns / 1000,
        "share": time_ns / busy_ns if busy_ns else None,
        "alone_us": alone_ns / 1000,
        "alone_share": alone_ns / busy_ns if busy_ns else None,
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
