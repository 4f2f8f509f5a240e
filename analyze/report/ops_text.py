"""The averaged ops as a text table."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyze.report.condition import condition_sentence
from analyze.report.console import buffer_console, rendered
from analyze.report.coverage_text import coverage_lines
from analyze.report.summary_text import print_pairs
from analyze.words import counted, duration, printable, share

_ROOMY = 96
"""Characters of a line from which there is room for the averages."""

_LONGEST_LABEL = 72
_NOTHING = "-"
_NOT_KNOWN = {
    "name": "unknown",
    "shapes": "shapes not recorded",
    "stack": "no line of the user's",
    "module": "outside any module",
    "region": "outside any region",
    "phase": "unknown",
}

Row = Mapping[str, Any]


def _us(name: str) -> Callable[[Row], str]:
    return lambda row: _NOTHING if row[name] is None else duration(row[name])


def _share_of(name: str) -> Callable[[Row], str]:
    return lambda row: _NOTHING if row[name] is None else share(row[name])


@dataclass(frozen=True)
class _Column:
    heading: str
    cell: Callable[[Row], str]
    of_device: bool = False
    needs_room: bool = False


_COLUMNS = (
    _Column("self\nCPU", _us("self_cpu_us")),
    _Column("\nshare", _share_of("self_cpu_share")),
    _Column("total\nCPU", _us("cpu_us")),
    _Column("mean\nCPU", _us("cpu_avg_us"), needs_room=True),
    _Column("self\nGPU", _us("self_device_us"), of_device=True),
    _Column("\nshare", _share_of("self_device_share"), of_device=True),
    _Column("total\nGPU", _us("device_us"), of_device=True),
    _Column("mean\nGPU", _us("device_avg_us"), of_device=True, needs_room=True),
    _Column("\ncalls", lambda row: f"{row['calls']:,}"),
)


def render_ops(data: Mapping[str, Any], *, color: bool = False, width: int | None = None) -> str:
    """Return the text of the data of :func:`analyze.report.ops.average_ops`."""
    console = buffer_console(width=width, color=color)
    console.print(Text(printable(data["trace"]), style="bold"))
    print_pairs(console, coverage_lines(data["coverage"], data["quality"]))
    console.print(Text(f"\n{_title(data)}", style="bold"))
    if data["where"] is not None:
        print_pairs(console, [("where", condition_sentence(data["where"], "op"))])
    if data["groups"]:
        console.print(_table(data, roomy=console.width >= _ROOMY))
    hidden = data["group_count"] - len(data["groups"])
    if hidden:
        console.print(Text(f"and {hidden:,} more; --limit {data['group_count']} shows all"))
    _print_totals(console, data)
    return rendered(console)


def _title(data: Mapping[str, Any]) -> str:
    parts = [f"{counted(data['total']['calls'], 'call')} by {', '.join(data['group_by'])}"]
    parts += [f"in ProfilerStep#{data['step']}"] if data["step"] is not None else []
    return f"{' '.join(parts)}; sorted by {data['sort']}"


def _table(data: Mapping[str, Any], *, roomy: bool) -> Table:
    has_device = data["total"]["self_device_us"] is not None
    columns = [
        column
        for column in _COLUMNS
        if (has_device or not column.of_device) and (roomy or not column.needs_room)
    ]
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column(Text(f"\n{', '.join(data['group_by'])}"), overflow="fold")
    for column in columns:
        table.add_column(Text(column.heading, justify="right"), justify="right", no_wrap=True)
    for row in data["groups"]:
        label = Text("\n".join(_labels(row, data["group_by"])))
        table.add_row(label, *(column.cell(row) for column in columns))
    return table


def _labels(row: Row, group_by: list[str]) -> Iterator[str]:
    """Yield the keys of a group, a line each; all but the first are indented."""
    for number, key in enumerate(group_by):
        label = _clipped(printable(row[key] or _NOT_KNOWN[key]))
        if key == "name" and row["kind"] == "annotation":
            label += " (annotation)"
        yield f"  {label}" if number else label


def _clipped(label: str) -> str:
    """Cut a long label in the middle: the ends of names and shapes tell them apart."""
    if len(label) <= _LONGEST_LABEL:
        return label
    half = (_LONGEST_LABEL - 1) // 2
    return f"{label[:half]}\N{HORIZONTAL ELLIPSIS}{label[-half:]}"


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
