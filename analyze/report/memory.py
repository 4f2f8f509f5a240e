"""Peak memory and what was live at it, the ops that allocate, score matrices, allocator churn.

Everything is of the recorded window. What an allocator had given out before it is known only by its
own total; which op asked for that is not.
"""

from typing import Any

import polars as pl

from analyze.report.opening import opening
from analyze.report.score_matrices import score_matrices
from analyze.report.summary import microseconds
from analyze.tables.build import Trace

SCHEMA_VERSION = 1

DRIVER_CALLS = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister)"
    r"|^(cu|hip)Mem(Create|Map|Unmap|Release|Alloc|Free)"
)
"""Calls that take memory from the driver or give it back."""
_IN_STREAM_ORDER = "Async"
"""Part of the names of those that use a pool of the driver instead."""

_DEVICE = ("device_type", "device")
_OP_AMOUNTS = {
    "count": pl.len(),
    "bytes": pl.col("bytes").sum(),
    "source": pl.col("source").drop_nulls().mode().sort().first(),
}


def describe_memory(trace: Trace) -> dict[str, Any]:
    """Return what the memory events of a trace tell, as plain data.

    Args:
        trace: a trace with memory events.
    """
    events = trace.memory.with_row_index("row")
    return {
        **opening(trace, SCHEMA_VERSION),
        "events": events.height,
        "allocations": _count(events, "allocate"),
        "frees": _count(events, "free"),
        "out_of_memory": _count(events, "out_of_memory"),
        "addresses": bool(events["address"].is_not_null().any()),
        "devices": [_device(part) for part in _by_device(events)],
        "ops": _ops(events),
        "score_matrices": score_matrices(trace),
        "churn": _churn(events, trace),
        "driver_calls": _driver_calls(trace),
    }


def device_label(device_type: str | None, device: int | None) -> str:
    """Word a device as torch does: ``cpu``, ``cuda:0``."""
    kind = device_type or "unknown"
    return kind if device is None else f"{kind}:{device}"


def _label(row: dict[str, Any]) -> str:
    return device_label(row["device_type"], row["device"])


def _count(events: pl.DataFrame, kind: str) -> int:
    return events.filter(pl.col("kind") == kind).height


