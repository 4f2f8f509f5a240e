"""``analyze compare``: several traces at a glance, one row a trace."""

from pathlib import Path
from typing import Any

import click

from analyze.cli.capture_folders import captures_without_trace
from analyze.cli.check import load_and_check
from analyze.cli.forward import chosen_forward
from analyze.cli.help_page import COMPARE, RULE_CODES, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.rule_options import RuleOptions, rule_options
from analyze.cli.traces import (
    cache_option,
    command_names,
    complain,
    emit,
    find_traces,
    format_option,
    forward_option,
    output_option,
    traces_argument,
    worst_exit_code,
)
from analyze.errors import AnalyzeError


@click.command(
    cls=Command,
    panel=COMPARE,
    page=Page(
        examples=(
            Example("analyze compare captures", "every variant that capture recorded"),
            Example(
                "analyze compare before.json.gz after.json.gz --baseline before",
                "times relative to one of them",
            ),
        ),
        exit_codes=RULE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze diff",
            "capture --help",
        ),
    ),
)
@traces_argument
@format_option("text", "markdown", "json")
@output_option
@forward_option
@cache_option
@click.option(
    "--baseline",
    metavar="NAME",
    help="The variant that times are relative to. Default: the fastest whose results are right;"
    " none where nothing in the traces tells that their work is the same.",
)
@rule_options
@click.pass_context
def compare(
    ctx: click.Context,
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
    baseline: str | None,
    options: RuleOptions,
) -> None:
    """Print traces, or what capture wrote into a folder, side by side.

    A row is a variant: GPU ops (kernels, copies and sets) and copies of a forward, its GPU busy and
    CPU time, latency and peak memory from capture.json, the precision path by time, the occupancy
    of the costliest kernel as reported and as it really is, and the top finding. Times are relative
    to the fastest: by GPU busy time where every trace has GPU work, else by latency or CPU time.
    """
    from analyze.report.compare import compare as compute  # noqa: PLC0415

    loaded = options.load(output)
    rules = loaded.selection.apply(loaded.rules)
    encloses = chosen_forward(forward, loaded.found)
    sides, codes = [], [0]
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            sides.append(load_and_check(path, encloses, rules, loaded.selection))
        except AnalyzeError as error:
            codes.append(complain(error))
    if sides:
        data = compute(sides, captures_without_trace(traces), baseline)
        emit(_render(data, output_format, to_file=output is not None), output)
    ctx.exit(worst_exit_code(codes))


def _render(data: dict[str, Any], output_format: str, *, to_file: bool) -> str:
    match output_format:
        case "json":
            from analyze.report.json_writer import to_json  # noqa: PLC0415

            return to_json([data])
        case "markdown":
            from analyze.report.compare_markdown import compare_markdown  # noqa: PLC0415

            return compare_markdown(data)
        case _:
            from analyze.report.compare_text import render_compare  # noqa: PLC0415
            from analyze.report.console import wants_color  # noqa: PLC0415

            return render_compare(data, color=not to_file and wants_color())
