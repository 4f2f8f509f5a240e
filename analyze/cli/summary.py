"""``analyze summary``: what a trace holds, before any judgement."""

from typing import Any

import click

from analyze.cli.help_page import LOOK, TRACE_ENVIRONMENT, VIEW_CODES, Command, Example, Page
from analyze.cli.traces import show_each, trace_arguments


@click.command(
    cls=Command,
    panel=LOOK,
    page=Page(
        examples=(
            Example("analyze summary trace.json.gz", "what one trace holds"),
            Example("analyze summary captures --format json", "the same of a folder, as JSON"),
        ),
        exit_codes=VIEW_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze check",
            "analyze kernels",
            "analyze gaps",
        ),
    ),
)
@trace_arguments
@click.pass_context
def summary(ctx: click.Context, /, **_shared: Any) -> None:
    """Print coverage, GPU busy and idle time, kernels, copies, launches, syncs and steps."""
    from analyze.report.summary import summarise  # noqa: PLC0415

    show_each(ctx, summarise, _text, empty_too=True)


def _text(data: dict[str, Any], *, color: bool) -> str:
    from analyze.report.summary_text import render_summary  # noqa: PLC0415

    return render_summary(data, color=color)
