"""``analyze ops``: torch's ``key_averages()`` table, without torch."""

from typing import TYPE_CHECKING, Any

import click

from analyze.cli.completing import complete_words
from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments
from analyze.cli.where_option import check_where, rows_where, where_option

if TYPE_CHECKING:
    from analyze.tables.build import Trace

TEXT_LIMIT = 25
"""Groups that the text shows when no ``--limit`` is given; JSON has them all then."""


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(
            Example(
                "analyze ops trace.json.gz --where 'not is_null(by_hand)'",
                "attention that is written out as ops",
            ),
            Example(
                "analyze ops trace.json.gz --where \"region == 'attn_fwd'\" --group-by shapes",
                "what lies in an annotation, by shapes",
            ),
        ),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze regions",
            "analyze kernels",
            "analyze columns ops",
        ),
    ),
)
@trace_arguments
@click.option(
    "--group-by",
    metavar="KEYS",
    shell_complete=complete_words("analyze.report.ops:KEYS", with_commas=True),
    default="name",
    show_default=True,
    help="One or several, with commas: name, shapes (of the inputs), stack (the user's own source"
    " line), module (innermost nn.Module), phase (forward, backward, optimizer, other), region"
    " (innermost record_function).",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    shell_complete=complete_words("analyze.report.ops:COLUMNS"),
    help="Sort by this column of the JSON, largest first; torch's names, such as"
    " self_cuda_time_total, do as well. Default: self_device_us, without GPU work self_cpu_us.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Groups to print. Default: {TEXT_LIMIT} as text, all as JSON.",
)
@click.option("--step", type=int, metavar="N", help="Count only what lies in ProfilerStep#N.")
@where_option("ops")
@click.pass_context
def ops(
    ctx: click.Context,
    /,
    group_by: str,
    sort: str | None,
    limit: int | None,
    step: int | None,
    where: str | None,
    **shared: Any,
) -> None:
    """Print CPU and GPU time per op, as torch's key_averages() does, from the file alone.

    Self time is without what lies inside: other ops, annotations, and runtime calls, which are rows
    of their own, as in torch. GPU time is the sum of the work that was launched inside; work
    belongs to what launched it, never to what ran at the same time. ProfilerSteps count together as
    ProfilerStep*. With --where, only ops are counted; every step of attention, whether fused or
    written out, is `'attention' in op_chain or not is_null(by_hand)`.
    """
    from analyze.report.ops import Query, average_ops, check_keys, check_sort  # noqa: PLC0415

    keys, column = check_keys(group_by), check_sort(sort)
    check_where(where, "ops")
    shown = limit or (TEXT_LIMIT if shared["output_format"] == "text" else None)

    def describe(trace: "Trace") -> dict[str, Any]:
        chosen = None if where is None else rows_where(trace, "ops", where)
        return average_ops(trace, Query(keys, column, shown, step, chosen))

    show_each(ctx, describe, _text)


def _text(data: dict[str, Any], *, color: bool) -> str:
    from analyze.report.ops_text import render_ops  # noqa: PLC0415

    return render_ops(data, color=color)
