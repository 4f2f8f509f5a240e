"""When each device was busy and idle, why it was idle, and the longest gaps.

Busy is the union of a device's work, idle the rest of the time from its first to its last work; the
two add up to the nanosecond. The gaps of several devices are added up per cause.
"""

from typing import Any

import polars as pl

from analyze.report.condition import Condition
from analyze.report.opening import opening
from analyze.report.summary import microseconds
from analyze.tables.build import Trace
from analyze.tables.gaps import OUTSIDE_FORWARDS, activity_in
from analyze.tables.intervals import covered_before, covered_ns

SCHEMA_VERSION = 1
TIMELINE_CELLS = 60

LATE = ("host", "sync", "input", "profiler", "launch")
"""Causes on the host: in other gaps the next work was queued, whatever the CPU did."""

_GAP_TIMES = ("start", "dur", "op", "in_api", "in_ops", "outside_ops")
_GAP_FACTS = (
    "cause", "op_chain", "api", "source", "previous_name", "previous_op", "next_name", "next_op",
    "region", "forward", "step", "phase", "in_forward", "between_forwards",
)  # fmt: skip
_HOST_TIMES = ("in_api", "in_ops", "outside_ops")
NAMED = 5
"""Calls, and ops, that are named of what a thread did, those with the most time."""


def describe_gaps(
    trace: Trace,
    *,
    limit: int | None = None,
    min_us: float = 0.0,
    device: int | None = None,
    where: Condition | None = None,
) -> dict[str, Any]:
    """Return busy and idle time, idle time by cause, and the longest gaps, as plain data.

    ``all_gaps`` counts those of the devices shown, ``gaps`` those that the options keep.

    Args:
        trace: a trace with GPU work.
        limit: how many of the longest gaps to list; None for all.
        min_us: shorter gaps are left out of the causes and the list, never out of idle time.
        device: leave out all other devices.
        where: which rows of the table ``gaps`` to keep in the causes and the list; None for all.
    """
    gpu_ops, gaps = trace.facts.gpu_ops, trace.gaps
    if where is not None:
        gaps = gaps.filter(where.kept)
    if device is not None:
        gpu_ops = gpu_ops.filter(pl.col("device") == device)
        gaps = gaps.filter(pl.col("device") == device)
    gaps = gaps.filter(pl.col("dur_ns") >= round(min_us * 1000))
    longest = gaps.sort("dur_ns", descending=True, maintain_order=True)
    shown = longest if limit is None else longest.head(min(limit, longest.height))
    devices = _devices(gpu_ops, trace.gaps)
    late = gaps.filter(pl.col("cause").is_in(LATE))
    activity = activity_in(late, trace.facts)
    of_gaps = activity.join(shown.select("gap"), on="gap", how="semi")
    activities = {gap: rows for (gap,), rows in of_gaps.partition_by("gap", as_dict=True).items()}
    return {
        **opening(trace, SCHEMA_VERSION),
        "where": where and where.as_json(),
        "devices": devices,
        "timeline": _timeline(gpu_ops),
        "min_us": min_us,
        "all_gaps": sum(row["gaps"] for row in devices),
        "gaps": gaps.height,
        "gap_time_us": microseconds(gaps["dur_ns"].sum()),
        "causes": _causes(gaps),
        "host_activity": _host_activity(late) | _most_time(activity),
        "longest": [
            _gap(row) | _most_time(activities.get(row["gap"]))
            for row in shown.iter_rows(named=True)
        ],
    }


def _devices(gpu_ops: pl.DataFrame, gaps: pl.DataFrame) -> list[dict[str, Any]]:
    covered = covered_ns(gpu_ops, ["device_label"], pl.col("removed_before_ns"))
    covered = covered.sort("device_label")
    counts = gaps.group_by("device_label").agg(gaps=pl.len(), longest_ns=pl.col("dur_ns").max())
    rows = covered.join(
        counts, on="device_label", how="left", nulls_equal=True, maintain_order="left"
    )
    return [
        {
            "device": row["device_label"],
            "busy_us": microseconds(row["busy_ns"]),
            "idle_us": microseconds(row["span_ns"] - row["busy_ns"]),
            "span_us": microseconds(row["span_ns"]),
            "busy_share": row["busy_ns"] / row["span_ns"] if row["span_ns"] else None,
            "gaps": row["gaps"] or 0,
            "longest_gap_us": microseconds(row["longest_ns"]),
        }
        for row in rows.iter_rows(named=True)
    ]


