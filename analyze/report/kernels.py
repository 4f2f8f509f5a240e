"""The kernels of one trace, by name: what each costs, how it was launched, who launched it."""

import math
from collections.abc import Callable
from typing import Any

import orjson
import polars as pl

from analyze.report.condition import Condition
from analyze.report.opening import opening
from analyze.report.summary import known_sum, microseconds, summed_us
from analyze.tables.build import Trace
from analyze.tables.intervals import covered_ns
from analyze.tables.units import WHOLE_TRACE

SCHEMA_VERSION = 1

_MOST_OWNERS = 5
"""Op chains and source lines that are listed for each name, commonest first."""

_LAUNCH = (
    "grid",
    "block",
    "grid_in_threads",
    "registers_per_thread",
    "shared_memory_bytes",
    "occupancy_reported",
    "occupancy",
    "occupancy_limiter",
    "waves",
)

Row = dict[str, Any]


def kernels_report(trace: Trace, where: Condition | None = None, sort: str = "total") -> Row:
    """Return the kernels by name as plain data; times are float microseconds.

    Shares are of the GPU busy time of the whole trace: the union of all GPU work (kernels, copies
    and sets) on each device, added up. The durations of one name are summed, so where kernels run
    at the same time the shares of all names can add up to more than 1.

    Args:
        trace: the trace.
        where: which rows of the table ``kernels`` to report; None for all.
        sort: a key of :data:`SORTS`.
    """
    kernels = trace.facts.gpu_ops.filter(pl.col("kind") == "kernel")
    kept_kernels = kernels if where is None else kernels.filter(where.kept)
    busy_ns = _busy_ns(trace)
    rows = _by_name(kept_kernels, busy_ns, _forwards(trace))
    return {
        **opening(trace, SCHEMA_VERSION),
        "where": where and where.as_json(),
        "gpu_busy_us": microseconds(busy_ns),
        "gpu_sum_us": summed_us(trace.facts.gpu_ops["dur_ns"]),
        "kernel_time_us": summed_us(kernels["dur_ns"]),
        "kernels": kernels.height,
        "selected_kernels": kept_kernels.height,
        "selected_time_us": summed_us(kept_kernels["dur_ns"]),
        "selected_names": len(rows),
        "sort": sort,
        "names": sorted(rows, key=SORTS[sort]),
    }


def _largest(key: str) -> Callable[[Row], Any]:
    """Return an order by a column, largest first and unknown last, then by time and name."""

    def order(row: Row) -> Any:
        value = row[key]
        return (value is None, -(value or 0), -(row["total_us"] or 0), row["name"] or "")

    return order


def _smallest_launch_value(key: str) -> Callable[[Row], Any]:
    def order(row: Row) -> Any:
        value = row["launch"][key] if row["launch"] else None
        return (value is None, value or 0, -(row["total_us"] or 0), row["name"] or "")

    return order


def _emptiest_tail(row: Row) -> Any:
    value = row["launch"]["tail"] if row["launch"] else None
    return (value is None, -(value or 0), -(row["total_us"] or 0), row["name"] or "")


SORTS: dict[str, Callable[[Row], Any]] = {
    "total": _largest("total_us"),
    "count": _largest("count"),
    "mean": _largest("mean_us"),
    "p95": _largest("p95_us"),
    "max": _largest("max_us"),
    "occupancy": _smallest_launch_value("occupancy"),
    "tail": _emptiest_tail,
    "name": lambda row: row["name"] or "",
}
"""Orders of the names: the largest first, but of ``occupancy`` the lowest."""


def _busy_ns(trace: Trace) -> int | None:
    """Return the GPU busy time; None where no GPU op has a usable duration."""
    covered = covered_ns(trace.facts.gpu_ops, ["device_label"])
    return None if covered.is_empty() else int(covered["busy_ns"].sum())


def _forwards(trace: Trace) -> int | None:
    """Return the number of forwards; None where the whole trace counts as one."""
    forwards = trace.facts.forwards
    return None if forwards.source == WHOLE_TRACE else forwards.intervals.height


