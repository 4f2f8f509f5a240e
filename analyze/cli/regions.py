"""``analyze regions``: what each ``record_function`` annotation cost, and what it launched."""

from typing import TYPE_CHECKING, Any

import click

from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments
from analyze.cli.where_option import check_where, rows_where, where_option

if TYPE_CHECKING:
    from analyze.tables.build import Trace

TEXT_LIMIT = 20
"""Names that the text shows when no ``--limit`` is given; JSON has them all then."""


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(
            Example("analyze regions trace.json.gz", "each record_function by name"),
            Example(
                "analyze regions trace.json.gz --each --limit 10", "every single one, in order"
            ),
        ),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze ops",
            "analyze gaps",
        ),
    ),
)
@trace_arguments
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Names to print, the most GPU time first. Default: {TEXT_LIMIT} as text, all as JSON.",
)
@click.option(
    "--each", is_flag=True, help="One line for every annotation, in their order, not for each name."
)
@where_option("regions")
@click.pass_context
def regions(
    ctx: click.Context,
    /,
    limit: int | None,
    each: bool,
    where: str | None,
    **shared: Any,
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
    shown = limit or (TEXT_LIMIT if shared["output_format"] == "text" else None)

    def describe(trace: "Trace") -> dict[str, Any]:
        chosen = None if where is None else rows_where(trace, "regions", where)
        return report_regions(trace, where=chosen, limit=shown, each=each)

    show_each(ctx, describe, _text)


def _text(data: dict[str, Any], *, color: bool) -> str:
    from analyze.report.regions_text import render_regions  # noqa: PLC0415

    return render_regions(data, color=color)
