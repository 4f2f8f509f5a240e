"""The summary of one trace: coverage and quality first, then what the GPU did.

The first block of keys has the definitions of an independent answer key (plain JSON and exact
decimals): names are compared literally, devices and streams are labels, times are microseconds
rounded to nanoseconds.
"""

from collections.abc import Collection
from typing import Any, SupportsFloat

import polars as pl

from analyze.report.opening import opening
from analyze.tables.api import GRAPH_LAUNCH_PATTERN, KERNEL_LAUNCH_PATTERN
from analyze.tables.build import Trace
from analyze.tables.coverage import UNIT_COLUMNS, forward_median
from analyze.tables.intervals import covered_ns, summed_ns

SCHEMA_VERSION = 1
TOP_KERNELS = 5
DEFAULT_SHARED_MEMORY_LIMIT = 48 * 1024
"""Shared memory per block above which Kineto reports an occupancy of 0."""


def summarise(trace: Trace) -> dict[str, Any]:
    """Return the summary as plain data; times are microseconds, times and counts are exact.

    ``cpu_ops`` counts the events of the file; ``cpu_ops_in_tables`` those that ``analyze ops`` and
    the table ``ops`` have: as in torch's tables without the profiler's own and those without usable
    times, and with an op whose only child has its own name as one.
    """
    return {
        **opening(trace, SCHEMA_VERSION),
        **_gpu_time(trace),
        **_copies(trace),
        **_kernel_names(trace),
        **_calls(trace),
        "occupancy": _occupancy(trace),
        "fp32_sgemm": _fp32_sgemm(trace),
        "cpu_ops": trace.facts.host_ops,
        "cpu_ops_in_tables": trace.facts.ops.height,
        "profiler_steps": trace.facts.step_count,
        "precision": precision_split(trace),
        "families": _families(trace),
        "steps": _steps(trace),
        "unit": _unit(trace),
    }


def microseconds(nanoseconds: SupportsFloat | None) -> float | None:
    """Convert exact nanoseconds to the microseconds that are printed and written."""
    return None if nanoseconds is None else round(float(nanoseconds) / 1000, 3)


def summed_us(nanoseconds: pl.Series) -> float | None:
    """Sum times that may be unknown, in microseconds; None where there are some, all unknown."""
    return microseconds(summed_ns(nanoseconds))


def sum_of_known(values: Collection[float | None]) -> float | None:
    """Sum what is known of plain numbers; None where there are some, all unknown."""
    known = [value for value in values if value is not None]
    return round(sum(known), 3) if known or not values else None


