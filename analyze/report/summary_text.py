"""The summary as text."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.kernels.namesakes import told_apart
from analyze.report.console import buffer_console, plain_table, print_pairs, rendered
from analyze.report.coverage_text import coverage_lines
from analyze.report.summary import sum_of_known
from analyze.words import amount, counted, duration, percentage, printable, share, size

_TOP_FAMILIES = 6
_MOST_STEPS = 12


def render_summary(summary: Mapping[str, Any], *, color: bool = False) -> str:
    """Return the text of a summary made by :func:`analyze.report.summary.summarise`."""
    console = buffer_console(color=color)
    print_opening(console, summary)
    if summary["coverage"]["gpu_ops"]:
        _print_devices(console, summary)
        _print_copies(console, summary)
        _print_kernels(console, summary)
    print_pairs(console, _host_lines(summary))
    _print_steps(console, summary)
    return rendered(console)


def print_opening(console: Console, data: Mapping[str, Any]) -> None:
    """Print what every view of a trace begins with: its name, and what was recorded."""
    console.print(Text(printable(data["trace"]), style="bold"), soft_wrap=True)
    print_pairs(console, coverage_lines(data["coverage"], data["quality"]))


def _print_devices(console: Console, summary: Mapping[str, Any]) -> None:
    table = plain_table("\nGPU time", "device", "busy", "idle", "first to last", "busy share")
    for device, busy in summary["gpu_busy_us"].items():
        span = summary["gpu_span_us"][device]
        busy_share = share(busy / span) if span else "unknown"
        table.add_row(
            Text(f"GPU {printable(device)}"),
            duration(busy),
            duration(span - busy),
            duration(span),
            busy_share,
        )
    console.print(table)


def _print_copies(console: Console, summary: Mapping[str, Any]) -> None:
    if not summary["memcpy"]:
        return
    table = plain_table("\nCopies", "memcpy", "count", "bytes", "time")
    for name, copy in summary["memcpy"].items():
        table.add_row(
            Text(printable(name)),
            f"{copy['count']:,}",
            size(copy["bytes"]),
            duration(copy["time_us"]),
        )
    console.print(table)


def _print_kernels(console: Console, summary: Mapping[str, Any]) -> None:
    total = summary["kernel_time_us"]
    names = counted(summary["distinct_kernels"], "name")
    shown = counted(len(summary["top5_kernels"]), "kernel")
    title = f"\nTop {shown} of {names}, {duration(total)} in all"
    table = plain_table(title, "kernel", "count", "time", "share of kernel time")
    top = [{**kernel, "name": kernel["name"] or "unknown"} for kernel in summary["top5_kernels"]]
    names_shown = told_apart(dict.fromkeys(kernel["name"] for kernel in top))
    for kernel in top:
        table.add_row(
            Text(printable(names_shown[kernel["name"]])),
            f"{kernel['count']:,}",
            duration(kernel["time_us"]),
            _share(kernel["time_us"], total),
        )
    console.print(table)
    _print_families(console, summary["families"])
    _print_split(
        console,
        "\nPrecision of matrix products, convolutions and attention",
        [{**row, "path": _path(row)} for row in summary["precision"]],
        total,
        ("path", "count", "time", "share of kernel time"),
    )


def _print_families(console: Console, families: list[dict[str, Any]]) -> None:
    """Print the first families; shares are of the times of all, copies and sets among them."""
    total = sum_of_known([row["time_us"] for row in families])
    columns = ("family", "count", "time", "share")
    _print_split(console, "\nGPU time by family", families[:_TOP_FAMILIES], total, columns)


def _share(part: float | None, whole: float | None) -> str:
    return share(part / whole if part is not None and whole else None)


def _path(row: Mapping[str, Any]) -> str:
    cores = {True: "tensor cores", False: "no tensor cores", None: "cores unknown"}
    return f"{row['precision']}, {cores[row['tensor_core']]}"


def _print_split(
    console: Console,
    title: str,
    rows: list[dict[str, Any]],
    total: float | None,
    columns: tuple[str, ...],
) -> None:
    """Print rows with their shares of a total; the first column is also the key of their names."""
    if not rows:
        return
    table = plain_table(title, *columns)
    for row in rows:
        part = _share(row["time_us"], total)
        table.add_row(Text(row[columns[0]]), f"{row['count']:,}", duration(row["time_us"]), part)
    console.print(table)


def _host_lines(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "", ""
    yield "CPU ops", _cpu_ops(summary)
    launches = ", ".join(f"{printable(n)} x {c:,}" for n, c in summary["launches"].items())
    yield "launches", launches or "none"
    syncs = ", ".join(
        f"{printable(n)} x {s['count']:,} ({duration(s['time_us'])})"
        for n, s in summary["sync_calls"].items()
    )
    yield "syncs", syncs or "none"
    occupancy = summary["occupancy"]
    if occupancy["n"]:
        yield "occupancy", _occupancy_sentence(occupancy)


def _cpu_ops(summary: Mapping[str, Any]) -> str:
    written, in_tables = summary["cpu_ops"], summary["cpu_ops_in_tables"]
    if written == in_tables:
        return f"{written:,}"
    return (
        f"{written:,} in the file; {in_tables:,} in tables, which as torch's leave out the"
        " profiler's own and merge an op with its only child of the same name"
    )


def _occupancy_range(occupancy: Mapping[str, Any]) -> str:
    lowest, highest = percentage(occupancy["min"]), percentage(occupancy["max"])
    if lowest == highest:
        return lowest
    return f"{lowest} to {highest}, median {percentage(occupancy['median'])}"


def _occupancy_sentence(occupancy: Mapping[str, Any]) -> str:
    sentence = f"reported {_occupancy_range(occupancy)}; {occupancy['zeros']:,} zeros"
    misreported = occupancy["zeros_with_shared_memory_over_49152"]
    if misreported:
        sentence += (
            f", {misreported:,} of them only because the block uses more than 48 KiB"
            " of shared memory"
        )
    return sentence


def _print_steps(console: Console, summary: Mapping[str, Any]) -> None:
    steps = summary["steps"]
    if not steps:
        return
    table = plain_table(
        f"\n{counted(len(steps), 'ProfilerStep')}",
        "step",
        "CPU",
        "GPU busy",
        "GPU ops",
        "kernels",
        "copies",
        "launches",
        "syncs",
    )
    several = len({step["pid"] for step in steps}) > 1
    for step in steps[:_MOST_STEPS]:
        label = f"#{step['index']}" + (" (first)" if step["first"] else "")
        label += f" of process {printable(step['pid'] or '?')}" if several else ""
        counts = (step[key] for key in ("gpu_ops", "kernels", "copies", "launches", "syncs"))
        table.add_row(
            Text(label),
            duration(step["cpu_us"]),
            duration(step["gpu_busy_us"]),
            *(amount(count) for count in counts),
        )
    console.print(table)
    if len(steps) > _MOST_STEPS:
        console.print(Text(f"and {len(steps) - _MOST_STEPS:,} more; --format json has them all"))
