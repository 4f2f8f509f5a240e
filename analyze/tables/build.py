"""Build every table of a trace from its events."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from analyze.errors import NothingToCheckError
from analyze.tables import catalogue
from analyze.tables.api import build_api_calls
from analyze.tables.clock import Clock, set_clock
from analyze.tables.gpu import build_gpu_ops
from analyze.tables.header import Header, read_header
from analyze.tables.host import STEP_PREFIX, Host, build_host
from analyze.tables.intervals import covered_ns
from analyze.tables.regions import build_regions, gpu_amounts
from analyze.tables.sources import sources_at
from analyze.tables.trace_row import build_trace_row
from analyze.tables.units import WHOLE_TRACE, Units, find_forwards, find_steps
from analyze.trace.reader import Progress, TraceEvents, read_events

_RECORDED_PHASES = ("X", "C")
_PROFILERS_OWN = ("trace", "overhead")


@dataclass
class Facts:
    """The tables under construction: frames with every helper column, times in nanoseconds."""

    host: Host
    steps: Units
    forwards: Units
    gpu_ops: pl.DataFrame
    ops: pl.DataFrame
    api_calls: pl.DataFrame
    host_ops: int
    """CPU ops in the file, with those that torch's tables leave out or merge."""
    step_names: int
    """Distinct ProfilerStep names in the file, with those that have no usable times."""


class Trace:
    """One trace with its documented tables.

    Tables and columns are those of :mod:`analyze.tables.catalogue`; times in them are float
    microseconds from the trace start, computed from exact integer nanoseconds.

    Attributes:
        name: the path the trace was read from.
        header: what the file says about itself.
        counts, source, repairs, form: see :class:`analyze.trace.reader.TraceEvents`.
        has_stacks: Python stacks were recorded.
        clock: the events on one clock, and what was wrong with their times.
        facts: the tables with helper columns and integer nanoseconds, for writers.
    """

    def __init__(self, events: TraceEvents, forward: str | None = None) -> None:
        """Build the tables.

        Args:
            events: the decoded trace.
            forward: the annotation that encloses one forward; see :mod:`analyze.tables.units`.

        Raises:
            AnalyzeError: the trace has no annotation named ``forward``.
        """
        self.name = events.source.name
        self.header: Header = read_header(events)
        self.counts = events.counts
        self.source = events.source
        self.repairs = events.repairs
        self.form = events.form
        self.has_stacks = _has_stacks(events)
        self.clock: Clock = set_clock(events)
        events.frames = {}
        self.facts = _build_facts(self.clock, self.header, forward)
        self._tables: dict[str, pl.DataFrame] = {}

    @property
    def forward_source(self) -> str:
        """What a forward is in this trace: an annotation's name, ``ProfilerStep`` or ``trace``."""
        return self.facts.forwards.source

    @property
    def is_empty(self) -> bool:
        """Whether the trace is readable but nothing was recorded beside the profiler itself."""
        return not any(
            phase in _RECORDED_PHASES and str(category).lower() not in _PROFILERS_OWN
            for phase, category in self.counts.categories
        )

    def nothing_recorded(self) -> NothingToCheckError:
        """Return the error that says so, and how to capture again."""
        return NothingToCheckError(
            f"{self.name}: nothing was recorded in this trace; capture again with work inside the"
            " profiler's active steps (schedule(wait, warmup, active) and one step() per iteration)"
        )

    def table(self, name: str) -> pl.DataFrame:
        """Return a table or view of the catalogue by name, with exactly its documented columns.

        Raises:
            KeyError: there is no such table.
        """
        if name not in self._tables:
            spec = catalogue.TABLES[name]
            base = self._base(spec.base or name)
            if spec.condition is not None:
                base = base.filter(spec.condition)
            self._tables[name] = catalogue.publish(base, spec)
        return self._tables[name]

    def _base(self, name: str) -> pl.DataFrame:
        match name:
            case "gpu_ops" | "ops" | "api_calls":
                frame: pl.DataFrame = getattr(self.facts, name)
            case "regions" | "forwards" | "steps":
                frame = getattr(self, name)
            case _:
                frame = build_trace_row(self)
        return frame

    @cached_property
    def regions(self) -> pl.DataFrame:
        """The annotations with the work launched inside them; times in nanoseconds."""
        return build_regions(self.facts.host, self.facts.gpu_ops, self.facts.api_calls)

    @cached_property
    def forwards(self) -> pl.DataFrame:
        """The forwards with their amounts; times in nanoseconds."""
        return unit_rows(self.facts.forwards, "forward", self.facts)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """The ProfilerSteps with their amounts; times in nanoseconds."""
        rows = unit_rows(self.facts.steps, "step", self.facts)
        return rows.with_columns(first=pl.int_range(pl.len()) == 0)


