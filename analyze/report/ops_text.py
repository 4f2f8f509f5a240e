"""The averaged ops as a text table."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.report.condition import condition_sentence
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.report.roomy_table import NOTHING, Column, Row, clipped, print_rows
from analyze.report.summary_text import print_opening
from analyze.words import counted, duration, printable, share

_NOT_KNOWN = {
    "name": "unknown",
    "shapes": "shapes not recorded",
    "stack": "no line of the user's",
    "module": "outside any module",
    "region": "outside any region",
    "phase": "unknown",
}


def _us(name: str) -> Callable[[Row], str]:
    return lambda row: NOTHING if row[name] is None else duration(row[name])


def _share_of(name: str) -> Callable[[Row], str]:
    return lambda row: NOTHING if row[name] is None else share(row[name])


_COLUMNS = (
    Column("self\nCPU", _us("self_cpu_us")),
    Column("\nshare", _share_of("self_cpu_share")),
    Column("total\nCPU", _us("cpu_us")),
    Column("mean\nCPU", _us("cpu_avg_us"), needs_room=True),
    Column("self\nGPU", _us("self_device_us"), of_gpu=True),
    Column("\nshare", _share_of("self_device_share"), of_gpu=True),
    Column("total\nGPU", _us("device_us"), of_gpu=True),
    Column("mean\nGPU", _us("device_avg_us"), of_gpu=True, needs_room=True),
    Column("\ncalls", lambda row: f"{row['calls']:,}"),
)


def render_ops(data: Mapping[str, Any], *, color: bool = False, width: int | None = None) -> str:
    """Return the text of the data of :func:`analyze.report.ops.average_ops`."""
    console = buffer_console(width=width, color=color)
    print_opening(console, data)
    console.print(Text(f"\n{_title(data)}", style="bold"))
    if data["where"] is not None:
        print_pairs(console, [("where", condition_sentence(data["where"], "op"))])
    if data["groups"]:
        print_rows(
            console,
            ", ".join(data["group_by"]),
            _COLUMNS,
            (("\n".join(_labels(row, data["group_by"])), row) for row in data["groups"]),
            has_gpu=data["total"]["self_device_us"] is not None,
        )
    hidden = data["group_count"] - len(data["groups"])
    if hidden:
        console.print(Text(f"and {hidden:,} more; --limit {data['group_count']} shows all"))
    _print_totals(console, data)
    return rendered(console)


def _title(data: Mapping[str, Any]) -> str:
    parts = [f"{counted(data['total']['calls'], 'call')} by {', '.join(data['group_by'])}"]
    parts += [f"in ProfilerStep#{data['step']}"] if data["step"] is not None else []
    return f"{' '.join(parts)}; sorted by {data['sort']}"


def _labels(row: Row, group_by: list[str]) -> Iterator[str]:
    """Yield the keys of a group, a line each; all but the first are indented."""
    for number, key in enumerate(group_by):
        label = clipped(printable(row[key] or _NOT_KNOWN[key]))
        if key == "name" and row["kind"] == "annotation":
            label += " (annotation)"
        yield f"  {label}" if number else label


def _print_totals(console: Console, data: Mapping[str, Any]) -> None:
    total = data["total"]
    console.print(Text(f"\nSelf CPU time total: {duration(total['self_cpu_us'])}"))
    if total["self_device_us"] is not None:
        sentence = f"Self GPU time total: {duration(total['self_device_us'])}"
        console.print(Text(f"{sentence}{_by_no_row(data['launched_by_no_row'])}"))
    for note in data["notes"]:
        console.print(Text(f"note: {printable(note)}"))


def _by_no_row(outside: Mapping[str, Any] | None) -> str:
    if outside is None or not outside["gpu_ops"]:
        return ""
    sentence = f", of it {duration(outside['device_us'])} launched outside any op or annotation"
    if outside["unlinked_gpu_ops"]:
        sentence += f" ({duration(outside['unlinked_device_us'])} by a launch not in the file)"
    return sentence
