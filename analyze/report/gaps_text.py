"""Busy and idle time, the causes of idle time and the longest gaps, as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.kernels.display import shorten
from analyze.report.chains import short_chain
from analyze.report.condition import condition_sentence
from analyze.report.console import buffer_console, plain_table, print_pairs, rendered
from analyze.report.gaps import LATE
from analyze.report.summary_text import print_opening
from analyze.tables.units import unit_name
from analyze.words import UNKNOWN, counted, duration, printable, share

_BLOCKS = "·▁▂▃▄▅▆▇█"
"""Idle throughout, eighths, busy throughout."""

_MUCH = 0.05
"""Share of a time from which on a call or op is named beside the one with the most."""

_LITTLE = 0.01
"""Share of a time below which what it was spent on is not told."""

CAUSES = {
    "host": "launched too late",
    "sync": "launched after a wait",
    "input": "loading of data",
    "profiler": "profiler overhead",
    "launch": "the launching call",
    "stream": "after another stream",
    "device": "queued in time",
    None: "launch not recorded",
}


def render_gaps(data: Mapping[str, Any], *, color: bool = False) -> str:
    """Return the text of what :func:`analyze.report.gaps.describe_gaps` found."""
    console = buffer_console(color=color)
    print_opening(console, data)
    _print_devices(console, data["devices"])
    _print_timeline(console, data["timeline"])
    _print_causes(console, data)
    _print_longest(console, data)
    return rendered(console)


def _device(label: str | None) -> str:
    return f"GPU {printable(label or UNKNOWN)}"


def _print_devices(console: Console, devices: list[dict[str, Any]]) -> None:
    columns = ("device", "busy", "idle", "first to last", "busy share", "gaps")
    table = plain_table("\nGPU time", *columns)
    for device in devices:
        table.add_row(
            Text(_device(device["device"])),
            duration(device["busy_us"]),
            duration(device["idle_us"]),
            duration(device["span_us"]),
            share(device["busy_share"]),
            f"{device['gaps']:,}",
        )
    console.print(table)


def _print_timeline(console: Console, timeline: Mapping[str, Any] | None) -> None:
    if timeline is None:
        return
    length = timeline["end_us"] - timeline["start_us"]
    cells = len(timeline["devices"][0]["busy_share"])
    title = f"\nBusy share over time, {duration(length / cells)} a cell"
    if any(None in device["busy_share"] for device in timeline["devices"]):
        title += ", blank where time was left out"
    console.print(Text(title, style="bold"))
    width = max(len(_device(device["device"])) for device in timeline["devices"])
    for device in timeline["devices"]:
        bar = "".join(_block(busy) for busy in device["busy_share"])
        console.print(Text(f"{_device(device['device']):{width}}  {bar}"), no_wrap=True)
    first, last = duration(timeline["start_us"]), duration(timeline["end_us"])
    ends = f"{first} {last.rjust(cells - len(first) - 1)}"
    console.print(Text(f"{'':{width}}  {ends}"), no_wrap=True)


def _block(busy: float | None) -> str:
    """Return the block of a share; what is neither idle nor busy throughout never looks so."""
    if busy is None:
        return " "
    if busy in (0, 1):
        return _BLOCKS[-1 if busy else 0]
    return _BLOCKS[min(max(round(busy * 8), 1), 7)]


def _print_causes(console: Console, data: Mapping[str, Any]) -> None:
    if not data["gaps"]:
        every = data["all_gaps"]
        words = f"Idle time by cause: none of {counted(every, 'gap')}" if every else "No gaps"
        console.print(Text(f"\n{words}", style="bold" if every else ""))
        print_pairs(console, _conditions(data))
        return
    title = f"\nIdle time by cause: {counted(data['gaps'], 'gap')}, {duration(data['gap_time_us'])}"
    table = plain_table(title, "cause", "gaps", "time", "share", "median", "longest")
    for row in data["causes"]:
        cause = Text(f"{row['cause'] or UNKNOWN:<9}")
        cause.append(CAUSES[row["cause"]], style="dim")
        table.add_row(
            cause,
            f"{row['count']:,}",
            duration(row["time_us"]),
            share(row["share"]),
            duration(row["median_us"]),
            duration(row["longest_us"]),
        )
    console.print(table)
    print_pairs(console, _totals(data))


def _conditions(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if data["min_us"]:
        yield "gaps", f"of at least {duration(data['min_us'])}"
    if data["where"] is not None:
        yield "where", condition_sentence(data["where"], "gap")


def _totals(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _conditions(data)
    unit = unit_name(data["coverage"]["forward_is"])
    places = ", ".join(_places(data, unit)) if unit != "trace" else ""
    if places:
        yield f"{unit}s", places
    activity = data["host_activity"]
    late = activity["gap_time_us"]
    spent = _spent(activity, late)
    if spent:
        causes = _listed([row["cause"] for row in data["causes"] if row["cause"] in LATE])
        yield "CPU", f"in the {duration(late)} of {causes}, the launching threads were {spent}"


def _places(data: Mapping[str, Any], unit: str) -> Iterator[str]:
    """Yield how much of the time of the gaps lies where; nothing where all of it is in forwards."""
    times = {
        f"between {unit}s": sum(row["between_forwards_us"] for row in data["causes"]),
        f"outside of any {unit}'s work": sum(row["outside_forwards_us"] for row in data["causes"]),
    }
    total, apart = data["gap_time_us"], sum(times.values())
    for place, time in times.items():
        if time:
            yield f"{share(time / total)} of it lies {place}"
    if apart and round(total - apart, 3) > 0:
        yield "the rest inside one"


def _listed(causes: Sequence[str]) -> str:
    *first, last = causes
    return f"causes {', '.join(first)} and {last}" if first else f"cause {last}"


def _spent(activity: Mapping[str, Any], total: float) -> str:
    """Word what threads did in a time; empty where nothing is known.

    Args:
        activity: the times by the names of the columns, ``calls`` and ``ops``, among others.
        total: the time they are shares of.
    """
    words = {
        "in_api": f"in API calls{_names(activity['calls'], total)}",
        "in_ops": f"in ops{_names(activity['ops'], total)}",
        "outside_ops": "outside ops (Python, or idle)",
    }
    known = {name: time for name in words if (time := activity[f"{name}_us"])}
    rows = sorted(known.items(), key=lambda item: -item[1])
    shown = [(name, time) for name, time in rows if time >= _LITTLE * total] or rows[:1]
    parts = [f"{share(time / total)} {words[name]}" for name, time in shown]
    rest = round(total - sum(known.values()), 3)
    if parts and rest > 0:
        parts.append(f"{share(rest / total)} unknown")
    return ", ".join(parts)


def _names(most: list[dict[str, Any]] | None, total: float) -> str:
    """Name what had the most of a time and what else had much of it, with shares if several had.

    Nothing is named where it is not known.
    """
    if not most:
        return ""
    if len(most) == 1:
        return f" ({printable(most[0]['name'])})"
    first = [row for row in most[:1] if row["time_us"] >= _LITTLE * total]
    much = [row for row in most if row["time_us"] >= _MUCH * total] or first
    shares = [f"{share(row['time_us'] / total)} {printable(row['name'])}" for row in much]
    return f" ({', '.join(shares)})" if shares else ""


def _print_longest(console: Console, data: Mapping[str, Any]) -> None:
    longest = data["longest"]
    if not longest:
        return
    several = len(data["devices"]) > 1
    console.print(Text(f"\nLongest {counted(len(longest), 'gap')}", style="bold"))
    for number, gap in enumerate(longest, 1):
        where = f"{_device(gap['device'])}, " if several else ""
        part = share(gap["dur_us"] / data["gap_time_us"])
        console.print(
            Text(
                f"{number}. {duration(gap['dur_us'])} ({part})  {gap['cause'] or UNKNOWN}"
                f"  {where}at {duration(gap['start_us'])}{_unit(gap, data['coverage'])}"
            )
        )
        print_pairs(console, ((f" {label}", text) for label, text in _gap_lines(gap)))
    more = data["gaps"] - len(longest)
    if more > 0:
        rest = data["gap_time_us"] - sum(gap["dur_us"] for gap in longest)
        console.print(Text(f"and {more:,} more, {duration(max(rest, 0.0))}; --limit shows them"))


def _unit(gap: Mapping[str, Any], coverage: Mapping[str, Any]) -> str:
    if gap["step"] is not None and coverage["forward_is"] == "ProfilerStep":
        unit = f"step {gap['step']}"
    elif gap["forward"] is not None and coverage["forward_is"] != "trace":
        unit = f"forward {gap['forward']}"
    else:
        return ""
    return f", in {unit}" if gap["in_forward"] else f", before work of {unit}"


def _gap_lines(gap: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "after", _work(gap["previous_name"], gap["previous_op"])
    yield "before", _work(gap["next_name"], gap["next_op"])
    if gap["cause"] in LATE:
        yield from _host_lines(gap)


def _host_lines(gap: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    spent = _spent(gap, gap["dur_us"])
    if spent:
        yield "CPU", spent
    if gap["op_chain"] is not None and gap["op_us"] >= _LITTLE * gap["dur_us"]:
        part = share(gap["op_us"] / gap["dur_us"])
        yield "op", f"{short_chain(gap['op_chain'])} ({part})"
    if gap["source"] is not None:
        yield "line", printable(gap["source"])


def _work(name: str | None, op: str | None) -> str:
    shown = printable(shorten(name or UNKNOWN))
    return shown if op is None else f"{shown}, of {printable(op)}"
