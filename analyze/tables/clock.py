"""One clock for a trace: plausible times, and a common start."""

from dataclasses import dataclass, field

import polars as pl

from analyze.trace.reader import TraceEvents

_TIMED = (
    "ops", "attention_inputs", "annotations", "frames", "api_calls", "gpu_ops", "memory", "other",
)  # fmt: skip
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
        zero_start: GPU events dated 0 in a trace whose host events are not, placed nowhere.
    """

    missing: int = 0
    negative: int = 0
    impossible: int = 0
    zero_start: int = 0


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
    frames["gpu_ops"] = _without_zero_starts(frames, report)
    origin_ns = _origin(frames)
    for name in _TIMED:
        frames[name] = frames[name].with_columns(start_ns=pl.col("start_ns") - origin_ns)
    for name in _NAMED_THREADS:
        lane = frames[name]["lane"]
        frames[name] = frames[name].with_columns(
            pid=events.threads["pid"].gather(lane), tid=events.threads["tid"].gather(lane)
        )
    return Clock(frames, origin_ns, report)


def _plausible(frame: pl.DataFrame, report: TimeReport) -> pl.DataFrame:
    if "dur_ns" not in frame.columns:
        return frame
    duration = pl.col("dur_ns")
    timed = frame if "ph" not in frame.columns else frame.filter(pl.col("ph") == "X")
    missing, negative, impossible = timed.select(
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
    return frame.with_columns(dur_ns=pl.when(plausible).then(duration))


def _without_zero_starts(frames: dict[str, pl.DataFrame], report: TimeReport) -> pl.DataFrame:
    """Take a GPU start of 0 as unknown where the host's clock is far from 0."""
    gpu_ops = frames["gpu_ops"]
    host_start = frames["api_calls"]["start_ns"].min()
    if not isinstance(host_start, int) or host_start < _SECOND_NS:
        return gpu_ops
    report.zero_start += int((gpu_ops["start_ns"] == 0).sum())
    return gpu_ops.with_columns(start_ns=pl.when(pl.col("start_ns") != 0).then("start_ns"))


def _origin(frames: dict[str, pl.DataFrame]) -> int:
    starts = [frames[name]["start_ns"].min() for name in _TIMED]
    return min((start for start in starts if isinstance(start, int)), default=0)
