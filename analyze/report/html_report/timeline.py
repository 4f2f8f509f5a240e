"""The timeline: what is said around it, its data for the script, and the same as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from markupsafe import Markup

from analyze.engine.result import Finding
from analyze.kernels.display import shorten
from analyze.report.gaps_text import CAUSES
from analyze.report.html_report.findings import Window, marks
from analyze.report.html_report.groups import GROUPS, Group, group_of
from analyze.report.views.model import LeftOut, Stream, Timeline
from analyze.tables.host import CHAIN_SEPARATOR
from analyze.words import counted, duration, printable, visible

MOST_ROWS = 200
_CUT_NAMED = 3
"""Findings of which it is said that not all places are marked."""

_IN_SCRIPT = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
    "##[": "#\\u0023[",
}
"""What could end a script element, or a line of its text, or act on a CI log, as JSON spells it."""


@dataclass(frozen=True)
class WorkCells:
    """A row of the table of GPU work."""

    group: Group
    start: str
    dur: str
    name: str
    stream: str
    op: str
    queue: str


@dataclass(frozen=True)
class TimelineView:
    """The timeline of a page.

    Attributes:
        sentences: which forward it is and why, and what is not drawn.
        label: what it is in short, for those who cannot see it.
        data: JSON for the script, safe inside a script element.
        title: the heading.
        unit: what a forward is in one word.
        has_gpu, has_spans, has_calls: there is GPU work to draw, ops or annotations, and calls.
        groups: those that occur in it, for the legend.
        causes: of idle time that occur in it, in words.
        rows: the GPU work of the forward in order.
        rest: what the table leaves out.
    """

    title: str
    unit: str
    sentences: list[str]
    label: str
    data: Markup
    has_gpu: bool
    has_spans: bool
    has_calls: bool
    groups: list[Group]
    causes: list[str]
    rows: list[WorkCells]
    rest: str


def timeline_of(timeline: Timeline, findings: Sequence[Finding], unit: str) -> TimelineView:
    """Return the timeline of a page.

    Args:
        timeline: to draw.
        findings: of the same trace, those that the page shows.
        unit: what a forward is in one word.
    """
    used = sorted({group for stream in timeline.streams for group in _groups(timeline, stream)})
    causes = {cause for device in timeline.devices for cause in device.idle.cause}
    rows = _rows(timeline)
    return TimelineView(
        title=_title(timeline, unit),
        unit=unit,
        sentences=[_which(timeline, unit), *_not_drawn(timeline), *_not_marked(findings)],
        label=_label(timeline, unit),
        data=_data(timeline, findings, unit),
        has_gpu=bool(timeline.streams),
        has_spans=any(thread.spans.name for thread in timeline.threads),
        has_calls=any(thread.calls.name for thread in timeline.threads),
        groups=[GROUPS[place] for place in used],
        causes=[words for cause, words in CAUSES.items() if cause in causes],
        rows=rows[:MOST_ROWS],
        rest=f"and {len(rows) - MOST_ROWS:,} more" if len(rows) > MOST_ROWS else "",
    )


def window_of(timeline: Timeline) -> Window:
    """Return the time that a timeline shows."""
    return timeline.start_us, timeline.start_us + timeline.dur_us


def _groups(timeline: Timeline, stream: Stream) -> list[int]:
    slices, texts = stream.slices, timeline.texts
    return [
        group_of(kind, None if family is None else texts[family])
        for kind, family in zip(slices.kind, slices.family, strict=True)
    ]


def _title(timeline: Timeline, unit: str) -> str:
    if unit == "trace":
        return "Timeline of the whole trace"
    return f"Timeline of {_name(timeline, unit) or f'one {unit}'}"


def _name(timeline: Timeline, unit: str) -> str | None:
    """Return what other commands call the forward: a step by its own number, where it is known."""
    number = timeline.step if unit == "step" else timeline.index
    return None if number is None else f"{unit} {number}"


def _which(timeline: Timeline, unit: str) -> str:
    length = duration(timeline.dur_us)
    if timeline.forward_is == "trace":
        return f"The whole trace, {length}: it names no forward (--forward NAME takes one)."
    of = "GPU busy time" if timeline.chosen_by == "gpu_busy_us" else "CPU time"
    amount = duration(timeline.amount_us)
    if timeline.forwards == 1:
        return f"The only {unit}, {length}; {of} {amount}."
    name, count = _name(timeline, unit), f"one of {timeline.forwards:,}"
    which = f"{name} ({count})" if name else f"{count} {unit}s"
    spread = f"{duration(timeline.least_us)} to {duration(timeline.most_us)}"
    among = "all with GPU work" if timeline.chosen_by == "gpu_busy_us" else "all"
    median = _median(timeline.chosen_of)
    return f"{which.capitalize()}, {length}: {median} by {of}, {amount} ({among}: {spread})."


def _median(count: int | None) -> str:
    """Return what the drawn forward is; of an even number none is in the middle."""
    return "the median" if count is None or count % 2 else "the lower of the two in the middle"


def _not_drawn(timeline: Timeline) -> Iterator[str]:
    slices = [part for stream in timeline.streams for part in stream.slices.count]
    spans = [count for thread in timeline.threads for count in thread.spans.count]
    calls = [count for thread in timeline.threads for count in thread.calls.count]
    together = [
        f"{sum(counts):,} {noun} as {len(counts):,}"
        for counts, noun in ((slices, "GPU ops"), (spans, "ops"), (calls, "calls"))
        if len(counts) < sum(counts)
    ]
    if together:
        yield f"Short neighbours are drawn as one, their sums kept: {', '.join(together)} slices."
    yield from _left_out(timeline.threads_left_out, "thread", "host event")
    yield from _left_out(timeline.streams_left_out, "stream", "GPU op")
    short = sum(device.idle_left_out.slices for device in timeline.devices)
    if short:
        time = sum(device.idle_left_out.dur_us for device in timeline.devices)
        yield f"Only the longest idle times are marked; {short:,} ({duration(time)}) are not."


def _not_marked(findings: Sequence[Finding]) -> Iterator[str]:
    cut = [f for f in findings if 0 < len(f.places) < f.places_total]
    if cut:
        some = ", ".join(_how_many_listed(finding) for finding in cut[:_CUT_NAMED])
        more = f", and {len(cut) - _CUT_NAMED:,} more so" if len(cut) > _CUT_NAMED else ""
        yield f"Not every place of a finding is marked: {some}{more}."


def _how_many_listed(finding: Finding) -> str:
    return f"{len(finding.places):,} of the {finding.places_total:,} of {printable(finding.code)}"


def _left_out(left: LeftOut, lane: str, slice_: str) -> Iterator[str]:
    if left.slices:
        lanes = f" in {counted(left.lanes, f'other {lane}')}" if left.lanes else ""
        yield f"Not drawn: {counted(left.slices, slice_)} ({duration(left.dur_us)}, summed){lanes}."


def _label(timeline: Timeline, unit: str) -> str:
    threads, streams = len(timeline.threads), len(timeline.streams)
    return (
        f"{_title(timeline, unit)}: {counted(threads, 'thread')} of the host and"
        f" {counted(streams, 'GPU stream')} over {duration(timeline.dur_us)}"
    )


def _data(timeline: Timeline, findings: Sequence[Finding], unit: str) -> Markup:
    texts = list(map(visible, timeline.texts))
    names = {place for stream in timeline.streams for place in stream.slices.name}
    short = {str(place): visible(shorten(timeline.texts[place])) for place in names}
    data = {
        **_visible(asdict(timeline)),
        "short": {place: name for place, name in short.items() if name != texts[int(place)]},
        "unit": unit,
        "groups": [
            {
                "key": group.key,
                "letter": group.letter,
                "label": group.label,
                "pattern": group.pattern,
            }
            for group in GROUPS
        ],
        "group": [_groups(timeline, stream) for stream in timeline.streams],
        "causes": {cause or "": words for cause, words in CAUSES.items()},
        "findings": [_visible(asdict(mark)) for mark in marks(findings, window_of(timeline))],
    }
    return script_json(data)


def _visible(value: Any) -> Any:
    """Make all texts in plain data visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return list(map(_visible, value))
    return (
        {key: _visible(part) for key, part in value.items()} if isinstance(value, dict) else value
    )


def script_json(data: Any) -> Markup:
    """Return JSON that stays inside the script element it is put into."""
    text = orjson.dumps(data).decode()
    for character, spelling in _IN_SCRIPT.items():
        text = text.replace(character, spelling)
    return Markup(text)  # noqa: S704 - what could end the element is spelt out


def _rows(timeline: Timeline) -> list[WorkCells]:
    texts, found = timeline.texts, []
    for stream in timeline.streams:
        slices = stream.slices
        for place, group in enumerate(_groups(timeline, stream)):
            if not slices.own[place]:
                continue
            chain, queue = slices.op_chain[place], slices.queue_us[place]
            count = slices.count[place]
            name = shorten(texts[slices.name[place]])
            row = WorkCells(
                group=GROUPS[group],
                start=duration(slices.start_us[place] - timeline.cpu_start_us),
                dur=duration(slices.sum_us[place]),
                name=name if count == 1 else f"{count:,} GPU ops, the longest {name}",
                stream=f"{stream.device}/{stream.stream}",
                op="" if chain is None else texts[chain].rpartition(CHAIN_SEPARATOR)[2],
                queue="" if queue is None or count > 1 else duration(queue),
            )
            found.append((slices.start_us[place], row))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]
