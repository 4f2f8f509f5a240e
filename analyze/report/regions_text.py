"""The annotations by name as text."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from analyze.report.condition import condition_sentence
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.report.ops_rows import EVERY_STEP
from analyze.report.roomy_table import NOTHING, Column, clipped, print_rows
from analyze.report.summary_text import print_opening
from analyze.words import counted, duration, printable

Entry = Mapping[str, Any]


def _backward_busy(entry: Entry) -> str:
    backward = entry["backward"]
    return duration(backward["busy_us"]) if backward["gpu_ops"] else NOTHING


_COLUMNS = (
    Column("\ncalls", lambda entry: f"{entry['calls']:,}"),
    Column("total\nCPU", lambda entry: duration(entry["cpu_us"])),
    Column("mean\nCPU", lambda entry: duration(entry["cpu_mean_us"]), needs_room=True),
    Column("GPU\nbusy", lambda entry: duration(entry["gpu"]["busy_us"]), of_gpu=True),
    Column(
        "GPU\nsum", lambda entry: duration(entry["gpu"]["sum_us"]), of_gpu=True, needs_room=True
    ),
    Column(
        "kernels\na call", lambda entry: f"{entry['gpu']['kernels_per_call']:,.4g}", of_gpu=True
    ),
    Column("\ncopies", lambda entry: f"{entry['gpu']['copies']:,}", of_gpu=True),
    Column("\nsyncs", lambda entry: f"{entry['syncs']:,}", of_gpu=True),
    Column("backward\nGPU busy", _backward_busy, of_gpu=True),
)


def render_regions(
    data: Mapping[str, Any], *, color: bool = False, width: int | None = None
) -> str:
    """Return the text of the data of :func:`analyze.report.regions.report_regions`."""
    console = buffer_console(width=width, color=color)
    print_opening(console, data)
    title = counted(data["annotations"], "annotation")
    if data["name_count"] < data["annotations"]:
        title += f" of {counted(data['name_count'], 'name')}"
    console.print(Text(f"\n{title}", style="bold"))
    if data["where"] is not None:
        print_pairs(console, [("where", condition_sentence(data["where"], "annotation"))])
    if data["names"]:
        rows = ((_label(entry), entry) for entry in data["names"])
        has_gpu = bool(data["coverage"]["gpu_ops"])
        print_rows(console, "name", _COLUMNS, rows, has_gpu=has_gpu)
    hidden = data["name_count"] - len(data["names"])
    if hidden:
        console.print(Text(f"and {hidden:,} more; --limit {data['name_count']} shows all"))
    _print_why(console, data)
    return rendered(console)


def _label(entry: Entry) -> str:
    return clipped(printable(entry["name"] or "unknown"))


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
    calls, from_ops = seen["sync_calls"], seen["made_by_ops"]
    if calls < 2 * seen["annotations"]:
        return (
            f"Synchronising at start and end would be {2 * seen['annotations']:,} calls; the file"
            f" has {calls:,}, the profiler's own aside."
        )
    others = f"; {calls - from_ops:,} came from outside of ops" if calls > from_ops else ""
    return (
        f"Of the {calls:,} synchronising calls in the file {from_ops:,} came from ops, not from the"
        f" start or end of an annotation{others}."
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
