"""``analyze annotate``: a copy of a trace in which a viewer shows the findings."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.completing import complete_files
from analyze.cli.help_page import FILE_CODES, SHARE, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.one_trace import check_one, one_file
from analyze.cli.rule_options import RuleOptions, rule_options
from analyze.cli.traces import cache_option, forward_option, reading, trace_output_option

if TYPE_CHECKING:
    from analyze.annotate.copying import Annotated
    from analyze.engine.result import TraceReport


@click.command(
    cls=Command,
    panel=SHARE,
    page=Page(
        examples=(
            Example(
                "analyze annotate trace.json.gz -o annotated.json.gz",
                "a copy that shows the findings in a viewer",
            ),
        ),
        exit_codes=FILE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze open",
            "analyze trim",
        ),
    ),
)
@click.argument("trace", shell_complete=complete_files)
@trace_output_option
@forward_option
@cache_option
@rule_options
@click.pass_context
def annotate(
    ctx: click.Context, trace: str, output: Path, forward: str | None, options: RuleOptions
) -> None:
    """Write a copy of TRACE in which a trace viewer shows the findings.

    They are a process of their own, `kinetolint findings`: a slice at every place of a finding,
    which says what was expected, observed and is to do, with an arrow to the kernel or op it is
    about. Every event of the trace stays as it is; annotations of an earlier run are replaced.
    """
    from analyze.annotate.copying import annotate as copy  # noqa: PLC0415

    path = one_file(ctx, trace, output)
    tables, report = check_one(path, forward, options, output)
    with reading(path) as progress:
        annotated = copy(path, output, tables, report, progress)
    # The trace itself may go to standard output.
    click.echo(_told(output, annotated, report), err=True, nl=False)


def _told(output: Path, annotated: "Annotated", report: "TraceReport") -> str:
    from analyze.annotate.text import render_annotated  # noqa: PLC0415

    return render_annotated(output, annotated, report)
