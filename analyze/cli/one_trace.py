"""What the commands share that read one trace twice: its tables and findings, then its text."""

from typing import TYPE_CHECKING

import rich_click as click

from analyze.cli.check import load_and_check
from analyze.cli.rule_options import RuleOptions
from analyze.cli.traces import STANDARD_INPUT, find_traces
from analyze.errors import NothingToCheckError

if TYPE_CHECKING:
    from pathlib import Path

    from analyze.engine.result import TraceReport
    from analyze.tables.build import Trace


def one_trace(ctx: click.Context, argument: str, output: "Path | None" = None) -> str:
    """Return the one trace file that an argument names; end the command where there is none.

    Raises:
        UsageError: it is standard input, or names several traces.
    """
    if argument == STANDARD_INPUT:
        raise click.UsageError("standard input cannot be read twice; save the trace to a file")
    codes: list[int] = []
    traces = list(find_traces([argument], (), codes, output))
    if not traces:
        ctx.exit(codes[0])
    if len(traces) > 1:
        raise click.UsageError(several_traces(argument, len(traces)))
    return traces[0]


def several_traces(argument: str, count: int) -> str:
    """Say that an argument names more traces than the one that is asked for."""
    return f"{argument}: holds {count} traces; name one of them"


def check_one(
    path: str, forward: str | None, options: RuleOptions, output: "Path | None" = None
) -> "tuple[Trace, TraceReport]":
    """Read a trace and run the rules that the options choose.

    Args:
        path: of the trace.
        forward: as ``--forward``.
        options: the options.
        output: the file that will be written.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        RuleError: a rule is invalid.
        NothingToCheckError: nothing was recorded in it, or no rule could come to a verdict.
    """
    loaded = options.load(output)
    rules = loaded.selection.apply(loaded.rules)
    forward = loaded.found.config.forward if forward is None else forward
    trace, report = load_and_check(path, forward, rules, loaded.selection)
    if report.why_nothing is not None:
        raise NothingToCheckError(f"{report.trace}: {report.why_nothing}")
    return trace, report