def _by_device(events: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the events of each device, the one with the most bytes first."""
    parts = events.partition_by(_DEVICE, maintain_order=True)
    return sorted(parts, key=lambda part: -int(part["bytes"].abs().sum()))


def _device(events: pl.DataFrame) -> dict[str, Any]:
    allocated = events.filter(pl.col("kind") == "allocate")
    freed = events.filter(pl.col("kind") == "free")
    never_freed = allocated.filter(pl.col("ended_row").is_null() & pl.col("address").is_not_null())
    knows_blocks = events["address"].is_not_null().any()
    return {
        "device": _label(events.row(0, named=True)),
        "allocations": allocated.height,
        "allocated_bytes": allocated["bytes"].sum(),
        "frees": freed.height,
        "freed_bytes": -freed["bytes"].sum(),
        "net_bytes": events["running_bytes"][-1],
        "not_freed": never_freed.height if knows_blocks else None,
        "not_freed_bytes": never_freed["bytes"].sum() if knows_blocks else None,
        "total_at_start_bytes": _total_at_start(events),
        "peak_reserved_bytes": events["total_reserved"].max(),
        "peak": _peak(events),
    }


def _total_at_start(events: pl.DataFrame) -> int | None:
    """Return what the allocator had given out before the first event; null where it kept none."""
    known = events.filter(
        pl.col("total_allocated").is_not_null() & (pl.col("kind") != "out_of_memory")
    )
    if known.is_empty():
        return None
    first = known.row(0, named=True)
    return int(first["total_allocated"] - first["bytes"])


def _peak(events: pl.DataFrame) -> dict[str, Any]:
    """Return the largest total, and what was live then.

    The allocator's own total counts where it was recorded; else the sum of the events, to which
    what was allocated before the recording would have to be added.
    """
    by_allocator = bool(events["total_allocated"].is_not_null().any())
    column = "total_allocated" if by_allocator else "running_bytes"
    at_start = (_total_at_start(events) or 0) if by_allocator else 0
    ranked = events.sort(column, "row", descending=[True, False], nulls_last=True)
    highest = ranked.row(0, named=True)
    if at_start > highest[column]:
        return _peak_at_start(events, at_start, by_allocator=by_allocator)
    knows_blocks = bool(events["address"].is_not_null().any())
    live = _live_at(events, highest["row"])
    live_bytes = int(live["bytes"].sum()) if knows_blocks else None
    from_before = None
    if by_allocator and live_bytes is not None:
        from_before = highest[column] - live_bytes
    return {
        "bytes": highest[column],
        "by_allocator": by_allocator,
        "at_start": False,
        "start_us": microseconds(highest["start_ns"]),
        "forward": highest["forward"],
        "step": highest["step"],
        "op_chain": highest["op_chain"],
        "source": highest["source"],
        "live_bytes": live_bytes,
        "live_blocks": live.height if knows_blocks else None,
        "from_before_bytes": from_before,
        "live": _by_owner(live),
    }


def _peak_at_start(events: pl.DataFrame, total: int, *, by_allocator: bool) -> dict[str, Any]:
    """Return the peak of a device whose memory only shrank: all of it is from before."""
    nowhere = dict.fromkeys(("forward", "step", "op_chain", "source"))
    return {
        "bytes": total,
        "by_allocator": by_allocator,
        "at_start": True,
        "start_us": microseconds(events["start_ns"][0]),
        **nowhere,
        "live_bytes": 0,
        "live_blocks": 0,
        "from_before_bytes": total if by_allocator else None,
        "live": [],
    }


def _live_at(events: pl.DataFrame, row: int) -> pl.DataFrame:
    """Return the allocations up to an event whose blocks were still there after it."""
    return events.filter(
        (pl.col("kind") == "allocate")
        & pl.col("address").is_not_null()
        & (pl.col("row") <= row)
        & (pl.col("ended_row").is_null() | (pl.col("ended_row") > row))
    )


def _by_owner(blocks: pl.DataFrame) -> list[dict[str, Any]]:
    owners = (
        blocks.group_by("op_chain", "phase")
        .agg(**_OP_AMOUNTS)
        .sort("bytes", "op_chain", "phase", descending=[True, False, False])
    )
    return owners.select("op_chain", "phase", "source", "count", "bytes").to_dicts()


def _ops(events: pl.DataFrame) -> list[dict[str, Any]]:
    """Sum allocations, and what was freed, by the ops around them, as torch's self memory does."""
    is_free = pl.col("kind") == "free"
    moved = events.filter(pl.col("kind").is_in(["allocate", "free"]))
    sums = (
        moved.group_by(*_DEVICE, "op_chain")
        .agg(
            count=(~is_free).sum(),
            bytes=pl.col("bytes").filter(~is_free).sum(),
            freed_bytes=-pl.col("bytes").filter(is_free).sum(),
            net_bytes=pl.col("bytes").sum(),
            largest_bytes=pl.col("bytes").max().clip(0),
            source=_OP_AMOUNTS["source"],
        )
        .sort("bytes", "freed_bytes", "op_chain", descending=[True, True, False])
    )
    rows = sums.iter_rows(named=True)
    return [
        {"device": _label(row), **{k: v for k, v in row.items() if k not in _DEVICE}}
        for row in rows
    ]


def _churn(events: pl.DataFrame, trace: Trace) -> dict[str, Any] | None:
    """Count the blocks given back in the unit they were taken in, by size; null without addresses.

    A size that comes and goes again and again in a step is served by the allocator's cache, at the
    cost of its bookkeeping, and of a synchronisation where the cache is too small.
    """
    if not events["address"].is_not_null().any():
        return None
    unit = "step" if events["step"].is_not_null().any() else "forward"
    column = "step_row" if unit == "step" else unit
    ended = events.select(ended_row="row", ended_unit=column)
    pairs = (
        events.filter(pl.col("lifetime_ns").is_not_null() & pl.col(column).is_not_null())
        .join(ended, on="ended_row", how="left")
        .filter(pl.col(column) == pl.col("ended_unit"))
    )
    sizes = (
        pairs.group_by(*_DEVICE, "bytes")
        .agg(
            pairs=pl.len(),
            total_bytes=pl.col("bytes").sum(),
            median_lifetime_ns=pl.col("lifetime_ns").median(),
            op_chain=pl.col("op_chain").drop_nulls().mode().sort().first(),
        )
        .sort("total_bytes", "bytes", "pairs", descending=True)
    )
    return {
        "unit": "trace" if unit == "forward" and trace.forward_source == "trace" else unit,
        "units": pairs[column].n_unique(),
        "pairs": pairs.height,
        "bytes": pairs["bytes"].sum(),
        "sizes": [
            {
                "device": _label(row),
                "bytes": row["bytes"],
                "pairs": row["pairs"],
                "total_bytes": row["total_bytes"],
                "median_lifetime_us": microseconds(row["median_lifetime_ns"]),
                "op_chain": row["op_chain"],
            }
            for row in sizes.iter_rows(named=True)
        ],
    }


def _driver_calls(trace: Trace) -> list[dict[str, Any]]:
    calls = trace.facts.api_calls.filter(
        pl.col("name").str.contains(DRIVER_CALLS)
        & ~pl.col("name").str.contains(_IN_STREAM_ORDER, literal=True)
    )
    sums = (
        calls.group_by("name")
        .agg(count=pl.len(), time_ns=pl.col("dur_ns").sum())
        .sort("time_ns", "name", descending=[True, False])
    )
    return [
        {"name": name, "count": count, "time_us": microseconds(time)}
        for name, count, time in sums.iter_rows()
    ]
