"""What of a trace is asked for: steps, forwards, a time, or what is around a finding."""

import re
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analyze.engine.result import Finding, Place
from analyze.errors import AnalyzeError
from analyze.tables.build import Trace
from analyze.tables.units import WHOLE_TRACE, UnitName, Units, unit_name
from analyze.trim.windows import Window, merged
from analyze.words import counted, duration, printable

DEFAULT_CONTEXT_NS = 5_000_000
"""Around a finding where the trace has no forwards: a few decode steps, or a part of one step."""

_RANGES = re.compile(r"\d{1,18}(-\d{1,18})?(,\d{1,18}(-\d{1,18})?)*")
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = r"(\d{1,12}(?:\.\d{1,9})?)\s*(ns|us|ms|s)"
_BETWEEN = re.compile(rf"\s*{_TIME}\s*-\s*{_TIME}\s*")
_LONGEST_NS = 366 * 24 * 3600 * 1_000_000_000
"""No recording is longer; a time beyond it means its end, and would not fit into 64 bits."""

_LISTED = 8

Ranges = list[tuple[int, int]]


@dataclass(frozen=True)
class Selected:
    """The kept time of a trace.

    Attributes:
        windows: from the trace start, in nanoseconds.
        words: what was chosen, e.g. ``steps 2 to 3``.
        of: what there is of it, e.g. ``steps 2 to 9``; null where that says nothing.
        whole: what was kept whole around a finding, ``forward`` or ``step``; null without it.
    """

    windows: list[Window]
    words: str
    of: str | None
    whole: UnitName | None = None


def parse_ranges(text: str) -> Ranges:
    """Return the ranges of a text such as ``2-3,7``, both ends included.

    Raises:
        ValueError: the text is none; the message says what one looks like.
    """
    if not _RANGES.fullmatch(text):
        raise ValueError(f"'{printable(text)}' is not like 3, 2-4 or 2,4")
    ranges = [
        (int(first), int(last or first))
        for first, _, last in (part.partition("-") for part in text.split(","))
    ]
    for first, last in ranges:
        if last < first:
            raise ValueError(f"{first}-{last} ends before it begins")
    return ranges


def parse_between(text: str) -> Window:
    """Return the nanoseconds of a text such as ``10ms-20.5ms``.

    Raises:
        ValueError: the text is none; the message says what one looks like.
    """
    found = _BETWEEN.fullmatch(text)
    if found is None:
        raise ValueError(f"'{printable(text)}' is not like 10ms-20ms (units ns, us, ms, s)")
    first, first_unit, last, last_unit = found.groups()
    start, end = _nanoseconds(first, first_unit), _nanoseconds(last, last_unit)
    if end <= start:
        raise ValueError(f"'{printable(text)}' ends before it begins")
    return start, end


def _nanoseconds(number: str, unit: str) -> int:
    return min(int(Decimal(number) * _UNITS[unit]), _LONGEST_NS)


def select_steps(trace: Trace, ranges: Ranges) -> Selected:
    """Return the time of ProfilerSteps by their numbers.

    Raises:
        AnalyzeError: the trace has no step of such a number.
    """
    steps = trace.facts.steps
    units = steps._replace(intervals=steps.intervals.with_columns(index="number"))
    chosen = _chosen(trace, units, ranges, "step", "--steps")
    return _selected(units, chosen, "step")


def select_forwards(trace: Trace, ranges: Ranges) -> Selected:
    """Return the time of forwards, counted from 0.

    Raises:
        AnalyzeError: the trace has no forward of such a number.
    """
    units = trace.facts.forwards
    if units.source == WHOLE_TRACE:
        raise AnalyzeError(
            f"{trace.name}: --forwards: the trace has neither ProfilerSteps nor an annotation that"
            " capture writes; name an annotation with --forward, or a time with --between"
        )
    chosen = _chosen(trace, units, ranges, "forward", "--forwards")
    return _selected(units, chosen, "forward")


def select_between(trace: Trace, window: Window) -> Selected:
    """Return a time from the trace start."""
    start, end = (duration(ns / 1000) for ns in window)
    if window[1] == _LONGEST_NS:
        return Selected([window], f"{start} to the trace's end", _length(trace))
    return Selected([window], f"{start} to {end} from the trace start", _length(trace))