def _timeline(gpu_ops: pl.DataFrame) -> dict[str, Any] | None:
    """Return the busy share of each device in cells of equal length; null without any length.

    The cells reach from the first to the last GPU work of all devices. What ``analyze trim`` left
    out is no part of a cell; the share of one of which nothing else is there is null.
    """
    placed = gpu_ops.drop_nulls(["start_ns", "dur_ns"])
    start, end = placed.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    if start is None or start == end:
        return None
    cells = min(TIMELINE_CELLS, end - start)
    edges = [start + (end - start) * cell // cells for cell in range(cells + 1)]
    points = pl.DataFrame({"start_ns": edges}, schema={"start_ns": pl.Int64})
    lengths = points["start_ns"].diff().drop_nulls()
    shares = {}
    for (label,), work in placed.sort("device_label").group_by("device_label", maintain_order=True):
        busy = covered_before(points, work, []).diff().drop_nulls()
        recorded = lengths - _removed_in(points, work)
        shares[label] = (busy / recorded).fill_nan(None).round(6).to_list()
    return {
        "start_us": microseconds(start),
        "end_us": microseconds(end),
        "devices": [{"device": label, "busy_share": share} for label, share in shares.items()],
    }


def _removed_in(points: pl.DataFrame, work: pl.DataFrame) -> pl.Series:
    """Return how much of the time between points ``analyze trim`` left out of a device's."""
    length = pl.col("removed_before_ns")
    removed = work.select(start_ns=pl.col("start_ns") - length, dur_ns=length)
    return covered_before(points, removed, []).diff().drop_nulls()


def _causes(gaps: pl.DataFrame) -> list[dict[str, Any]]:
    """Sum the gaps of each cause; a null cause is unknown, because no launch is in the file."""
    idle_ns = gaps["dur_ns"].sum()
    causes = (
        gaps.group_by("cause")
        .agg(
            count=pl.len(),
            total_ns=pl.col("dur_ns").sum(),
            median_ns=pl.col("dur_ns").median(),
            longest_ns=pl.col("dur_ns").max(),
            between_forwards_ns=pl.col("dur_ns").filter(pl.col("between_forwards")).sum(),
            outside_forwards_ns=pl.col("dur_ns").filter(OUTSIDE_FORWARDS).sum(),
        )
        .sort("total_ns", "cause", descending=[True, False])
    )
    return [
        {
            "cause": row["cause"],
            "count": row["count"],
            "time_us": microseconds(row["total_ns"]),
            "share": row["total_ns"] / idle_ns,
            "median_us": microseconds(row["median_ns"]),
            "longest_us": microseconds(row["longest_ns"]),
            "between_forwards_us": microseconds(row["between_forwards_ns"]),
            "outside_forwards_us": microseconds(row["outside_forwards_ns"]),
        }
        for row in causes.iter_rows(named=True)
    ]


def _host_activity(late: pl.DataFrame) -> dict[str, Any]:
    """Sum what the launching threads did in the gaps that they caused."""
    times = {f"{name}_us": _known_sum(late[f"{name}_ns"]) for name in _HOST_TIMES}
    return {"gap_time_us": microseconds(late["dur_ns"].sum()), **times}


def _most_time(activity: pl.DataFrame | None) -> dict[str, list[dict[str, Any]] | None]:
    """Return as ``calls``, and outside them as ``ops``, what took most of the time.

    Both are null of a gap in which the next work was queued, and of one of unknown cause.
    """
    if activity is None:
        return {"calls": None, "ops": None}
    by_name = activity.group_by("is_call", "name", maintain_order=True).agg(
        pl.col("length_ns").sum()
    )
    ranked = by_name.sort("length_ns", descending=True, maintain_order=True)
    return {
        key: [
            {"name": row["name"], "time_us": microseconds(row["length_ns"])}
            for row in ranked.filter(is_call=is_call).head(NAMED).iter_rows(named=True)
        ]
        for key, is_call in (("calls", True), ("ops", False))
    }


def _known_sum(times: pl.Series) -> float | None:
    return microseconds(times.sum()) if times.is_not_null().any() else None


def _gap(row: dict[str, Any]) -> dict[str, Any]:
    times = {f"{name}_us": microseconds(row[f"{name}_ns"]) for name in _GAP_TIMES}
    return {
        "device": row["device_label"],
        **times,
        **{name: row[name] for name in _GAP_FACTS},
    }
