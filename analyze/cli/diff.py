"""``analyze diff``: what changed from one trace to another."""

from pathlib import Path
from typing import Any

import click

from analyze.cli.check import load_and_check
from analyze.cli.completing import complete_files, complete_gate
from analyze.cli.forward import chosen_forward
from analyze.cli.help_page import COMPARE, GATE_CODES, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.one_trace import one_trace
from analyze.cli.rule_options import RuleOptions, rule_options
from analyze.cli.traces import (
    STANDARD_INPUT,
    cache_option,
    complain,
    emit,
    format_option,
    forward_option,
    output_option,
    refuse_overwriting,
    worst_exit_code,
)
from analyze.errors import AnalyzeError

_GATE_CODES = {"passed": 0, "failed": 1, "unanswered": 2}


@click.command(
    cls=Command,
    panel=COMPARE,
    page=Page(
        examples=(
            Example("analyze diff before.json.gz after.json.gz", "what a change did"),
            Example(
                "analyze diff before.json.gz after.json.gz --fail-if 'copies > before'",
                "a gate for CI",
            ),
        ),
        exit_codes=GATE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze compare",
            "analyze baseline",
        ),
    ),
)
@click.argument("before", shell_complete=complete_files)
@click.argument("after", shell_complete=complete_files)
@format_option("text", "markdown", "json", help_text="How to print.")
@output_option
@forward_option
@cache_option
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="EXPR",
    shell_complete=complete_gate,
    help="Exit with 1 when this holds, e.g. 'gpu_time > 1.05 * before' or 'copies > 0'; with 2 when"
    " an amount in it is unknown. Repeatable.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Rows of each list. Default: 8 as text or Markdown, all as JSON.",
)
@rule_options
@click.pass_context
def diff(
    ctx: click.Context,
    before: str,
    after: str,
    output_format: str,
    output: Path | None,
    forward: str | None,
    conditions: tuple[str, ...],
    limit: int | None,
    options: RuleOptions,
) -> None:
    """Print what appeared, disappeared, got slower or faster from BEFORE to AFTER.

    Amounts are medians of a forward, so that traces of different numbers of steps compare. A time
    is slower or faster only if it changed by more than two spreads of single forwards, and by 1 %.
    Kernels are aligned by name without tile sizes and template arguments, else by op and family;
    copies, synchronising calls and ops by their op chain; findings by fingerprint.

    A --fail-if condition is written in the language of rules. A name is AFTER's amount, before.NAME
    is BEFORE's, plain `before` is BEFORE's of the one amount in the condition: gpu_time, gpu_idle,
    gpu_span, cpu_time, latency (microseconds; ms(1) is 1000), gpu_ops, kernels, copies, launches,
    syncs, cpu_ops, peak_memory (bytes, as GiB(1)), findings.
    """
    from analyze.diff.gates import compile_gate  # noqa: PLC0415
    from analyze.report.diff import diff as compute  # noqa: PLC0415

    gates = [compile_gate(condition) for condition in conditions]
    _refuse_overwriting(output, before, after)
    loaded = options.load(output)
    rules = loaded.selection.apply(loaded.rules)
    encloses = chosen_forward(forward, loaded.found)
    sides, codes = [], [0]
    for path in [one_trace(ctx, argument, output) for argument in (before, after)]:
        try:
            sides.append(load_and_check(path, encloses, rules, loaded.selection))
        except AnalyzeError as error:
            codes.append(complain(error))
    if len(sides) == len((before, after)):
        data = compute(sides[0], sides[1], gates)
        emit(_render(data, output_format, limit, to_file=output is not None), output)
        is_said = output_format == "text" and output is None
        codes += _verdicts(data, is_said=is_said)
    ctx.exit(worst_exit_code(codes))


def _refuse_overwriting(output: Path | None, *traces: str) -> None:
    """Check that the output is none of the traces, and that only one is standard input.

    Raises:
        AnalyzeError: it is one.
        UsageError: both traces are standard input.
    """
    if traces.count(STANDARD_INPUT) > 1:
        raise click.UsageError("only one of the traces can be standard input")
    refuse_overwriting(traces, output)


def _verdicts(data: dict[str, Any], *, is_said: bool) -> list[int]:
    """Return the exit codes of the gates, after saying which were not passed, unless it is said."""
    from analyze.report.diff_words import gate_sentences  # noqa: PLC0415

    codes = [_GATE_CODES[gate["state"]] for gate in data["gates"]]
    for code, (state, sentence) in zip(codes, gate_sentences(data), strict=True):
        if code and not is_said:
            click.echo(f"analyze: --fail-if {state}: {sentence}", err=True)
    return codes


def _render(data: dict[str, Any], output_format: str, limit: int | None, *, to_file: bool) -> str:
    if output_format == "json":
        from analyze.report.diff import SECTIONS  # noqa: PLC0415
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json([{**data, **{name: data[name][:limit] for name in SECTIONS}}])
    from analyze.report.diff_text import DEFAULT_LIMIT, render_diff  # noqa: PLC0415

    shown = limit or DEFAULT_LIMIT
    if output_format == "markdown":
        from analyze.report.diff_markdown import diff_markdown  # noqa: PLC0415

        return diff_markdown(data, limit=shown)
    from analyze.report.console import wants_color  # noqa: PLC0415

    return render_diff(data, limit=shown, color=not to_file and wants_color())
