"""Peak memory, the ops that allocate, score matrices and allocator churn, as text."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyze.report.chains import short_chain
from analyze.report.console import buffer_console, plain_table, print_pairs, rendered
from analyze.report.summary_text import print_opening
from analyze.words import UNKNOWN, counted, duration, printable, share, size

Data = Mapping[str, Any]

_SMALL = 0.01
"""Share of the largest peak below which a device's own is only listed."""


def render_memory(report: Data, *, limit: int, color: bool = False) -> str:
    """Return the text of what :func:`analyze.report.memory.describe_memory` found.

    Args:
        report: the data.
        limit: rows to show of each table.
        color: whether to use colours.
    """
    console = buffer_console(color=color)
    print_opening(console, report)
    _print_devices(console, report)
    for device in _large(report["devices"]):
        _print_peak(console, device, report["coverage"], limit)
    _print_ops(console, report, limit)
    _print_scores(console, report["score_matrices"], limit)
    _print_churn(console, report, limit)
    return rendered(console)


def _table(console: Console, title: str, *columns: str) -> Table:
    """Print a title, as long as it is, and return the table that goes below it."""
    console.print(Text(title, style="bold"))
    table = plain_table("", *columns)
    table.title = None
    return table


def _print_devices(console: Console, report: Data) -> None:
    title = f"\nMemory: {counted(report['events'], 'event')}"
    columns = ("device", "allocations", "bytes", "frees", "at start", "peak", "reserved")
    table = _table(console, title, *columns)
    for device in report["devices"]:
        table.add_row(
            Text(printable(device["device"])),
            f"{device['allocations']:,}",
            size(device["allocated_bytes"]),
            f"{device['frees']:,}",
            _known(device["total_at_start_bytes"]),
            size(device["peak"]["bytes"]),
            _known(device["peak_reserved_bytes"]),
        )
    console.print(table)
    print_pairs(console, _device_notes(report))


def _large(devices: list[Data]) -> list[Data]:
    """Leave out devices whose peak is next to nothing beside another's."""
    largest = max(device["peak"]["bytes"] for device in devices)
    return [device for device in devices if device["peak"]["bytes"] >= _SMALL * largest]


def _known(count: int | None) -> str:
    return "-" if count is None else size(count)


def _device_notes(report: Data) -> Iterator[tuple[str, str]]:
    if report["out_of_memory"]:
        failed = counted(report["out_of_memory"], "allocation")
        yield "failed", f"{failed} found no memory ([OutOfMemory])"
    if not all(device["peak"]["by_allocator"] for device in report["devices"]):
        yield "peak", "a sum of the events where the allocator's own total was not recorded"
        yield "", "(torch before 1.13): what was allocated before the recording comes on top"
    if not report["addresses"]:
        yield "blocks", "cannot be told apart: addresses were not recorded (torch before 1.13)"
    for name in report["driver_calls"]:
        calls = f"{printable(name['name'])} x {name['count']:,}"
        yield "driver", f"{calls}, {duration(name['time_us'])}"


def _print_peak(console: Console, device: Data, coverage: Data, limit: int) -> None:
    peak = device["peak"]
    if peak["at_start"] or not peak["bytes"]:
        where = "at the start of the recording: it only shrank"
    else:
        where = f"at {duration(peak['start_us'])}{_unit(peak, coverage)}"
    title = f"\nPeak of {printable(device['device'])}: {size(peak['bytes'])} {where}"
    console.print(Text(title, style="bold"))
    print_pairs(console, _peak_lines(device))
    if not peak["live"]:
        return
    columns = ("live then, by the ops that allocated", "blocks", "bytes", "share")
    table = plain_table("", *columns)
    table.title = None
    for row in peak["live"][:limit]:
        table.add_row(
            _owner(row),
            f"{row['count']:,}",
            size(row["bytes"]),
            share(row["bytes"] / peak["bytes"]) if peak["bytes"] else UNKNOWN,
        )
    console.print(table)
    rest = peak["live"][limit:]
    _print_more(console, len(rest), "owner", sum(row["bytes"] for row in rest))


def _unit(place: Data, coverage: Data) -> str:
    if place["step"] is not None and coverage["forward_is"] == "ProfilerStep":
        return f", in step {place['step']}"
    if place["forward"] is not None and coverage["forward_is"] != "trace":
        return f", in forward {place['forward']}"
    return ""


