"""``analyze schema``: the JSON Schema of a result."""

from pathlib import Path

import click

from analyze.cli.help_page import PRINT_CODES, SETUP, Command, Example, Page
from analyze.cli.traces import emit, output_option


@click.command(
    cls=Command,
    panel=SETUP,
    page=Page(
        examples=(
            Example("analyze schema -o report.schema.json", "for programs that read reports"),
        ),
        exit_codes=PRINT_CODES,
        see_also=(
            "analyze check --format json",
            "analyze rules schema",
        ),
    ),
)
@output_option
def schema(output: Path | None) -> None:
    """Print the JSON Schema of what --format json prints: every key, its type, unit and meaning.

    With --format jsonl each line is one result. `analyze rules schema` prints the schema of a rule
    file, `capture schema` that of capture.json.
    """
    from analyze.report.result_schema import schema_text  # noqa: PLC0415

    emit(schema_text(), output)
