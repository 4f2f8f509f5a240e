"""The kernels of one trace as text: a line of times for each name, and below it the details."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyze.report.condition import condition_sentence
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.report.summary import DEFAULT_SHARED_MEMORY_LIMIT
from analyze.report.summary_text import print_opening
from analyze.tables.units import unit_name
from analyze.words import (
    UNKNOWN,
    counted,
    duration,
    percentage,
    printable,
    share,
    size,
    unitless,
)

DEFAULT_LIMIT = 10

_SHOWN_OWNERS = 2
_COLUMNS = ("share", "total", "count", "mean", "p50", "p95", "max")
_INDENT, _LABEL_WIDTH = 4, 9

Data = Mapping[str, Any]


def render_kernels(
    report: Data, *, full_names: bool = False, limit: int = DEFAULT_LIMIT, color: bool = False
) -> str:
    """Return the text of :func:`analyze.report.kernels.kernels_report`.

    Args:
        report: the data.
        full_names: names as the profiler wrote them instead of short ones.
        limit: names to show.
        color: whether to use colours.
    """
    console = buffer_console(color=color)
    print_opening(console, report)
    print_pairs(console, _totals(report))
    shown = report["names"][:limit]
    if shown:
        _print_names(console, report, shown, full_names=full_names)
    return rendered(console)


def _totals(report: Data) -> Iterator[tuple[str, str]]:
    busy, total = report["gpu_busy_us"], report["gpu_sum_us"]
    yield "", ""
    yield (
        "GPU time",
        UNKNOWN
        if busy is None
        else f"{duration(busy)} busy (union on each device); durations sum to {duration(total)}",
    )
    yield "kernels", f"{report['kernels']:,}, {duration(report['kernel_time_us'])} summed"
    if report["where"] is not None:
        yield "where", _selection(report)


def _selection(report: Data) -> str:
    sentence = condition_sentence(report["where"], "kernel")
    if not report["selected_kernels"]:
        return sentence
    return f"{sentence}; the kept ones take {duration(report['selected_time_us'])}, summed"


def _print_names(console: Console, report: Data, shown: list[Data], *, full_names: bool) -> None:
    names = report["selected_names"]
    console.print(Text(f"\n{_title(report, len(shown))}", style="bold"))
    meaning = (
        "share is of GPU busy time; launch, occupancy and waves: of the commonest configuration"
    )
    console.print(Text(meaning, "dim"))
    console.print(Text(in_columns(_COLUMNS), style="dim"))
    alike = Counter(row["short_name"] for row in report["names"])
    unit = unit_name(report["coverage"]["forward_is"])
    for row in shown:
        name = row["name"] if full_names else row["short_name"]
        namesakes = 1 if full_names else alike[row["short_name"]]
        console.print(Text(printable(name or UNKNOWN), style="bold"), overflow="fold")
        console.print(Text(in_columns(_times(row))))
        print_details(console, _details(row, namesakes, unit))
    if names > len(shown):
        rest = report["names"][len(shown) :]
        times = [row["total_us"] for row in rest if row["total_us"] is not None]
        time = duration(sum(times) if times else None)
        console.print(
            Text(f"and {counted(names - len(shown), 'more name')}, {time}; --limit shows more")
        )


def in_columns(cells: Sequence[str]) -> str:
    """Return the cells of a line of numbers, each below its heading."""
    return f"{cells[0]:>8}" + "".join(f"{cell:>10}" for cell in cells[1:])


def print_details(console: Console, details: Iterable[tuple[str, str]]) -> None:
    """Print labelled details of one entry of a list, indented below it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=_LABEL_WIDTH)
    grid.add_column(overflow="fold")
    for label, sentence in details:
        grid.add_row(Text(label), Text(sentence))
    console.print(Padding(grid, (0, 0, 0, _INDENT)))


_ORDERS = {
    "total": "by total time",
    "count": "by count",
    "mean": "by mean time",
    "p95": "by p95",
    "max": "by longest",
    "occupancy": "by occupancy, lowest first",
    "tail": "by tail, emptiest first",
    "name": "by name",
}


def _title(report: Data, shown: int) -> str:
    of_all = f"{shown:,} of " if shown < report["selected_names"] else ""
    names = counted(report["selected_names"], "kernel name")
    return f"{of_all}{names}, {_ORDERS[report['sort']]}"


def _times(row: Data) -> tuple[str, ...]:
    times = [duration(row[f"{key}_us"]) for key in ("mean", "p50", "p95", "max")]
    return (
        share(row["share_of_gpu_busy"]),
        duration(row["total_us"]),
        f"{row['count']:,}",
        *times,
    )