def select_around(trace: Trace, finding: Finding, context_ns: int | None, places: int) -> Selected:
    """Return the time around the first places of a finding.

    Around GPU work that is the time of its launch, around an idle gap also that of the launches of
    the work before and after it. Without a context it is the whole forward that each lies in.

    Args:
        trace: the trace.
        finding: one of its findings.
        context_ns: how much before and after is kept as well.
        places: how many of the finding's places.

    Raises:
        AnalyzeError: the finding is about the trace as a whole.
    """
    shown = finding.places[:places]
    if not shown:
        raise AnalyzeError(
            f"{trace.name}: --around: {finding.code} is about the trace as a whole, not about a"
            " time in it; choose with --steps, --forwards or --between"
        )
    points = [window for place in shown for window in _host_times(trace, place)]
    words = f"around {len(shown)} of {counted(finding.places_total, 'place')} of {finding.code}"
    units = trace.facts.forwards
    if context_ns is None and units.source != WHOLE_TRACE:
        around = [_unit_around(units, point) for point in points]
        whole = unit_name(units.source)
        return Selected(merged(around), f"{words}, whole {whole}s", None, whole)
    context = DEFAULT_CONTEXT_NS if context_ns is None else context_ns
    windows = merged((max(0, start - context), end + context) for start, end in points)
    return Selected(windows, f"{words}, {duration(context / 1000)} before and after", None)


def _chosen(trace: Trace, units: Units, ranges: Ranges, noun: str, option: str) -> pl.DataFrame:
    known = units.intervals.drop_nulls(["index", "start_ns", "end_ns"])
    numbers = set(known["index"])
    absent = sorted({end for ends in ranges for end in ends} - numbers)
    if absent:
        has = _spelt(sorted(numbers), noun) if numbers else f"no {noun}s"
        raise AnalyzeError(
            f"{trace.name}: {option}: there is no {noun} {absent[0]}; the trace has {has}"
        )
    is_in = pl.any_horizontal(pl.col("index").is_between(*ends) for ends in ranges)
    return known.filter(is_in)


def _selected(units: Units, chosen: pl.DataFrame, noun: str) -> Selected:
    numbers, everything = chosen["index"].to_list(), units.intervals["index"].drop_nulls()
    windows = _windows(units.intervals, set(numbers))
    return Selected(windows, _spelt(numbers, noun), _spelt(everything.to_list(), noun))


def _windows(intervals: pl.DataFrame, chosen: set[int]) -> list[Window]:
    """Return the time of the chosen units, with the time between two that follow each other."""
    windows: list[Window] = []
    follows = False
    for index, start, end in (
        intervals.drop_nulls(["start_ns", "end_ns"])
        .sort("start_ns")
        .select("index", "start_ns", "end_ns")
        .iter_rows()
    ):
        if index in chosen:
            first = windows.pop()[0] if follows else start
            windows.append((first, end))
        follows = index in chosen
    return merged(windows)


def _spelt(numbers: list[int], noun: str) -> str:
    """Spell numbers with runs made short: ``steps 2 to 4, 7``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in runs[:_LISTED]]
    more = [f"and {len(runs) - _LISTED} more"] if len(runs) > _LISTED else []
    return f"{noun}{'' if len(numbers) == 1 else 's'} {', '.join([*shown, *more])}"


def _length(trace: Trace) -> str | None:
    frames = (trace.facts.ops, trace.facts.api_calls, trace.facts.gpu_ops)
    ends = [frame.select((pl.col("start_ns") + pl.col("dur_ns")).max()).item() for frame in frames]
    known = [end for end in ends if end is not None]
    return duration(max(known) / 1000) if known else None


def _host_times(trace: Trace, place: Place) -> list[Window]:
    """Return when the host did what a place is about."""
    start, end = _interval(place)
    if place.pid is not None or place.device is None:
        return [(start, end)]
    gpu_ops = trace.facts.gpu_ops.filter(pl.col("device") == place.device)
    if place.stream is None:
        edges = (pl.col("start_ns") == end) | (pl.col("end_ns") == start)
        return [(start, end), *_launches(gpu_ops.filter(edges))]
    is_it = (pl.col("start_ns") == start) & (pl.col("stream") == place.stream)
    return _launches(gpu_ops.filter(is_it)) or [(start, end)]


def _interval(place: Place) -> Window:
    start = round(place.start_us * 1000)
    return start, start + max(1, round((place.dur_us or 0) * 1000))


def _launches(gpu_ops: pl.DataFrame) -> list[Window]:
    known = gpu_ops.select("api_start_ns", "api_end_ns").drop_nulls()
    return [(start, max(end, start + 1)) for start, end in known.iter_rows()]


def _unit_around(units: Units, point: Window) -> Window:
    """Return the forward in which a time begins, made longer by what reaches out of it."""
    start, end = point
    around = units.intervals.filter(
        (pl.col("start_ns") <= start) & (pl.col("end_ns") > start)
    ).select("start_ns", "end_ns")
    if around.is_empty():
        return max(0, start - DEFAULT_CONTEXT_NS), end + DEFAULT_CONTEXT_NS
    first, last = around.row(0)
    return first, max(last, end)
