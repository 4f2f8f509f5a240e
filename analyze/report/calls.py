"""The attention calls of one trace, alike ones together: what ran, what it cost, why not flash."""

from typing import Any

import orjson
import polars as pl

from analyze.kernels.attention import attention_implementation
from analyze.kernels.peaks import published_peak
from analyze.report.opening import opening
from analyze.report.summary import known_sum, microseconds
from analyze.tables.attention_work import TIE
from analyze.tables.build import Trace
from analyze.tables.host import CHAIN_SEPARATOR, STEP_PREFIX
from analyze.tables.intervals import covered_ns
from analyze.tables.trace_row import busiest_device
from analyze.tables.unit_rows import UNIT_OF_ROW, UnitWork

SCHEMA_VERSION = 1

_MOST_KERNELS, _MOST_SOURCES = 10, 5
"""Kernel names and source lines that are listed of a group."""

_ALIKE = (
    *("name", "backend", "implementation", "dtype", "kernel_precision", "causal", "shapes"),
    *("flash_obstacle", "region", "root_op"),
)
"""What calls of one group have in common."""

_ATTENTION = ("attn.fwd", "attn.bwd")

Row = dict[str, Any]


def calls_report(trace: Trace) -> Row:
    """Return the attention calls in groups as plain data; times are float microseconds.

    A group is what is alike in op, backend, implementation, shapes, dtype, mask, annotation and
    outermost op. ``gpu_busy_us`` is the union of the GPU work launched in a call, summed over the
    calls; ``gpu_sum_us`` sums durations. GPU columns are null where no GPU work was recorded.
    Per call there are the median, the least and the most of GPU busy and CPU time.
    ``pinned_by_capture`` says that ``capture`` noted a variant which pins this very backend.
    """
    written_out = trace.calls_by_hand.with_columns(flash_obstacle=pl.lit(None, dtype=pl.String))
    groups = [
        *_groups(trace, trace.calls, trace.work_of_calls, by_hand=False),
        *_groups(trace, written_out, trace.work_of_calls_by_hand, by_hand=True),
    ]
    busy_ns = int(covered_ns(trace.facts.gpu_ops, ["device_label"])["busy_ns"].sum())
    peak = published_peak(busiest_device(trace))
    return {
        **opening(trace, SCHEMA_VERSION),
        "gpu_busy_us": microseconds(busy_ns) if trace.facts.gpu_ops.height else None,
        "peak_tflops": dict(peak.tflops) if peak else None,
        "peak_source": peak.source if peak else None,
        "calls": trace.calls.height,
        "calls_by_hand": trace.calls_by_hand.height,
        "groups": sorted(groups, key=_by_cost),
        "kernels_outside_calls": _outside(trace),
    }


def _by_cost(group: Row) -> Any:
    return (
        -(group["gpu_busy_us"] or 0),
        -(group["cpu_us"] or 0),
        group["name"],
        str(group["shapes"]),
    )