def load_trace(
    path: str | Path, *, forward: str | None = None, progress: Progress | None = None
) -> Trace:
    """Read a trace file and build its tables.

    Args:
        path: see :func:`analyze.trace.reader.read_events`.
        forward: see :class:`Trace`.
        progress: is told how many bytes have been read.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        AnalyzeError: the trace has no annotation named ``forward``.
    """
    return Trace(read_events(path, progress), forward)


def _build_facts(clock: Clock, header: Header, forward: str | None) -> Facts:
    frames = clock.frames
    host_ops, step_names = frames["ops"].height, _count_steps(frames)
    host = build_host(frames.pop("ops"), frames.pop("annotations"))
    annotations = host.nodes.filter(~pl.col("is_op"))
    steps = find_steps(annotations)
    forwards = find_forwards(annotations, steps, forward)
    calls = build_api_calls(frames.pop("api_calls"), host)
    calls = _add_units(calls, steps, forwards)
    calls = calls.with_columns(source=sources_at(calls, frames["frames"]))
    gpu_ops = build_gpu_ops(frames.pop("gpu_ops"), calls, host, header)
    gpu_ops = _add_launch_columns(gpu_ops, calls, host, forwards)
    calls = _add_caused_work(calls, gpu_ops, host)
    ops = _build_ops(host, gpu_ops)
    ops = _add_units(ops, steps, forwards)
    ops = ops.with_columns(source=sources_at(ops, frames.pop("frames")))
    return Facts(host, steps, forwards, gpu_ops, ops, calls, host_ops, step_names)


def _has_stacks(events: TraceEvents) -> bool:
    old_style = events.frames["ops"]["call_stack"].is_not_null().any()
    return bool(old_style) or not events.frames["frames"].is_empty()


def _count_steps(frames: dict[str, pl.DataFrame]) -> int:
    names = pl.concat([frames["ops"]["name"], frames["annotations"]["name"]])
    return names.filter(names.str.starts_with(STEP_PREFIX)).n_unique()


def _add_units(points: pl.DataFrame, steps: Units, forwards: Units) -> pl.DataFrame:
    return points.with_columns(step=steps.index_at(points), forward=forwards.index_at(points))


def _add_launch_columns(
    gpu_ops: pl.DataFrame, calls: pl.DataFrame, host: Host, forwards: Units
) -> pl.DataFrame:
    """Give GPU work the unit, source line and op facts of its launch."""
    nodes, api_row, op_row = host.nodes, gpu_ops["api_row"], gpu_ops["op_row"]
    root_row = nodes["root_row"].gather(op_row)
    forward = calls["forward"].gather(api_row)
    if forwards.source == WHOLE_TRACE:
        forward = pl.repeat(0, gpu_ops.height, dtype=pl.Int64, eager=True)
    return gpu_ops.with_columns(
        forward=forward,
        step=calls["step"].gather(api_row),
        source=calls["source"].gather(api_row),
        host_pid=calls["pid"].gather(api_row),
        op=nodes["name"].gather(op_row),
        op_chain=nodes["op_chain"].gather(op_row),
        root_op=nodes["name"].gather(root_row),
        op_dtype=nodes["dtype"].gather(op_row),
        root_dtype=nodes["root_dtype"].gather(op_row),
        op_shapes=nodes["input_dims"].gather(op_row),
        region=nodes["name"].gather(gpu_ops["region_row"]),
    )


