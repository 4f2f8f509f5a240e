"""``analyze rules docs``: the reference of everything a rule may say."""

from pathlib import Path

import click

from analyze.cli.help_page import PRINT_CODES, Command, Example, Page
from analyze.cli.traces import emit, output_option


@click.command(
    cls=Command,
    page=Page(
        examples=(
            Example(
                "analyze rules docs -o REFERENCE.md", "every key, table, function and operator"
            ),
        ),
        exit_codes=PRINT_CODES,
        see_also=("analyze columns",),
    ),
)
@output_option
def docs(output: Path | None) -> None:
    """Print the reference of the rule language as Markdown: keys, tables, functions, operators."""
    from analyze.report.reference import reference_page  # noqa: PLC0415

    emit(reference_page(), output)
