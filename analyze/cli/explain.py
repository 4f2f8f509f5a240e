"""``analyze explain``: what a rule says, and why it fires on a trace or does not."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.completing import complete_files, complete_rule
from analyze.cli.forward import Forward, chosen_forward
from analyze.cli.help_page import FIND, RULE_CODES, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.one_trace import one_trace
from analyze.cli.rule_options import rules_option, set_option
from analyze.cli.rules.choosing import load_all
from analyze.cli.traces import (
    cache_option,
    format_option,
    forward_option,
    load_recorded,
)

if TYPE_CHECKING:
    from analyze.engine.explain import Explanation, Funnel
    from analyze.engine.rule import Rule


@click.command(
    cls=Command,
    panel=FIND,
    page=Page(
        examples=(
            Example("analyze explain COPY101", "what a rule expects, and why"),
            Example(
                "analyze explain COPY101 trace.json.gz", "why it fires on a trace, or does not"
            ),
        ),
        exit_codes=RULE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze rules show",
            "analyze rules list",
        ),
    ),
)
@click.argument("code", shell_complete=complete_rule)
@click.argument("trace", required=False, shell_complete=complete_files)
@rules_option
@forward_option
@cache_option
@set_option
@format_option("text", "json")
@click.pass_context
def explain(
    ctx: click.Context,
    code: str,
    trace: str | None,
    rule_paths: tuple[Path, ...],
    forward: str | None,
    settings: tuple[str, ...],
    output_format: str,
) -> None:
    """Explain the rule CODE, or the rule of that name: what it expects, measures and rests on.

    With TRACE it also shows the way of the rows through the rule - how many each condition leaves,
    what is measured, what comes of it - and so why the rule fires there, or why it does not.
    """
    from analyze.engine.explain import Explanation, document  # noqa: PLC0415
    from analyze.engine.selection import find_rule  # noqa: PLC0415

    loaded = load_all(rule_paths, settings, tests=True)
    rule = find_rule(code, loaded.rules)
    funnel = None
    if trace is not None:
        path = one_trace(ctx, trace)
        funnel = _funnel(rule, path, chosen_forward(forward, loaded.found))
    click.echo(_render(Explanation(document(rule), funnel), output_format), nl=False, color=True)


def _funnel(rule: "Rule", path: str, forward: Forward | None) -> "Funnel":
    """Read a trace and follow its rows through a rule.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        NothingToCheckError: nothing was recorded in it.
    """
    from analyze.engine.data import TraceTables  # noqa: PLC0415
    from analyze.engine.explain import explain as follow  # noqa: PLC0415

    trace = load_recorded(path, forward)
    return follow(rule, TraceTables(trace), trace.name)


def _render(explanation: "Explanation", output_format: str) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json([explanation.to_dict()])
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.explain_text import render_explanation  # noqa: PLC0415

    return render_explanation(explanation, color=wants_color())
