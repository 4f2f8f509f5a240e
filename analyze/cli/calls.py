"""``analyze calls``: every attention call, what computed it, and why not flash attention."""

from typing import TYPE_CHECKING, Any

import click

from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments
from analyze.errors import NothingToCheckError

if TYPE_CHECKING:
    from analyze.tables.build import Trace


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(
            Example("analyze calls trace.json.gz", "what every attention call ran"),
            Example("analyze calls captures --format json", "the same of a folder, as JSON"),
        ),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze ops",
            "analyze explain ATTN101",
        ),
    ),
)
@trace_arguments
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Kinds of call to show. Default: 10 as text, all as JSON.",
)
@click.pass_context
def calls(
    ctx: click.Context,
    /,
    limit: int | None,
    **_shared: Any,
) -> None:
    """Print the attention calls: what ran, shapes, times, TFLOP/s, and what kept off flash.

    Calls that are alike in op, backend, shapes, dtype, mask and annotation are one kind. Attention
    written out as ops (batched product, softmax, batched product) is listed too. TFLOP/s count both
    matrix products of the forward, half of them under a causal mask, over the GPU busy time of the
    call; the peak is the dense one that the vendor publishes for the inputs' dtype. That a trace
    holds no attention is a result; where no ops were recorded, it is not known.
    """
    show_each(
        ctx,
        _report,
        text=lambda report, *, color: _text(report, limit, color=color),
        json=lambda report: {**report, "groups": report["groups"][:limit]},
    )


def _report(trace: "Trace") -> dict[str, Any]:
    """Return the report of one trace.

    Raises:
        NothingToCheckError: there is no attention kernel in it, and no op was recorded.
    """
    from analyze.report.calls import calls_report  # noqa: PLC0415
    from analyze.tables.catalogue import Need  # noqa: PLC0415

    report = calls_report(trace)
    if trace.facts.ops.is_empty() and not report["kernels_outside_calls"]:
        raise NothingToCheckError(
            f"{trace.name}: no attention kernel was found, and {Need.OPS.value}"
        )
    return report


def _text(report: dict[str, Any], limit: int | None, *, color: bool) -> str:
    from analyze.report.calls_text import DEFAULT_LIMIT, render_calls  # noqa: PLC0415

    return render_calls(report, limit=limit or DEFAULT_LIMIT, color=color)