def _details(row: Data, namesakes: int, unit: str) -> Iterator[tuple[str, str]]:
    """Yield what is known of a kernel name.

    Args:
        row: the data.
        namesakes: how many of the names have this short name.
        unit: what a forward is in the trace.
    """
    yield "kind", _what(row, unit)
    if namesakes > 1:
        yield "name", f"{namesakes:,} names are shortened to this; --full-names tells them apart"
    if row["launch"] is None:
        yield "launch", "configuration not recorded"
    else:
        yield "launch", _launch(row)
        yield "occupancy", _occupancy(row["launch"])
        if row["launch"]["waves"] is not None:
            yield "waves", _waves(row["launch"])
    yield from _origin(row)
    yield from _owner_lines("at", row["sources"], row)


def _what(row: Data, unit: str) -> str:
    parts = [row["family"] or "family unknown"]
    if row["precision"] is not None or row["tensor_core"] is not None:
        cores = {True: "tensor cores", False: "no tensor cores", None: "tensor cores unknown"}
        parts += [row["precision"] or "precision unknown", cores[row["tensor_core"]]]
    if row["per_forward"] is not None:
        parts.append(f"{row['per_forward']:g} per {unit}")
    return ", ".join(parts)


def _launch(row: Data) -> str:
    launch = row["launch"]
    registers, shared_memory = launch["registers_per_thread"], launch["shared_memory_bytes"]
    parts = [_grid(launch), f"block {_dimensions(launch['block'])}"]
    parts += [f"{registers} registers"] if registers is not None else []
    parts += [f"{size(shared_memory)} shared"] if shared_memory is not None else []
    sentence = ", ".join(parts)
    others = launch["configurations"] - 1
    if others:
        rest = counted(others, "other configuration")
        sentence += f"; {launch['count']:,} of {launch['recorded']:,}, {rest}"
    unknown = row["count"] - launch["recorded"]
    return f"{sentence}; not recorded for {unknown:,} of {row['count']:,}" if unknown else sentence


def _grid(launch: Data) -> str:
    dimensions = _dimensions(launch["grid"])
    return f"grid {dimensions}{' threads' if launch['grid_in_threads'] else ''}"


def _dimensions(values: object) -> str:
    if not isinstance(values, list) or not values or None in values:
        return "unknown"
    return printable("x".join(str(value) for value in values))


def _occupancy(launch: Data) -> str:
    reported = _reported(launch)
    if launch["occupancy"] is None:
        return f"unknown ({reported})"
    limiter = launch["occupancy_limiter"].replace("_", " ").replace("|", " and ")
    return f"{percentage(launch['occupancy'])}, limited by {limiter} ({reported})"


def _waves(launch: Data) -> str:
    return f"{unitless(launch['waves'])}, {share(launch['tail'])} of the last empty"


def _reported(launch: Data) -> str:
    written = launch["occupancy_reported"]
    if written is None:
        return "not reported"
    is_large = (launch["shared_memory_bytes"] or 0) > DEFAULT_SHARED_MEMORY_LIMIT
    reason = ", as for any block over 48 KiB" if written == 0 and is_large else ""
    return f"reported {percentage(written)}{reason}"


def _origin(row: Data) -> Iterator[tuple[str, str]]:
    yield from _owner_lines("from", row["op_chains"], row)
    unknown = row["op_chains"]["unknown"]
    if unknown:
        unlinked = row["unlinked"]
        reason = f"; {unlinked:,} have no launch in the file" if unlinked else ""
        yield "from", f"no op known for {unknown:,} of {row['count']:,}{reason}"


def _owner_lines(label: str, owners: Data, row: Data) -> Iterator[tuple[str, str]]:
    """Yield the owners with the most time, then what is left; with the time if there are several.

    Args:
        label: of the lines.
        owners: the owners of a kernel name.
        row: what is known of that name.
    """
    top = owners["top"][:_SHOWN_OWNERS]
    several = owners["distinct"] > 1
    for owner in top:
        time = f"{duration(owner['total_us'])}, " if several else ""
        yield label, f"{printable(owner['value'])} ({time}{owner['count']:,})"
    more = owners["distinct"] - len(top)
    if more > 0:
        yield label, f"and {more:,} more ({_rest(owners, top, row)})"


def _rest(owners: Data, top: Sequence[Data], row: Data) -> str:
    """Word the kernels of the owners that are not shown; their time where all owners are known."""
    count = row["count"] - (owners["unknown"] or 0) - sum(owner["count"] for owner in top)
    times = [owner["total_us"] for owner in top]
    if owners["unknown"] or None in (row["total_us"], *times):
        return f"{count:,}"
    return f"{duration(max(row['total_us'] - sum(times), 0.0))}, {count:,}"
