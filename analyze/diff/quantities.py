"""The amounts of a whole trace that two traces are compared by, and that gates name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from analyze.diff.noise import LEAST_CHANGE, Amount, State, amount, judge
from analyze.engine.result import TraceReport
from analyze.tables.build import Trace
from analyze.tables.catalogue import Need
from analyze.tables.units import WHOLE_TRACE

Unit = Literal["us", "bytes", ""]


@dataclass(frozen=True)
class Known:
    """An amount of one trace.

    Attributes:
        amount: None where it is unknown.
        reason: why it is unknown.
    """

    amount: Amount | None
    reason: str | None = None


@dataclass(frozen=True)
class Quantity:
    """A documented amount.

    Attributes:
        name: as gates write it.
        unit: ``us``, ``bytes``, or empty for counts.
        meaning: in a sentence.
    """

    name: str
    unit: Unit
    meaning: str


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("gpu_time", "us", "GPU busy time of a forward: union of the work launched in it"),
    Quantity("gpu_idle", "us", "first start to last end of that work, less its busy time"),
    Quantity("gpu_span", "us", "first start to last end of that work, on each device, added up"),
    Quantity("cpu_time", "us", "duration of a forward on the CPU"),
    Quantity("gpu_ops", "", "kernels, copies and sets launched in a forward"),
    Quantity("kernels", "", "kernels launched in a forward"),
    Quantity("copies", "", "memory copies launched in a forward"),
    Quantity("launches", "", "kernel and graph launches in a forward"),
    Quantity("syncs", "", "synchronising calls in a forward"),
    Quantity("cpu_ops", "", "CPU ops recorded in a forward, those inside other ops too"),
    Quantity("latency", "us", "one call with the profiler off, by capture.json"),
    Quantity("peak_memory", "bytes", "most memory allocated during one call, by capture.json"),
    Quantity("findings", "", "findings, benign ones aside, of rules that both traces answer"),
)
"""Of forwards the median is meant; times are microseconds, sizes bytes."""

_GPU_COLUMNS = {
    "gpu_time": "gpu_busy_ns",
    "gpu_idle": "gpu_idle_ns",
    "gpu_span": "gpu_span_ns",
    "gpu_ops": "gpu_ops",
    "kernels": "kernels",
    "copies": "copies",
}
_NO_FORWARD = "no forward was recorded"
_NONE_IN_FORWARDS = "GPU work was recorded, but none of it was launched in a forward"
_IN_PART = "the file may hold only a part of every forward"
_NO_CALLS = Known(None, Need.LAUNCHES.value)


def measure(trace: Trace, report: TraceReport, answered: frozenset[str]) -> dict[str, Known]:
    """Return the quantities of one trace, those of capture.json included.

    Args:
        trace: the trace.
        report: what the rules found in it.
        answered: codes of the rules whose findings are counted.
    """
    measured = {name: _gpu_amount(trace, column) for name, column in _GPU_COLUMNS.items()}
    measured["cpu_time"] = _of_forwards(trace, "cpu_ns")
    for name in ("launches", "syncs"):
        has_calls = not trace.facts.api_calls.is_empty()
        measured[name] = _of_forwards(trace, name) if has_calls else _no_calls(trace)
    measured["cpu_ops"] = _cpu_ops(trace)
    captured = trace.header.captured
    latency_ns = captured.latency_ns
    measured["latency"] = _noted(None if latency_ns is None else latency_ns / 1000)
    measured["peak_memory"] = _noted(captured.peak_bytes)
    measured["findings"] = _findings(report, answered)
    return measured


def _gpu_amount(trace: Trace, column: str) -> Known:
    gpu_ops = trace.facts.gpu_ops
    if gpu_ops.is_empty():
        return Known(None, Need.GPU.words(truncated=trace.is_truncated))
    if gpu_ops["forward"].null_count() == gpu_ops.height:
        return Known(None, _NONE_IN_FORWARDS)
    return _of_forwards(trace, column)


def _cpu_ops(trace: Trace) -> Known:
    """Return the ops of a forward, without forwards of which the file may hold only a part."""
    facts = trace.facts
    if facts.ops.is_empty():
        return Known(None, Need.OPS.value)
    counts = facts.ops.drop_nulls("forward").group_by("forward").agg(cpu_ops=pl.len())
    forwards = facts.forwards.intervals.join(
        counts, left_on="index", right_on="forward", how="left", maintain_order="left"
    ).with_columns(pl.col("cpu_ops").fill_null(0))
    if trace.forward_source != WHOLE_TRACE:
        forwards = forwards.with_columns(facts.kept.known_in(["cpu_ops"], pl.col("end_ns")))
    values = forwards["cpu_ops"].drop_nulls().to_list()
    return Known(amount(values)) if values else Known(None, _why_none(trace, forwards))


def _of_forwards(trace: Trace, column: str) -> Known:
    idle = pl.col("gpu_span_ns") - pl.col("gpu_busy_ns")
    forwards = trace.forwards.with_columns(gpu_idle_ns=idle)
    values = forwards[column].drop_nulls().to_list()
    if not values:
        return Known(None, _why_none(trace, forwards))
    scale = 1000 if column.endswith("_ns") else 1
    return Known(amount([value / scale for value in values]))


def _why_none(trace: Trace, forwards: pl.DataFrame) -> str:
    if forwards.is_empty():
        return _NO_FORWARD
    is_part = trace.facts.kept.units_in_part(forwards) == forwards.height
    return _IN_PART if is_part else Need.OPS.value


def _no_calls(trace: Trace) -> Known:
    if trace.facts.gpu_ops.is_empty():
        return Known(None, Need.GPU.words(truncated=trace.is_truncated))
    return _NO_CALLS


def _noted(value: float | None) -> Known:
    return Known(None, Need.CAPTURE_JSON.value) if value is None else Known(Amount(value, None))


def _findings(report: TraceReport, answered: frozenset[str]) -> Known:
    if not answered:
        return Known(None, "no rule could be answered in both traces")
    found = sum(
        finding.state != "benign" and finding.code in answered for finding in report.findings
    )
    return Known(Amount(found, None))


def state_of(quantity: Quantity, before: Known, after: Known) -> State | None:
    """Judge the change of a quantity; None where it is unknown in a trace.

    Counts do not depend on a clock, so that a change of one is a change.
    """
    if before.amount is None or after.amount is None:
        return None
    return judge(before.amount, after.amount, LEAST_CHANGE if quantity.unit == "us" else 0.0)


def values(measured: Mapping[str, Known]) -> dict[str, float | None]:
    """Return the medians, null where unknown."""
    return {
        name: None if known.amount is None else known.amount.median
        for name, known in measured.items()
    }