def known_sum(column: str) -> pl.Expr:
    """Sum a column of a group; null, not 0, where no value of it is known."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(column)


def _kernels(trace: Trace) -> pl.DataFrame:
    return trace.facts.gpu_ops.filter(pl.col("kind") == "kernel")


def _label(column: str) -> pl.Expr:
    """Spell a missing label as the answer key does."""
    return pl.col(column).fill_null("None")


def _gpu_time(trace: Trace) -> dict[str, Any]:
    gpu_ops, kernels = trace.facts.gpu_ops, _kernels(trace)
    labelled = gpu_ops.with_columns(_label("device_label"))
    covered = covered_ns(labelled, ["device_label"], pl.col("removed_before_ns"))
    covered = covered.sort("device_label")
    streams = (
        kernels.group_by(label=pl.format("{}/{}", _label("device_label"), _label("stream_written")))
        .len()
        .sort("label")
    )
    return {
        "events": trace.counts.events,
        "kernels": kernels.height,
        "kernel_time_us": summed_us(kernels["dur_ns"]),
        "gpu_busy_us": {row[0]: microseconds(row[1]) for row in covered.iter_rows()},
        "gpu_span_us": {row[0]: microseconds(row[2]) for row in covered.iter_rows()},
        "streams": dict(streams.iter_rows()),
    }


def _copies(trace: Trace) -> dict[str, Any]:
    gpu_ops = trace.facts.gpu_ops
    copies = (
        gpu_ops.filter(pl.col("kind") == "memcpy")
        .with_columns(_label("name"))
        .group_by("name")
        .agg(pl.len(), pl.col("bytes").sum(), known_sum("dur_ns"))
        .sort("name")
    )
    sets = gpu_ops.filter(pl.col("kind") == "memset")
    return {
        "memcpy": {
            name: {"count": count, "bytes": size, "time_us": microseconds(time)}
            for name, count, size, time in copies.iter_rows()
        },
        "memset": {"count": sets.height, "time_us": summed_us(sets["dur_ns"])},
    }


def _kernel_names(trace: Trace) -> dict[str, Any]:
    by_name = (
        _kernels(trace)
        .group_by("name")
        .agg(pl.len(), known_sum("dur_ns"))
        .sort("dur_ns", "name", descending=[True, False], nulls_last=True)
    )
    return {
        "distinct_kernels": by_name.height,
        "top5_kernels": [
            {"name": name, "count": count, "time_us": microseconds(time)}
            for name, count, time in by_name.head(TOP_KERNELS).iter_rows()
        ],
    }


def _calls(trace: Trace) -> dict[str, Any]:
    calls = trace.facts.api_calls
    launches = (
        calls.filter(pl.col("name").str.contains("Launch")).group_by("name").len().sort("name")
    )
    syncs = calls.filter("is_sync").group_by("name").agg(pl.len(), known_sum("dur_ns")).sort("name")
    return {
        "launches": dict(launches.iter_rows()),
        "kernel_launches": _count(launches, KERNEL_LAUNCH_PATTERN),
        "graph_launches": _count(launches, GRAPH_LAUNCH_PATTERN),
        "sync_calls": {
            name: {"count": count, "time_us": microseconds(time)}
            for name, count, time in syncs.iter_rows()
        },
    }


def _count(launches: pl.DataFrame, pattern: str) -> int:
    return int(launches.filter(pl.col("name").str.contains(pattern))["len"].sum())


def _occupancy(trace: Trace) -> dict[str, Any]:
    reported = _kernels(trace).filter(pl.col("occupancy_written").is_not_null())
    values = reported["occupancy_written"]
    zeros = reported.filter(pl.col("occupancy_written") == 0)
    large = zeros.filter(pl.col("shared_memory_bytes") > DEFAULT_SHARED_MEMORY_LIMIT)
    return {
        "n": reported.height,
        "min": values.min(),
        "median": values.median(),
        "max": values.max(),
        "zeros": zeros.height,
        "zeros_with_shared_memory_over_49152": large.height,
    }


def _fp32_sgemm(trace: Trace) -> dict[str, Any]:
    """Count names with a literal ``sgemm``; the precision split below knows more."""
    name = pl.col("name").str.to_lowercase()
    found = _kernels(trace).filter(
        name.str.contains("sgemm", literal=True) & ~name.str.contains("tf32|tensorop")
    )
    return {"count": found.height, "time_us": summed_us(found["dur_ns"])}


def precision_split(trace: Trace) -> list[dict[str, Any]]:
    """Split the time of matrix products, convolutions and attention by precision."""
    products = _kernels(trace).filter(
        pl.col("precision").is_not_null()
        | pl.col("family").is_in(["gemm", "gemm.gemv", "conv", "attn.fwd", "attn.bwd"])
    )
    split = (
        products.group_by("precision", "tensor_core")
        .agg(pl.len(), known_sum("dur_ns"))
        .sort("dur_ns", "precision", descending=[True, False], nulls_last=True)
    )
    return [
        {
            "precision": precision or "unknown",
            "tensor_core": tensor_core,
            "count": count,
            "time_us": microseconds(time),
        }
        for precision, tensor_core, count, time in split.iter_rows()
    ]


def _families(trace: Trace) -> list[dict[str, Any]]:
    split = (
        trace.facts.gpu_ops.group_by(family=pl.coalesce("family", pl.lit("unknown")), kind="kind")
        .agg(pl.len(), known_sum("dur_ns"))
        .sort("dur_ns", "family", descending=[True, False], nulls_last=True)
    )
    return [
        {
            "family": family if kind == "kernel" else kind,
            "count": count,
            "time_us": microseconds(time),
        }
        for family, kind, count, time in split.iter_rows()
    ]


def _steps(trace: Trace) -> list[dict[str, Any]]:
    return _rows(trace.table("steps"), ("index", "pid", *UNIT_COLUMNS, "first"))


def _unit(trace: Trace) -> dict[str, Any]:
    return {
        "forward_is": trace.forward_source,
        "forwards": trace.table("forwards").height,
        "median": forward_median(trace),
    }


def _rows(frame: pl.DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {name: round(v, 3) if isinstance(v, float) else v for name, v in row.items()}
        for row in frame.select(columns).iter_rows(named=True)
    ]