def _groups(trace: Trace, calls: pl.DataFrame, work: UnitWork, *, by_hand: bool) -> list[Row]:
    has_gpu = not trace.facts.gpu_ops.is_empty()
    variant = trace.table("trace")["variant"].item()
    is_step = pl.col("region").str.starts_with(STEP_PREFIX)
    alike = calls.with_columns(
        region=pl.when(~is_step).then("region"),
        root_op=pl.col("op_chain").str.split(CHAIN_SEPARATOR).list.first(),
    )
    groups = alike.group_by(_ALIKE, maintain_order=True).agg(
        pl.col("index"),
        pl.col("cpu_ns", "gpu_ops").sum(),
        *map(known_sum, ("gpu_busy_ns", "gpu_sum_ns")),
        pl.col("cpu_ns", "gpu_busy_ns", "kernels", "tflops", "peak_share")
        .median()
        .name.suffix("_median"),
        pl.col("cpu_ns", "gpu_busy_ns").min().name.suffix("_min"),
        pl.col("cpu_ns", "gpu_busy_ns").max().name.suffix("_max"),
        peak_tflops=pl.col("peak_tflops").first(),
        sources=pl.col("source").drop_nulls(),
    )
    kernels = _kernels(groups["index"], work)
    return [
        {
            "by_hand": by_hand,
            **{key: group[key] for key in _ALIKE if key not in ("shapes", "flash_obstacle")},
            "shapes": None if group["shapes"] is None else orjson.loads(group["shapes"]),
            "calls": len(group["index"]),
            "kernels_per_call": group["kernels_median"] if has_gpu else None,
            "gpu_ops": group["gpu_ops"] if has_gpu else None,
            "gpu_busy_us": microseconds(group["gpu_busy_ns"]) if has_gpu else None,
            "gpu_busy_per_call_us": microseconds(group["gpu_busy_ns_median"]) if has_gpu else None,
            "gpu_busy_min_us": microseconds(group["gpu_busy_ns_min"]) if has_gpu else None,
            "gpu_busy_max_us": microseconds(group["gpu_busy_ns_max"]) if has_gpu else None,
            "gpu_sum_us": microseconds(group["gpu_sum_ns"]) if has_gpu else None,
            "cpu_us": microseconds(group["cpu_ns"]),
            "cpu_per_call_us": microseconds(group["cpu_ns_median"]),
            "cpu_min_us": microseconds(group["cpu_ns_min"]),
            "cpu_max_us": microseconds(group["cpu_ns_max"]),
            "tflops": _rounded(group["tflops_median"]),
            "peak_tflops": group["peak_tflops"],
            "peak_share": group["peak_share_median"],
            "pinned_by_capture": variant is not None and variant == f"sdpa-{group['backend']}",
            "flash_obstacles": _parts(group["flash_obstacle"]),
            "kernels": kernels.get(number, []),
            "sources": _commonest(group["sources"]),
        }
        for number, group in enumerate(groups.iter_rows(named=True))
    ]


def _parts(joined: str | None) -> list[str]:
    return [] if joined is None else joined.split(TIE)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _kernels(calls: pl.Series, work: UnitWork) -> dict[int, list[Row]]:
    """Return the kernels that each group of calls launched, by name, the costliest first.

    Args:
        calls: per group the indices of its calls.
        work: what was launched in them.
    """
    groups = calls.to_frame("index").with_row_index("group").explode("index")
    by_name = (
        work.facts.gpu_ops.filter(pl.col("kind") == "kernel")
        .join(groups, left_on=UNIT_OF_ROW, right_on="index", how="inner")
        .group_by("group", "name", "short_name", "family", "precision", "tensor_core")
        .agg(count=pl.len(), time=pl.col("dur_ns").sum())
        .sort("group", "time", "name", descending=[False, True, False])
        .group_by("group", maintain_order=True)
        .head(_MOST_KERNELS)
    )
    found: dict[int, list[Row]] = {}
    for row in by_name.iter_rows(named=True):
        rows = found.setdefault(row.pop("group"), [])
        time = row.pop("time")
        rows.append({**row, "total_us": microseconds(time)})
    return found


def _commonest(sources: list[str]) -> list[Row]:
    counts = pl.Series("source", sources, dtype=pl.String).value_counts(name="calls")
    by_count = counts.sort("calls", "source", descending=[True, False])
    return by_count.head(_MOST_SOURCES).to_dicts()


def _outside(trace: Trace) -> list[Row]:
    """Return the attention kernels that no call launched: of backward passes, graphs, lost ops."""
    in_calls = trace.work_of_calls.facts.gpu_ops[UNIT_OF_ROW].is_not_null()
    by_hand = trace.work_of_calls_by_hand.facts.gpu_ops[UNIT_OF_ROW].is_not_null()
    outside = trace.facts.gpu_ops.filter(~(in_calls | by_hand)).filter(
        (pl.col("kind") == "kernel") & pl.col("family").is_in(_ATTENTION)
    )
    by_name = (
        outside.group_by("name", "short_name", "family")
        .agg(
            count=pl.len(),
            time_ns=pl.col("dur_ns").sum(),
            unlinked=(~pl.col("linked")).sum(),
            from_graphs=pl.col("api").str.contains("GraphLaunch").sum(),
        )
        .sort("time_ns", "name", descending=[True, False])
    )
    counts = by_name.drop("time_ns").iter_rows(named=True)
    return [
        {
            **row,
            "implementation": attention_implementation(row["name"], row["family"]),
            "total_us": microseconds(time_ns),
        }
        for row, time_ns in zip(counts, by_name["time_ns"], strict=True)
    ]
