"""The ``trace`` table: one row of facts about the whole trace."""

from typing import TYPE_CHECKING

import polars as pl

from analyze.kernels.device import DeviceLimits
from analyze.tables.intervals import summed_ns
from analyze.tables.lead import find_lead
from analyze.tables.regions import gpu_amounts
from analyze.tables.unit_rows import whole_span_ns

if TYPE_CHECKING:
    from analyze.tables.build import Trace

_HALF = ("bf16", "fp16")
_FLOATING = ("fp64", "fp32", "fp16", "bf16", "fp8", "fp4")


def build_trace_row(trace: "Trace") -> pl.DataFrame:
    """Return the one row of the ``trace`` table; times in nanoseconds."""
    facts, header = trace.facts, trace.header
    gpu_ops, calls, ops = facts.gpu_ops, facts.api_calls, facts.ops
    device = busiest_device(trace)
    unlinked = gpu_ops.filter(~pl.col("linked"))
    launches = calls.filter(pl.col("is_launch"))
    busy = gpu_amounts(gpu_ops.with_columns_seq(all=pl.lit(value=True)), ["all"])
    lead = find_lead(facts)
    row: dict[str, object] = {
        "device_name": (device.name or None) if device else None,
        "compute_capability": _capability(device),
        "sm_count": device.sm_count if device else None,
        "vendor": header.vendor,
        **header.captured.row,
        "dtype": _commonest_dtype(ops),
        "world_size": header.world_size,
        "rank": header.rank,
        "has_gpu": not gpu_ops.is_empty(),
        "has_shapes": bool(ops["shapes"].is_not_null().any()),
        "has_stacks": trace.has_stacks,
        "has_memory": not trace.clock.frames["memory"].is_empty(),
        "gpu_ops": gpu_ops.height,
        "linked_share": gpu_ops["linked"].mean() if gpu_ops.height else None,
        "unlinked_gpu_ops": unlinked.height,
        "early_gpu_ops": _started_before(unlinked, launches),
        "unlinked_gpu_ns": summed_ns(unlinked["dur_ns"]),
        "launches": launches.height,
        "lost_launches": int((launches["gpu_ops"] == 0).sum()),
        "half_kernels": gpu_ops.filter(pl.col("precision").is_in(_HALF)).height,
        "steps": facts.step_count,
        "forward_is": facts.forwards.source,
        "forwards": facts.forwards.intervals.height,
        "cpu_ns": whole_span_ns(facts),
        "gpu_busy_ns": busy["gpu_busy_ns"].item() if busy.height else 0,
        "gpu_span_ns": busy["gpu_span_ns"].item() if busy.height else 0,
        "loading_before_ns": lead.loading_ns if lead else None,
        "launch_median_ns": launches["dur_ns"].median(),
        "op_self_ns": ops["self_ns"].sum(),
        "overhead_ns": overhead_ns(trace),
        "truncated": trace.is_truncated,
        "events_lost": trace.lost.events,
        "synthetic": header.synthetic,
    }
    return pl.DataFrame({name: [value] for name, value in row.items()}, strict=False)


def _started_before(gpu_ops: pl.DataFrame, launches: pl.DataFrame) -> int | None:
    """Count the GPU ops before the first launch; unknown where no launch was recorded."""
    first = pl.lit(launches["start_ns"].min(), dtype=pl.Int64)
    return gpu_ops.filter(pl.col("start_ns") < first).height if launches.height else None


def busiest_device(trace: "Trace") -> DeviceLimits | None:
    """Return the properties of the device with the most GPU ops, else of the first listed."""
    header = trace.header
    counts = trace.facts.gpu_ops["device"].drop_nulls().value_counts(sort=True)
    for ordinal in counts["device"]:
        if device := header.device(ordinal):
            return device
    return next(iter(header.devices.values()), None) if counts.is_empty() else None


def overhead_ns(trace: "Trace") -> int:
    """Return the time of the ``overhead`` events, in nanoseconds."""
    other = trace.clock.frames["other"]
    return int(other.filter(pl.col("cat") == "overhead")["dur_ns"].sum())


def _capability(device: DeviceLimits | None) -> float | None:
    if device is None or device.compute_capability is None:
        return None
    major, minor = device.compute_capability
    return major + minor / 10


def _commonest_dtype(ops: pl.DataFrame) -> str | None:
    dtypes = ops.select_seq("dtype").filter(pl.col("dtype").is_in(_FLOATING))["dtype"]
    counts = dtypes.value_counts(sort=True)
    return counts["dtype"][0] if counts.height else None
