"""One clock for a trace: plausible times, and a common start."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from analyze.trace.reader import TraceEvents

_TIMED = (
    "ops", "attention_inputs", "annotations", "frames", "api_calls", "gpu_ops", "memory", "other",
)  # fmt: skip
_HOST = ("ops", "annotations", "frames", "api_calls")
_NAMED_THREADS = ("ops", "annotations", "api_calls", "memory")

MAX_DURATION_NS = 366 * 24 * 3600 * 10**9
"""A longer event is an overflow of some clock, not a duration (durations of centuries occur)."""

_SECOND_NS = 10**9


@dataclass
class TimeReport:
    """What was wrong with the times of a trace.

    Attributes:
        missing: events without a usable start or duration; they are counted, but placed nowhere.
        negative: durations below zero, taken as unknown.
        impossible: durations longer than any trace, taken as unknown.
        zero_start: events dated 0 in a trace whose host events are not, placed nowhere.
        outside: GPU events dated far outside of what the profiler recorded, placed nowhere.
    """

    missing: int = 0
    negative: int = 0
    impossible: int = 0
    zero_start: int = 0
    outside: int = 0


@dataclass
class Clock:
    """The events of a trace on one clock.

    Attributes:
        frames: the family frames with ``start_ns`` relative to ``origin_ns``, implausible durations
            null, and ``pid`` and ``tid`` of ops, annotations, API calls and memory events.
        origin_ns: the start of the trace in the file's own time.
        report: what was wrong.
    """

    frames: dict[str, pl.DataFrame]
    origin_ns: int
    report: TimeReport = field(default_factory=TimeReport)


def set_clock(events: TraceEvents) -> Clock:
    """Put all events on one clock that starts at the first of them.

    The frames of ``events`` are taken over, not copied: a large trace fits in memory once.
    """
    report = TimeReport()
    frames, events.frames = events.frames, {}
    for name in _TIMED:
        frames[name] = _plausible(frames[name], report)
    _forget_zero_starts(frames, report)
    _forget_starts_outside(frames, report)
    origin_ns = _first_start(frames, _TIMED) or 0
    for name in _TIMED:
        frames[name] = frames[name].with_columns_seq(start_ns=pl.col("start_ns") - origin_ns)
    for name in _NAMED_THREADS:
        lane = frames[name]["lane"]
        frames[name] = frames[name].with_columns_seq(
            pid=events.threads["pid"].gather(lane), tid=events.threads["tid"].gather(lane)
        )
    return Clock(frames, origin_ns, report)


def _plausible(frame: pl.DataFrame, report: TimeReport) -> pl.DataFrame:
    if "dur_ns" not in frame.columns:
        return frame
    duration = pl.col("dur_ns")
    timed = frame if "ph" not in frame.columns else frame.filter(pl.col("ph") == "X")
    missing, negative, impossible = timed.select_seq(
        missing=(pl.col("start_ns").is_null() | duration.is_null()).sum(),
        negative=(duration < 0).sum(),
        impossible=(duration > MAX_DURATION_NS).sum(),
    ).row(0)
    report.missing += missing
    report.negative += negative
    report.impossible += impossible
    if not negative and not impossible:
        return frame
    plausible = duration.is_between(0, MAX_DURATION_NS)
    return frame.with_columns_seq(dur_ns=pl.when(plausible).then(duration))


def _forget_zero_starts(frames: dict[str, pl.DataFrame], report: TimeReport) -> None:
    """Take a start of 0 as unknown where the host's clock is far from 0."""
    host_start = _first_start(frames, _HOST)
    if host_start is None or host_start < _SECOND_NS:
        return
    for name in _TIMED:
        frames[name], forgotten = _forget_starts(frames[name], pl.col("start_ns") == 0)
        report.zero_start += forgotten


def _forget_starts_outside(frames: dict[str, pl.DataFrame], report: TimeReport) -> None:
    """Take as unknown when GPU work began that is dated far outside of the profiler's span.

    ROCm has dated kernels before the program ran. Where most GPU work is dated so, the GPU is on
    another clock, and its times are good among themselves.
    """
    span = _span_of_profiler(frames["other"])
    if span is None:
        return
    first, last = span
    is_outside = ~pl.col("start_ns").is_between(first - _SECOND_NS, last + _SECOND_NS)
    if 2 * frames["gpu_ops"].filter(is_outside).height > frames["gpu_ops"]["start_ns"].count():
        return
    for name, of_gpu in (("gpu_ops", pl.lit(value=True)), ("other", pl.col("ph") == "X")):
        frames[name], forgotten = _forget_starts(frames[name], of_gpu & is_outside)
        report.outside += forgotten


def _span_of_profiler(other: pl.DataFrame) -> tuple[int, int] | None:
    """Return the first start and the last end of what the profiler says it recorded."""
    spans = other.filter((pl.col("ph") == "X") & (pl.col("cat").str.to_lowercase() == "trace"))
    spans = spans.select_seq("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")).drop_nulls()
    if spans.is_empty():
        return None
    first, last = spans.select_seq(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    return first, last


def _forget_starts(frame: pl.DataFrame, condition: pl.Expr) -> tuple[pl.DataFrame, int]:
    """Set the starts of some events to null, and return how many these are."""
    forgotten = frame.filter(condition).height
    if not forgotten:
        return frame, 0
    known = condition.not_().fill_null(value=True)
    return frame.with_columns_seq(start_ns=pl.when(known).then("start_ns")), forgotten


def _first_start(frames: dict[str, pl.DataFrame], names: Iterable[str]) -> int | None:
    starts = [frames[name]["start_ns"].min() for name in names]
    return min((start for start in starts if isinstance(start, int)), default=None)
