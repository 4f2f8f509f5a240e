"""``analyze rules docs``: the reference of everything a rule may say."""

from pathlib import Path

import rich_click as click

from analyze.cli.traces import emit, output_option


@click.command()
@output_option
def docs(output: Path | None) -> None:
    """Print the reference of the rule language as Markdown: keys, tables, functions, operators."""
    from analyze.report.reference import reference_page  # noqa: PLC0415

    emit(reference_page(), output)
