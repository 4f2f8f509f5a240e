"""``--from``: show findings again from stored results, without reading a trace."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from analyze.cli.completing import complete_files
from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.engine.result import TraceReport

from_option = click.option(
    "--from",
    "stored",
    multiple=True,
    metavar="RESULT",
    shell_complete=complete_files,
    help="Show the findings in this file, which --format json or jsonl wrote, in any format and"
    " without reading the trace; `-` is standard input. Repeatable.",
)

_SHOWING = ("stored", "output_format", "output", "also", "verbose")
_JUDGING = ("fail_on", "baseline", "tolerance", "config", "isolated")
_FITTING = frozenset((*_SHOWING, *_JUDGING))
"""Parameters that say how results are shown and judged; all others say how they are made."""


def refuse_misfits(ctx: click.Context, traces: Sequence[str], stored: Sequence[str]) -> None:
    """Check that there are traces or stored results, and no option that does not fit them.

    Raises:
        UsageError: there are both, or none, or ``--from`` beside an option for reading traces.
    """
    if not stored:
        if not traces:
            raise click.UsageError("Missing argument 'TRACE...'.", ctx)
        return
    if traces:
        raise click.UsageError("TRACE and --from exclude each other: run analyze twice", ctx)
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if source is ParameterSource.COMMANDLINE and parameter.name not in _FITTING:
            raise click.UsageError(
                f"{parameter.opts[0]} is about reading a trace; --from shows what was found before",
                ctx,
            )


def read_stored(
    paths: Sequence[str], codes: list[int], on_error: Callable[[str, AnalyzeError], int]
) -> "list[TraceReport]":
    """Return the results in all files.

    Args:
        paths: as given.
        codes: is given the exit code of each file that cannot be used.
        on_error: says that a file cannot be used, and returns the code.
    """
    from analyze.report.stored_result import read_results  # noqa: PLC0415

    reports: list[TraceReport] = []
    for path in paths:
        try:
            reports += read_results(path)
        except AnalyzeError as error:
            codes.append(on_error(path, error))
    return reports
