"""``analyze memory``: peak memory, what was live at it, and which ops allocate."""

from typing import TYPE_CHECKING, Any

import click

from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments
from analyze.errors import NothingToCheckError

if TYPE_CHECKING:
    from analyze.tables.build import Trace

_SHOWN = 5


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(Example("analyze memory memory.json.gz", "peak memory and who allocates"),),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze explain MEM101",
            "analyze columns memory",
        ),
    ),
)
@trace_arguments
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Rows of each table. Default: {_SHOWN} as text; JSON always has all.",
)
@click.pass_context
def memory(
    ctx: click.Context,
    /,
    limit: int | None,
    **_shared: Any,
) -> None:
    """Print peak memory and what was live then, the ops that allocate most, and allocator churn.

    The trace must hold memory events: record it with profile_memory=True. Sizes are those of the
    allocator's blocks. An allocation belongs to the ops around it on its thread.
    """
    show_each(ctx, _report, lambda report, *, color: _text(report, limit or _SHOWN, color=color))


def _report(trace: "Trace") -> dict[str, Any]:
    """Return the report of one trace.

    Raises:
        NothingToCheckError: no memory events were recorded in it.
    """
    from analyze.report.memory import describe_memory  # noqa: PLC0415
    from analyze.tables.catalogue import Need  # noqa: PLC0415

    if trace.memory.is_empty():
        raise NothingToCheckError(f"{trace.name}: {Need.MEMORY.value}")
    return describe_memory(trace)


def _text(report: dict[str, Any], limit: int, *, color: bool) -> str:
    from analyze.report.memory_text import render_memory  # noqa: PLC0415

    return render_memory(report, limit=limit, color=color)