def _by_name(kernels: pl.DataFrame, busy_ns: int | None, forwards: int | None) -> list[Row]:
    time = pl.col("dur_ns")
    groups = kernels.group_by("name", maintain_order=True).agg(
        pl.col("short_name", "family", "precision", "tensor_core").first(),
        count=pl.len(),
        total=known_sum("dur_ns"),
        mean=time.mean(),
        p50=time.median(),
        p95=time.quantile(0.95, interpolation="linear"),
        max=time.max(),
        in_forwards=pl.col("forward").count(),
        unlinked=(~pl.col("linked")).sum(),
        streams=pl.struct("device_label", "stream_label").n_unique(),
        phases=pl.col("phase").unique().sort(),
    )
    launches, chains = _launches(kernels), _owners(kernels, "op_chain")
    sources = _owners(kernels, "source")
    return [
        {
            "name": group["name"],
            "short_name": group["short_name"],
            "family": group["family"],
            "precision": group["precision"],
            "tensor_core": group["tensor_core"],
            "count": group["count"],
            "per_forward": round(group["in_forwards"] / forwards, 3) if forwards else None,
            "total_us": microseconds(group["total"]),
            "mean_us": microseconds(group["mean"]),
            "p50_us": microseconds(group["p50"]),
            "p95_us": microseconds(group["p95"]),
            "max_us": microseconds(group["max"]),
            "share_of_gpu_busy": _share(group["total"], busy_ns),
            "phases": group["phases"],
            "streams": group["streams"],
            "launch": launches.get(group["name"]),
            "op_chains": chains.get(group["name"], _NO_OWNERS),
            "sources": sources.get(group["name"], _NO_OWNERS),
            "unlinked": group["unlinked"],
        }
        for group in groups.iter_rows(named=True)
    ]


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _launches(kernels: pl.DataFrame) -> dict[str | None, Row]:
    """Return the commonest launch configuration of each name, the longest of equally common ones.

    ``grid_in_threads`` says that the grid counts threads, as some calls of AMD's runtime write it,
    not blocks. ``recorded`` counts the kernels of the name that have one; a grid at least is needed
    for that.
    """
    known = kernels.filter(pl.col("grid").is_not_null()).with_columns(
        pl.col("grid_in_threads").fill_null(value=False)
    )
    configurations = (
        known.group_by("name", *_LAUNCH[:5])
        .agg(pl.col(_LAUNCH[5:]).first(), count=pl.len(), time=known_sum("dur_ns"))
        .sort("grid", "block")
        .sort("count", "time", descending=True, nulls_last=True, maintain_order=True)
    )
    found: dict[str | None, Row] = {}
    for row in configurations.iter_rows(named=True):
        name = row["name"]
        if name in found:
            found[name]["configurations"] += 1
            found[name]["recorded"] += row["count"]
        else:
            found[name] = _launch(row)
    return found


def _launch(row: Row) -> Row:
    return {
        "grid": orjson.loads(row["grid"]),
        "grid_in_threads": row["grid_in_threads"],
        "block": None if row["block"] is None else orjson.loads(row["block"]),
        "registers_per_thread": row["registers_per_thread"],
        "shared_memory_bytes": row["shared_memory_bytes"],
        "occupancy_reported": row["occupancy_reported"],
        "occupancy": row["occupancy"],
        "occupancy_limiter": row["occupancy_limiter"],
        "waves": row["waves"],
        "tail": tail(row["waves"]),
        "count": row["count"],
        "recorded": row["count"],
        "configurations": 1,
    }


def tail(waves: float | None) -> float | None:
    """Return the share of the last wave's places for blocks that stay empty.

    A wave is as many blocks as the whole device holds at a time. 0 is a grid that fills its last
    wave; below one wave it is the share of the device that this kernel never uses. It says how
    much of the last wave is idle, not of the kernel's time: of many waves the last matters little.
    It follows from the launch alone and assumes that blocks take equally long.

    Args:
        waves: blocks in the grid / blocks resident on the device at a time.
    """
    return None if waves is None else math.ceil(waves) - waves


_NO_OWNERS: Row = {"distinct": 0, "unknown": None, "top": []}


def _owners(kernels: pl.DataFrame, column: str) -> dict[str | None, Row]:
    """Return which values of a column each name has: how many, of how many kernels unknown."""
    counts = (
        kernels.group_by("name", value=column)
        .agg(count=pl.len(), time=known_sum("dur_ns"))
        .sort("time", "count", "value", descending=[True, True, False], nulls_last=True)
    )
    found: dict[str | None, Row] = {}
    for name, value, count, time in counts.iter_rows():
        owners = found.setdefault(name, {"distinct": 0, "unknown": 0, "top": []})
        if value is None:
            owners["unknown"] += count
            continue
        owners["distinct"] += 1
        if len(owners["top"]) < _MOST_OWNERS:
            owners["top"].append({"value": value, "count": count, "total_us": microseconds(time)})
    return found
