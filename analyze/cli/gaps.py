"""``analyze gaps``: when the GPU was idle, and why."""

from typing import TYPE_CHECKING, Any

import click

from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments
from analyze.cli.where_option import check_where, rows_where, where_option
from analyze.errors import NothingToCheckError

if TYPE_CHECKING:
    from analyze.tables.build import Trace

_TABLE = "gaps"
_SHOWN = 5
_LONGEST_US = 1e15
"""About 32 years: any trace is shorter."""


def _check_length(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Return a length in microseconds; also of "nan" no comparison holds."""
    if not 0 <= value <= _LONGEST_US:
        raise click.BadParameter(
            f"{value:g} is not in the range 0<=x<={_LONGEST_US:g}", ctx=ctx, param=param
        )
    return value


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(
            Example(
                "analyze gaps trace.json.gz --limit 3", "why the GPU was idle, and its longest gaps"
            ),
            Example(
                "analyze gaps trace.json.gz --where \"cause == 'host' and dur_us > 100\"",
                "long waits for the host",
            ),
        ),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze explain IDLE101",
            "analyze columns gaps",
        ),
    ),
)
@trace_arguments
@where_option(_TABLE)
@click.option("--device", type=int, metavar="N", help="Only this device ordinal.")
@click.option(
    "--min-us",
    type=float,
    callback=_check_length,
    default=0.0,
    metavar="US",
    help="Leave shorter gaps out of the causes and the list; busy and idle time keep them.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"How many of the longest gaps to list. Default: {_SHOWN} as text, all as JSON.",
)
@click.pass_context
def gaps(
    ctx: click.Context,
    /,
    where: str | None,
    device: int | None,
    min_us: float,
    limit: int | None,
    **shared: Any,
) -> None:
    """Print when each GPU was busy and idle, why it was idle, and the longest gaps.

    A gap is a time in which a device had nothing to do, between its first and its last work. Its
    cause follows from when the work that ended it was launched, and from what the thread that
    launched it did in the meantime: host, launched too late; sync, launched after a wait; input,
    after the loading of data; profiler, after the profiler's overhead; launch, the launching call
    itself; stream, after the work of another stream; device, queued in time and not begun at
    once. It is unknown where no launch was recorded.
    """
    check_where(where, _TABLE)
    if limit is None and shared["output_format"] == "text":
        limit = _SHOWN
    show_each(ctx, lambda trace: _describe(trace, limit, min_us, device, where), _text)


def _describe(
    trace: "Trace", limit: int | None, min_us: float, device: int | None, where: str | None
) -> dict[str, Any]:
    from analyze.report.gaps import describe_gaps  # noqa: PLC0415
    from analyze.tables.catalogue import Need  # noqa: PLC0415

    gpu_ops = trace.table("gpu_ops")
    if gpu_ops.is_empty():
        why = Need.GPU.words(truncated=trace.is_truncated)
        raise NothingToCheckError(f"{trace.name}: {why}")
    devices = sorted(gpu_ops["device"].drop_nulls().unique())
    if device is not None and device not in devices:
        known = ", ".join(map(str, devices[:8])) or "none with a number"
        raise NothingToCheckError(
            f"{trace.name}: --device {device}: no GPU work on that device; there is work on {known}"
        )
    condition = None if where is None else rows_where(trace, _TABLE, where)
    return describe_gaps(trace, limit=limit, min_us=min_us, device=device, where=condition)


def _text(data: dict[str, Any], *, color: bool) -> str:
    from analyze.report.gaps_text import render_gaps  # noqa: PLC0415

    return render_gaps(data, color=color)
