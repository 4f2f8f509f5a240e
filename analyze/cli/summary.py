"""``analyze summary``: what a trace holds, before any judgement."""

from pathlib import Path

import rich_click as click

from analyze.cli.traces import (
    command_names,
    complain,
    emit,
    find_traces,
    load,
    trace_arguments,
    worst_exit_code,
)
from analyze.errors import AnalyzeError


@click.command()
@trace_arguments
@click.pass_context
def summary(
    ctx: click.Context,
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
) -> None:
    """Print coverage, GPU busy and idle time, kernels, copies, launches, syncs and steps."""
    from analyze.report.summary import summarise  # noqa: PLC0415

    summaries, codes = [], [0]
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            trace = load(path, forward)
            summaries.append(summarise(trace))
            if trace.is_empty:
                codes.append(complain(trace.nothing_recorded()))
        except AnalyzeError as error:
            codes.append(complain(error))
    if summaries:
        emit(_render(summaries, output_format), output)
    ctx.exit(worst_exit_code(codes))


def _render(summaries: list[dict[str, object]], output_format: str) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json(summaries)
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.summary_text import render_summary  # noqa: PLC0415

    return "\n".join(render_summary(data, color=wants_color()) for data in summaries)
