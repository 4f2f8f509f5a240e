"""``analyze kernels``: every kernel name, what it costs, how and by whom it was launched."""

from typing import TYPE_CHECKING, Any

import click

from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments
from analyze.cli.where_option import check_where, rows_where, where_option
from analyze.errors import NothingToCheckError

if TYPE_CHECKING:
    from analyze.tables.build import Trace

_TABLE = "kernels"
_SORTS = ("total", "count", "mean", "p95", "max", "occupancy", "tail", "name")


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(
            Example(
                "analyze kernels trace.json.gz --where \"family == 'gemm'\" --sort max",
                "the slowest matrix products",
            ),
            Example(
                "analyze kernels trace.json.gz --limit 3 --full-names",
                "the three costliest, as the profiler wrote them",
            ),
        ),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze ops",
            "analyze columns kernels",
        ),
    ),
)
@trace_arguments
@where_option(_TABLE)
@click.option(
    "--sort",
    type=click.Choice(_SORTS),
    metavar="ORDER",
    default="total",
    show_default=True,
    help=f"Order of the names: {', '.join(_SORTS)}. Costliest first, of occupancy the lowest, of"
    " tail the emptiest.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Names to show. Default: 10 as text, all as JSON.",
)
@click.option("--full-names", is_flag=True, help="Names as the profiler wrote them.")
@click.pass_context
def kernels(
    ctx: click.Context,
    /,
    where: str | None,
    sort: str,
    limit: int | None,
    full_names: bool,
    **_shared: Any,
) -> None:
    """Print each kernel name with its times, precision, launch, occupancy, ops and source lines.

    Share is of the GPU busy time of the whole trace: the union of all GPU work on each device. The
    durations of a name are summed, so that shares can add up to more than 100 % where kernels run
    at the same time. Launch, occupancy and waves shown are those of the commonest configuration of
    the name (the HTML report has means over all its launches, weighted by time); a wave is as many
    blocks as the whole device holds at a time.
    """
    check_where(where, _TABLE)
    show_each(
        ctx,
        lambda trace: _report(trace, where, sort),
        text=lambda report, *, color: _text(report, limit, full_names=full_names, color=color),
        json=lambda report: {**report, "names": report["names"][:limit]},
    )


def _report(trace: "Trace", where: str | None, sort: str) -> dict[str, Any]:
    """Return the report of one trace.

    Raises:
        NothingToCheckError: no kernel was recorded in it.
    """
    from analyze.report.kernels import kernels_report  # noqa: PLC0415
    from analyze.tables.catalogue import Need  # noqa: PLC0415

    if trace.table(_TABLE).is_empty():
        why = Need.GPU.words(truncated=trace.is_truncated)
        raise NothingToCheckError(f"{trace.name}: {why}")
    condition = None if where is None else rows_where(trace, _TABLE, where)
    return kernels_report(trace, condition, sort)


def _text(report: dict[str, Any], limit: int | None, *, full_names: bool, color: bool) -> str:
    from analyze.report.kernels_text import DEFAULT_LIMIT, render_kernels  # noqa: PLC0415

    shown = limit or DEFAULT_LIMIT
    return render_kernels(report, full_names=full_names, limit=shown, color=color)
