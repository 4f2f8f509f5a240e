"""One trace with its documented tables."""

from functools import cached_property
from pathlib import Path

import polars as pl

from analyze.cache.reading import CacheMode, read_events_cached
from analyze.errors import NothingToCheckError
from analyze.kernels.peaks import published_peak
from analyze.tables import catalogue
from analyze.tables.attention_floor import attention_floor
from analyze.tables.attention_work import add_obstacles, add_work
from analyze.tables.by_hand_calls import build_by_hand, find_by_hand
from analyze.tables.calls import build_calls, find_calls
from analyze.tables.clock import Clock, set_clock
from analyze.tables.facts import build_facts
from analyze.tables.flash_obstacles import CHECKED_OP
from analyze.tables.gaps import build_gaps, find_gaps
from analyze.tables.header import Header, read_header
from analyze.tables.lost import Lost, lost_by_reading
from analyze.tables.memory import build_memory
from analyze.tables.regions import build_regions
from analyze.tables.trace_row import build_trace_row, busiest_device
from analyze.tables.unit_rows import UNIT_OF_ROW, UnitWork, unit_rows, work_in
from analyze.trace.reader import Progress, TraceEvents, paused_garbage_collector

_RECORDED_PHASES = ("X", "C")
_PROFILERS_OWN = ("trace", "overhead")


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
        self.lost_of_file = lost_by_reading(self.repairs, self.source)
        self.facts = build_facts(self.clock, self.header, forward, truncated=self.lost.truncated)
        self._tables: dict[str, pl.DataFrame] = {}

    @property
    def forward_source(self) -> str:
        """What a forward is in this trace: an annotation's name, ``ProfilerStep`` or ``trace``."""
        return self.facts.forwards.source

    @property
    def lost(self) -> Lost:
        """What is lost of the recording: of this file, and of those it was copied from."""
        return self.lost_of_file.and_lost(self.header.lost_before)

    @property
    def is_truncated(self) -> bool:
        """Whether this file, or one it was copied from, ends before its event list does."""
        return self.lost.truncated

    @property
    def is_empty(self) -> bool:
        """Whether the trace is readable but nothing was recorded beside the profiler itself."""
        recorded = any(
            phase in _RECORDED_PHASES and str(category).lower() not in _PROFILERS_OWN
            for phase, category in self.counts.categories
        )
        return not recorded and self.clock.frames["memory"].is_empty()

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
            if spec.base is None or spec.condition is None:
                self._tables[name] = catalogue.publish(self._base(name), spec)
            else:
                self._tables[name] = self.table(spec.base).filter(spec.condition)
        return self._tables[name]

    def _base(self, name: str) -> pl.DataFrame:
        match name:
            case "gpu_ops" | "api_calls":
                frame: pl.DataFrame = getattr(self.facts, name)
            case "ops":
                peak = published_peak(busiest_device(self))
                floor = attention_floor(self.facts.ops, peak)
                frame = self.facts.ops.with_columns_seq(
                    attention_floor_ns=floor, flash_obstacle=self._obstacles_of_ops()
                )
            case "regions" | "forwards" | "steps" | "calls" | "gaps" | "memory":
                frame = getattr(self, name)
            case _:
                frame = build_trace_row(self)
        return frame

    @cached_property
    def regions(self) -> pl.DataFrame:
        """The annotations with the work launched inside them; times in nanoseconds."""
        facts = self.facts
        return build_regions(facts.host, facts.gpu_ops, facts.api_calls, facts.kept)

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """The times a device had nothing to do; times in nanoseconds."""
        return build_gaps(self.causes_of_gaps, self.facts)

    @cached_property
    def causes_of_gaps(self) -> pl.DataFrame:
        """The same with less beside their causes; see :func:`analyze.tables.gaps.find_gaps`."""
        return find_gaps(self.facts, self.clock.frames["other"])

    @cached_property
    def memory(self) -> pl.DataFrame:
        """The blocks of memory taken and given back; times in nanoseconds."""
        return build_memory(self.clock.frames["memory"], self.facts)

    @cached_property
    def forwards(self) -> pl.DataFrame:
        """The forwards with their amounts; times in nanoseconds."""
        return unit_rows(self.facts.forwards, "forward", self.facts)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """The ProfilerSteps with their amounts; times in nanoseconds."""
        rows = unit_rows(self.facts.steps, "step_row", self.facts)
        return rows.with_columns_seq(index="number", first=_begins_a_recording())

    def step_rows(self, name: str) -> pl.Series:
        """Return which row of the table ``steps`` each row of a table or view belongs to.

        Args:
            name: of a table with the column ``step``, or of ``steps`` itself.
        """
        spec = catalogue.TABLES[name]
        base = spec.base or name
        if base == "steps":
            return self.steps.select_seq(pl.int_range(pl.len(), dtype=pl.Int64)).to_series()
        holder = self.facts if base in ("gpu_ops", "ops", "api_calls") else self
        frame: pl.DataFrame = getattr(holder, base)
        rows = frame if spec.condition is None else frame.filter(spec.condition)
        return rows["step_row"]

    @cached_property
    def work_of_calls(self) -> UnitWork:
        """The attention calls and what was launched in them."""
        return work_in(find_calls(self.facts.ops), self.facts)

    @cached_property
    def calls(self) -> pl.DataFrame:
        """The attention calls with their amounts; times in nanoseconds."""
        work, facts = self.work_of_calls, self.facts
        calls = add_work(build_calls(work), work, self.header)
        return add_obstacles(
            calls,
            facts.attention_inputs,
            self.header,
            has_gpu=not facts.gpu_ops.is_empty(),
            has_backward=(facts.ops["phase"] == "backward").any(),
        )

    def _obstacles_of_ops(self) -> pl.Series:
        """Return of each op in an attention call what kept the call off flash attention."""
        ops = self.facts.ops
        if not (ops["name"] == CHECKED_OP).any():
            return pl.repeat(None, ops.height, dtype=pl.String, eager=True)
        call = self.work_of_calls.facts.ops.select_seq(index=UNIT_OF_ROW)
        told = self.calls.select_seq("index", "flash_obstacle")
        found = call.join(told, on="index", how="left", maintain_order="left")
        return found["flash_obstacle"]

    @cached_property
    def work_of_calls_by_hand(self) -> UnitWork:
        """The attentions written out as ops, and what was launched in them."""
        return work_in(find_by_hand(self.facts.ops), self.facts)

    @cached_property
    def calls_by_hand(self) -> pl.DataFrame:
        """The attentions written out as ops with their amounts; times in nanoseconds."""
        work = self.work_of_calls_by_hand
        return add_work(build_by_hand(work), work, self.header)


def load_trace(
    path: str | Path,
    *,
    forward: str | None = None,
    progress: Progress | None = None,
    cache: CacheMode = "off",
) -> Trace:
    """Read a trace file and build its tables.

    Args:
        path: see :func:`analyze.trace.reader.read_events`.
        forward: see :class:`Trace`.
        progress: is told how many bytes have been read.
        cache: see :data:`analyze.cache.reading.CacheMode`.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        AnalyzeError: the trace has no annotation named ``forward``.
    """
    with paused_garbage_collector():
        return Trace(read_events_cached(path, progress, cache), forward)


def _begins_a_recording() -> pl.Expr:
    """Tell of each step whether it is the first of its process, or the numbers begin anew."""
    number_before = pl.col("number").shift(1).over("pid")
    begins_anew = (pl.col("number") <= number_before).fill_null(value=False)
    return pl.col("pid").is_first_distinct() | begins_anew


def _has_stacks(events: TraceEvents) -> bool:
    old_style = events.frames["ops"]["call_stack"].is_not_null().any()
    return bool(old_style) or not events.frames["frames"].is_empty()
