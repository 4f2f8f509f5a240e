"""The annotations by name as text."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyze.report.condition import condition_sentence
from analyze.report.console import buffer_console, rendered
from analyze.report.coverage_text import coverage_lines
from analyze.report.ops_rows import EVERY_STEP
from analyze.report.summary_text import print_pairs
from analyze.words import counted, duration, printable

_ROOMY = 96
"""Characters of a line from which there is room for all columns."""

_LONGEST_LABEL = 72
_NOTHING = "-"

Entry = Mapping[str, Any]


def _backward_busy(entry: Entry) -> str:
    backward = entry["backward"]
    return duration(backward["busy_us"]) if backward["gpu_ops"] else _NOTHING


@dataclass(frozen=True)
class _Column:
    heading: str
    cell: Callable[[Entry], str]
    of_gpu: bool = False
    needs_room: bool = False


_COLUMNS = (
    _Column("\ncalls", lambda entry: f"{entry['calls']:,}"),
    _Column("total\nCPU", lambda entry: duration(entry["cpu_us"])),
    _Column("mean\nCPU", lambda entry: duration(entry["cpu_mean_us"]), needs_room=True),
    _Column("GPU\nbusy", lambda entry: duration(entry["gpu"]["busy_us"]), of_gpu=True),
    _Column(
        "GPU\nsum", lambda entry: duration(entry["gpu"]["sum_us"]), of_gpu=True, needs_room=True
    ),
    _Column(
        "kernels\na call", lambda entry: f"{entry['gpu']['kernels_per_call']:,.4g}", of_gpu=True
    ),
    _Column("\ncopies", lambda entry: f"{entry['gpu']['copies']:,}", of_gpu=True),
    _Column("\nsyncs", lambda entry: f"{entry['syncs']:,}", of_gpu=True),
    _Column("backward\nGPU busy", _backward_busy, of_gpu=True),
)


def render_regions(
    data: Mapping[str, Any], *, color: bool = False, width: int | None = None
) -> str:
    """Return the text of the data of :func:`analyze.report.regions.report_regions`."""
    console = buffer_console(width=width, color=color)
    console.print(Text(printable(data["trace"]), style="bold"))
    print_pairs(console, coverage_lines(data["coverage"], data["quality"]))
    title = counted(data["annotations"], "annotation")
    if data["name_count"] < data["annotations"]:
        title += f" of {counted(data['name_count'], 'name')}"
    console.print(Text(f"\n{title}", style="bold"))
    if data["where"] is not None:
        print_pairs(console, [("where", condition_sentence(data["where"], "annotation"))])
    if data["names"]:
        console.print(_table(data, roomy=console.width >= _ROOMY))
    hidden = data["name_count"] - len(data["names"])
    if hidden:
        console.print(Text(f"and {hidden:,} more; --limit {data['name_count']} shows all"))
    _print_why(console, data)
    return rendered(console)


def _table(data: Mapping[str, Any], *, roomy: bool) -> Table:
    has_gpu = bool(data["coverage"]["gpu_ops"])
    columns = [
        column
        for column in _COLUMNS
        if (has_gpu or not column.of_gpu) and (roomy or not column.needs_room)
    ]
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column(Text("\nname"), overflow="fold")
    for column in columns:
        table.add_column(Text(column.heading, justify="right"), justify="right", no_wrap=True)
    for entry in data["names"]:
        table.add_row(Text(_label(entry)), *(column.cell(entry) for column in columns))
    return table


def _label(entry: Entry) -> str:
    label = printable(entry["name"] or "unknown")
    if len(label) <= _LONGEST_LABEL:
        return label
    half = (_LONGEST_LABEL - 1) // 2
    return f"{label[:half]}\N{HORIZONTAL ELLIPSIS}{label[-half:]}"


def _print_why(console: Console, data: Mapping[str, Any]) -> None:
    if data["synchronisation"] is None:
        return
    console.print(Text("\nWhy CPU time is not GPU time", style="bold"))
    for entry in data["names"]:
        if _has_to_say(entry):
            console.print(Text(_label(entry)))
            console.print(Padding(Text(entry["why"]), (0, 0, 0, 2)))
    silent = [_label(entry) for entry in data["names"] if not _has_to_say(entry)]
    if silent:
        console.print(Text(f"launched no GPU work: {', '.join(silent)}"))
    console.print(Text("\nrecord_function does not synchronise", style="bold"))
    for sentence in _evidence(data):
        console.print(Text(sentence))


def _has_to_say(entry: Entry) -> bool:
    return bool(entry["together"]["gpu_ops"] or entry["waits"])


def _evidence(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the trace at hand says to the belief that it does."""
    seen = data["synchronisation"]
    outlasted, launched = seen["outlasted_by_it"], seen["with_gpu_work"]
    if outlasted:
        yield (
            f"Of {counted(launched, 'annotation')} that launched GPU work, {outlasted:,} had ended"
            " while some of it was still to run: impossible if the end waited for the GPU."
        )
    else:
        yield (
            f"No GPU work outlasted any of {counted(launched, 'annotation')}: here the GPU keeps"
            " up, or the code inside waits for it."
        )
    yield _sync_calls(seen)
    yield from _overlap(data)


def _sync_calls(seen: Mapping[str, int]) -> str:
    if seen["sync_calls"] < 2 * seen["annotations"]:
        return (
            f"Synchronising at start and end would be {2 * seen['annotations']:,} calls; the file"
            f" has {seen['sync_calls']:,}, the profiler's own aside."
        )
    return (
        f"Of the {seen['sync_calls']:,} synchronising calls in the file, ops made"
        f" {seen['made_by_ops']:,}: they come from no start or end of an annotation."
    )


def _overlap(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what attribution by time would say of the name that it would be most wrong about."""
    named = [entry for entry in data["names"] if entry["name"] != EVERY_STEP] or data["names"]
    worst = max(named, key=lambda entry: entry["by_overlap"]["launched_elsewhere"])
    by_time = worst["by_overlap"]
    if by_time["launched_elsewhere"]:
        yield (
            f"By time, {_label(worst)} would be given the {by_time['gpu_ops']:,} linked GPU ops"
            f" that started while it was open: {by_time['launched_elsewhere']:,} of them were"
            f" launched elsewhere, and {by_time['missed']:,} of its own"
            f" {worst['together']['gpu_ops']:,} would be missed."
        )
