"""``analyze memory``: peak memory, what was live at it, and which ops allocate."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from analyze.cli.traces import (
    command_names,
    complain,
    emit,
    find_traces,
    load_recorded,
    trace_arguments,
    worst_exit_code,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from analyze.tables.build import Trace

_SHOWN = 5


@click.command()
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
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
    limit: int | None,
) -> None:
    """Print peak memory and what was live then, the ops that allocate most, and allocator churn.

    The trace must hold memory events: record it with profile_memory=True. Sizes are those of the
    allocator's blocks. An allocation belongs to the ops around it on its thread.
    """
    reports, codes = [], [0]
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            reports.append(_report(load_recorded(path, forward)))
        except AnalyzeError as error:
            codes.append(complain(error))
    if reports:
        emit(_render(reports, output_format, limit or _SHOWN), output)
    ctx.exit(worst_exit_code(codes))


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


def _render(reports: list[dict[str, Any]], output_format: str, limit: int) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json(reports)
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.memory_text import render_memory  # noqa: PLC0415

    return "\n".join(render_memory(report, limit=limit, color=wants_color()) for report in reports)