def _peak_lines(device: Data) -> Iterator[tuple[str, str]]:
    peak = device["peak"]
    if not peak["at_start"]:
        yield "reached in", _chain(peak["op_chain"])
    if peak["source"] is not None:
        yield "line", printable(peak["source"])
    if peak["live_bytes"] is not None:
        blocks = counted(peak["live_blocks"], "block")
        yield "recorded", f"{size(peak['live_bytes'])} in {blocks} allocated since the start"
    if peak["from_before_bytes"]:
        before = size(peak["from_before_bytes"])
        yield "before", f"{before} allocated before the recording, by unknown ops"
    if device["not_freed"]:
        blocks = counted(device["not_freed"], "block")
        yield "at the end", f"{size(device['not_freed_bytes'])} in {blocks} not given back"


def _chain(op_chain: str | None) -> str:
    return "outside any op" if op_chain is None else short_chain(op_chain)


def _owner(row: Data) -> Text:
    text = Text(_chain(row["op_chain"]))
    if row["source"] is not None:
        text.append(f"\n  {printable(row['source'])}", style="dim")
    return text


def _print_more(console: Console, count: int, noun: str, more_bytes: int) -> None:
    if count:
        console.print(Text(f"and {counted(count, f'more {noun}')}, {size(more_bytes)}"))


def _print_ops(console: Console, report: Data, limit: int) -> None:
    ops = [row for row in report["ops"] if row["count"]]
    several = len(report["devices"]) > 1
    title = f"\nOps that allocate most, of {counted(len(ops), 'op chain')}"
    table = _table(console, title, "op", "allocations", "bytes", "freed in it", "net")
    for row in ops[:limit]:
        owner = _owner(row)
        if several:
            owner = Text(f"{printable(row['device'])}  ").append_text(owner)
        table.add_row(
            owner,
            f"{row['count']:,}",
            size(row["bytes"]),
            size(row["freed_bytes"]),
            size(row["net_bytes"]),
        )
    console.print(table)
    rest = ops[limit:]
    _print_more(console, len(rest), "op chain", sum(row["bytes"] for row in rest))


def _print_scores(console: Console, scores: Data, limit: int) -> None:
    if not scores["calls"] and not scores["calls_of_unknown_size"]:
        return
    if not scores["matches"]:
        console.print(Text("\nMatrices the size of attention scores: none", style="bold"))
        print_pairs(console, _score_notes(scores))
        return
    title = (
        f"\nMatrices the size of attention scores: {counted(scores['count'], 'allocation')},"
        f" {size(scores['bytes'])}"
    )
    table = _table(console, title, "allocated in", "count", "bytes each", "bytes")
    for row in scores["matches"][:limit]:
        owner = _owner(row)
        owner.append(f"\n  {row['shape']}, {row['item_bytes']} bytes an element", style="dim")
        table.add_row(owner, f"{row['count']:,}", size(row["bytes"]), size(row["total_bytes"]))
    console.print(table)
    rest = scores["matches"][limit:]
    _print_more(console, len(rest), "kind", sum(row["total_bytes"] for row in rest))
    print_pairs(console, _score_notes(scores))


def _score_notes(scores: Data) -> Iterator[tuple[str, str]]:
    how = "by size alone: batch x heads x queries x keys elements, in the inputs' dtype or fp32"
    yield "matched", f"{how}; {counted(scores['calls'], 'attention call')} looked at"
    if scores["calls_of_unknown_size"]:
        calls = counted(scores["calls_of_unknown_size"], "attention call")
        yield "unknown", f"{calls} did not record shapes that tell"


def _print_churn(console: Console, report: Data, limit: int) -> None:
    churn = report["churn"]
    if churn is None or not churn["pairs"]:
        return
    within = "the trace" if churn["unit"] == "trace" else f"one {churn['unit']}"
    title = (
        f"\nAllocated and given back within {within}:"
        f" {counted(churn['pairs'], 'block')}, {size(churn['bytes'])}"
    )
    table = _table(console, title, "size, most often by", "blocks", "bytes", "median life")
    for row in churn["sizes"][:limit]:
        owner = Text(size(row["bytes"]))
        owner.append(f"\n  {_chain(row['op_chain'])}", style="dim")
        lifetime = duration(row["median_lifetime_us"])
        table.add_row(owner, f"{row['pairs']:,}", size(row["total_bytes"]), lifetime)
    console.print(table)
    rest = churn["sizes"][limit:]
    _print_more(console, len(rest), "size", sum(row["total_bytes"] for row in rest))