def _add_caused_work(calls: pl.DataFrame, gpu_ops: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Count the GPU work of each API call and tell which calls made the host wait."""
    touches_pageable = (pl.col("src_memory") == "pageable") | (pl.col("dst_memory") == "pageable")
    caused = (
        gpu_ops.filter(pl.col("linked"))
        .group_by("api_row")
        .agg(
            gpu_ops=pl.len().cast(pl.Int64),
            queue_delay_ns=pl.col("queue_delay_ns").first(),
            pageable_copy=touches_pageable.any(),
        )
    )
    nodes = host.nodes
    joined = calls.join(caused, on="api_row", how="left", maintain_order="left")
    return joined.with_columns(
        gpu_ops=pl.col("gpu_ops").fill_null(0),
        blocking=pl.col("is_sync") | pl.col("pageable_copy").fill_null(value=False),
        op=nodes["name"].gather(joined["op_row"]),
        op_chain=nodes["op_chain"].gather(joined["op_row"]),
        region=nodes["name"].gather(joined["region_row"]),
    )


def _build_ops(host: Host, gpu_ops: pl.DataFrame) -> pl.DataFrame:
    nodes = host.nodes
    own, total = _device_times(nodes, gpu_ops)
    names = nodes["name"]
    return (
        nodes.with_columns(
            own_device_ns=own["own_ns"],
            own_gpu_ops=own["own_ops"],
            device_ns=total["total_ns"],
            gpu_ops=total["total_ops"],
            parent=names.gather(nodes["parent"]),
            root_op=names.gather(nodes["root_row"]),
            region=names.gather(nodes["region_row"]),
            finished=pl.col("finished").fill_null(value=True),
            shapes=pl.col("input_dims"),
        )
        .filter(pl.col("is_op") & ~pl.col("absorbed"))
        .sort("start_ns", maintain_order=True)
    )


def _device_times(nodes: pl.DataFrame, gpu_ops: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sum GPU time and count GPU work per node: its own, and with its descendants'."""
    launched = (
        gpu_ops.drop_nulls("op_row")
        .group_by("op_row")
        .agg(own_ns=pl.col("dur_ns").sum(), own_ops=pl.len().cast(pl.Int64))
    )
    rows = pl.DataFrame({"op_row": pl.int_range(nodes.height, dtype=pl.UInt32, eager=True)})
    own = rows.join(launched, on="op_row", how="left", maintain_order="left").with_columns(
        pl.col("own_ns", "own_ops").fill_null(0)
    )
    total_ns: list[int] = own["own_ns"].to_list()
    total_ops: list[int] = own["own_ops"].to_list()
    parents: list[int | None] = nodes["parent"].to_list()
    for row in range(nodes.height - 1, -1, -1):
        parent = parents[row]
        if parent is not None:
            total_ns[parent] += total_ns[row]
            total_ops[parent] += total_ops[row]
    total = pl.DataFrame(
        {"total_ns": total_ns, "total_ops": total_ops},
        schema={"total_ns": pl.Int64, "total_ops": pl.Int64},
    )
    return own, total


def unit_rows(units: Units, key: str, facts: Facts) -> pl.DataFrame:
    """Return one row a unit with the amounts of the work launched in it."""
    gpu = gpu_amounts(facts.gpu_ops.drop_nulls(key), [key])
    calls = (
        facts.api_calls.drop_nulls(key)
        .group_by(key)
        .agg(
            launches=pl.col("is_launch").sum().cast(pl.Int64),
            syncs=(pl.col("is_sync") & ~pl.col("profiler_own")).sum().cast(pl.Int64),
            api_cpu_ns=pl.col("dur_ns").sum(),
        )
    )
    self_times = facts.ops.drop_nulls(key).group_by(key).agg(op_self_ns=pl.col("self_ns").sum())
    amounts = ["gpu_busy_ns", "gpu_span_ns", "gpu_sum_ns", "gpu_ops", "kernels", "copies"]
    rows = units.intervals.with_columns(cpu_ns=pl.col("end_ns") - pl.col("start_ns"))
    if units.source == WHOLE_TRACE:
        rows = _span_of_everything(rows, facts)
    for part in (gpu, calls, self_times):
        rows = rows.join(part, left_on="index", right_on=key, how="left", maintain_order="left")
    return rows.with_columns(
        pl.col([*amounts, "launches", "syncs", "op_self_ns"]).fill_null(0),
        period_ns=pl.col("start_ns").shift(-1) - pl.col("start_ns"),
    )


def _span_of_everything(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    intervals = [
        frame.select("start_ns", "dur_ns") for frame in (facts.ops, facts.api_calls, facts.gpu_ops)
    ]
    span = covered_ns(pl.concat(intervals), [])
    length = span["span_ns"][0] if span.height else None
    return rows.with_columns(
        start_ns=pl.lit(0, dtype=pl.Int64),
        end_ns=pl.lit(length, dtype=pl.Int64),
        cpu_ns=pl.lit(length, dtype=pl.Int64),
    )
