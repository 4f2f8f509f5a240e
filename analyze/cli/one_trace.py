"""What the commands share that take one trace: finding it, and what the rules find in it."""

from typing import TYPE_CHECKING

import click

from analyze.cli.check import load_and_check
from analyze.cli.forward import chosen_forward
from analyze.cli.rule_options import RuleOptions
from analyze.cli.traces import STANDARD_INPUT, command_names, find_traces, worst_exit_code
from analyze.errors import NothingToCheckError

if TYPE_CHECKING:
    from pathlib import Path

    from analyze.engine.result import TraceReport
    from analyze.tables.build import Trace


def one_trace(ctx: click.Context, argument: str, output: "Path | None" = None) -> str:
    """Return the one trace that an argument names; end the command where there is none.

    Of a folder that lacks what its capture.json names nobody knows which trace was meant, even
    where a single one is left: the command ends, too.

    Args:
        ctx: of the command.
        argument: a file, a folder with one trace in it, or standard input.
        output: the file that will be written.

    Raises:
        UsageError: it names several traces.
    """
    codes: list[int] = []
    traces = list(find_traces([argument], command_names(ctx), codes, output))
    if len(traces) > 1:
        raise click.UsageError(f"{argument}: holds {len(traces)} traces; name one of them")
    if codes:
        ctx.exit(worst_exit_code(codes))
    return traces[0]


def one_file(ctx: click.Context, argument: str, output: "Path | None" = None) -> str:
    """Return the one trace, as :func:`one_trace` does, where it can be read twice.

    Raises:
        UsageError: it is standard input, or names several traces.
    """
    if argument == STANDARD_INPUT:
        raise click.UsageError("standard input cannot be read twice; save the trace to a file")
    return one_trace(ctx, argument, output)


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
    encloses = chosen_forward(forward, loaded.found)
    trace, report = load_and_check(path, encloses, rules, loaded.selection)
    if report.why_nothing is not None:
        raise NothingToCheckError(f"{report.trace}: {report.why_nothing}")
    return trace, report
