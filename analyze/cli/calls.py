"""``analyze calls``: every attention call, what computed it, and why not flash attention."""

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


@click.command()
@trace_arguments
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Kinds of call to show. Default: 10 as text, all as JSON.",
)
@click.pass_context
def calls(
    ctx: click.Context,
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
    limit: int | None,
) -> None:
    """Print the attention calls: what ran, shapes, times, TFLOP/s, and what kept off flash.

    Calls that are alike in op, backend, shapes, dtype, mask and annotation are one kind. Attention
    written out as ops (batched product, softmax, batched product) is listed too. TFLOP/s count both
    matrix products of the forward, half of them under a causal mask, over the GPU busy time of the
    call; the peak is the dense one that the vendor publishes for the inputs' dtype.
    """
    reports: list[dict[str, Any]] = []
    codes = [0]
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            reports.append(_report(load_recorded(path, forward)))
        except AnalyzeError as error:
            codes.append(complain(error))
    if reports:
        emit(_render(reports, output_format, limit), output)
    ctx.exit(worst_exit_code(codes))


def _report(trace: "Trace") -> dict[str, Any]:
    """Return the report of one trace.

    Raises:
        NothingToCheckError: there is no attention in it.
    """
    from analyze.report.calls import calls_report  # noqa: PLC0415

    report = calls_report(trace)
    if not report["groups"] and not report["kernels_outside_calls"]:
        raise NothingToCheckError(f"{trace.name}: {_why_nothing(trace)}")
    return report


def _why_nothing(trace: "Trace") -> str:
    from analyze.tables.catalogue import Need  # noqa: PLC0415

    if trace.facts.ops.is_empty():
        return f"no attention kernel was found, and {Need.OPS.value}"
    return (
        "no attention was found: no attention op, none written out as batched product, softmax and"
        " batched product, and no attention kernel"
    )


def _render(reports: list[dict[str, Any]], output_format: str, limit: int | None) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json([{**report, "groups": report["groups"][:limit]} for report in reports])
    from analyze.report.calls_text import DEFAULT_LIMIT, render_calls  # noqa: PLC0415
    from analyze.report.console import wants_color  # noqa: PLC0415

    color, shown = wants_color(), limit or DEFAULT_LIMIT
    return "\n".join(render_calls(report, limit=shown, color=color) for report in reports)
