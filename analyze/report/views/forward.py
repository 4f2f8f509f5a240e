"""Which forward a report draws, and from when to when."""

from dataclasses import dataclass

import polars as pl

from analyze.report.views.model import Chosen
from analyze.tables.build import Trace
from analyze.tables.units import PROFILER_STEP, WHOLE_TRACE


@dataclass(frozen=True)
class DrawnForward:
    """The forward that is drawn; times are nanoseconds from the trace start.

    Attributes:
        index, forwards: which of how many, from 0.
        step: of a ProfilerStep, its own number.
        lane: thread that it ran on; None for the whole trace.
        chosen_by: of which amount it has the median, that of the forwards with GPU work.
        chosen_of: how many those forwards are.
        amount_ns, least_ns, most_ns: that amount, and its range over those forwards.
        start_ns, end_ns: the window: CPU time and GPU work of the forward.
        cpu_start_ns, cpu_end_ns: its CPU time.
    """

    index: int
    forwards: int
    step: int | None
    lane: int | None
    chosen_by: Chosen
    chosen_of: int
    amount_ns: int | None
    least_ns: int | None
    most_ns: int | None
    start_ns: int
    end_ns: int
    cpu_start_ns: int
    cpu_end_ns: int

    @property
    def length_ns(self) -> int:
        """Length of the window; at least 1."""
        return self.end_ns - self.start_ns

    def overlapping(self, slices: pl.DataFrame) -> pl.DataFrame:
        """Return the slices, columns ``start_ns`` and ``dur_ns``, of which a part is in the window.

        They get ``end_ns``; those without a time are left out.
        """
        end = pl.col("start_ns") + pl.col("dur_ns")
        return slices.with_columns(end_ns=end).filter(
            (pl.col("start_ns") <= self.end_ns) & (pl.col("end_ns") >= self.start_ns)
        )


def drawn_forward(trace: Trace) -> DrawnForward | None:
    """Return the median forward; None where it has no extent.

    It is the lower median by GPU busy time, of the forwards with GPU work; where no forward has
    any, by CPU time.
    """
    forwards = trace.forwards
    chosen_by: Chosen = "gpu_busy_us" if (forwards["gpu_busy_ns"] > 0).any() else "cpu_us"
    column = chosen_by.replace("_us", "_ns")
    candidates = forwards.filter(pl.col(column) > 0).sort(column, "index")
    if candidates.is_empty():
        return None
    row = candidates.row((candidates.height - 1) // 2, named=True)
    cpu_start, cpu_end = _cpu_time(trace, row["start_ns"], row["end_ns"])
    start, end = _with_gpu_work(trace, row["index"], cpu_start, cpu_end)
    if end <= start:
        return None
    return DrawnForward(
        index=row["index"],
        forwards=forwards.height,
        step=_step(trace, row["index"]),
        lane=row["lane"],
        chosen_by=chosen_by,
        chosen_of=candidates.height,
        amount_ns=row[column],
        least_ns=candidates[column][0],
        most_ns=candidates[column][-1],
        start_ns=start,
        end_ns=end,
        cpu_start_ns=cpu_start,
        cpu_end_ns=cpu_end,
    )


def _step(trace: Trace, index: int) -> int | None:
    if trace.forward_source != PROFILER_STEP:
        return None
    number: int | None = trace.facts.steps.intervals["number"][index]
    return number


def _cpu_time(trace: Trace, start: int, end: int) -> tuple[int, int]:
    """Return the CPU time of a forward; of the whole trace, from the first to the last event."""
    if trace.forward_source != WHOLE_TRACE:
        return start, end
    facts = trace.facts
    stop = pl.col("start_ns") + pl.col("dur_ns")
    times = [
        frame.select("start_ns", stop.alias("end_ns")).drop_nulls()
        for frame in (facts.ops, facts.api_calls, facts.gpu_ops)
    ]
    first, last = pl.concat(times).select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    return (first, last) if first is not None else (start, end)


def _with_gpu_work(trace: Trace, index: int, start: int, end: int) -> tuple[int, int]:
    work = trace.facts.gpu_ops.filter(pl.col("forward") == index).drop_nulls(["start_ns", "end_ns"])
    if work.is_empty():
        return start, end
    first, last = work.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    return min(start, first), max(end, last)
