"""``analyze regions``: what each ``record_function`` annotation cost, and what it launched."""

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
from analyze.cli.where_option import check_where, rows_where, where_option
from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.report.ops import Condition
    from analyze.tables.build import Trace

TEXT_LIMIT = 20
"""Names that the text shows when no ``--limit`` is given; JSON has them all then."""


@click.command()
@trace_arguments
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Names to print, the most GPU time first. Default: {TEXT_LIMIT} as text, all as JSON.",
)
@click.option(
    "--each", is_flag=True, help="One line for every annotation, in their order, not for each name."
)
@where_option("regions")
@click.pass_context
def regions(
    ctx: click.Context,
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
    limit: int | None,
    each: bool,
    where: str | None,
) -> None:
    """Print CPU time and GPU time of each record_function, and why the two differ.

    record_function does not synchronise: on entry and exit it notes the time, nothing else. Its CPU
    time is how long the host took to issue the work; the work itself may run much later. So GPU
    time is here that of the work launched inside, wherever it ran: busy is the union, sum adds up
    what overlaps. Work of a backward pass, which autograd launches from threads of its own, stands
    apart. The last lines of the report show it on the trace at hand: how much work outlasted its
    region, and what attribution by time would get wrong.
    """
    from analyze.report.regions import report_regions  # noqa: PLC0415

    check_where(where, "regions")
    shown = limit or (TEXT_LIMIT if output_format == "text" else None)
    results: list[dict[str, Any]] = []
    codes = [0]
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            trace = load_recorded(path, forward)
            chosen = None if where is None else _condition(trace, where)
            results.append(report_regions(trace, where=chosen, limit=shown, each=each))
        except AnalyzeError as error:
            codes.append(complain(error))
    if results:
        emit(_render(results, output_format), output)
    ctx.exit(worst_exit_code(codes))


def _condition(trace: "Trace", where: str) -> "Condition":
    from analyze.report.ops import Condition  # noqa: PLC0415

    found = rows_where(trace, "regions", where)
    return Condition(where, found.kept, found.undecided)


def _render(results: list[dict[str, Any]], output_format: str) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json(results)
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.regions_text import render_regions  # noqa: PLC0415

    return "\n".join(render_regions(data, color=wants_color()) for data in results)
