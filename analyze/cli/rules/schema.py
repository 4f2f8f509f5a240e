"""``analyze rules schema``: the JSON Schema of rule files, for editors."""

from pathlib import Path

import click

from analyze.cli.help_page import PRINT_CODES, Command, Example, Page
from analyze.cli.traces import emit, output_option


@click.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze rules schema -o rule.schema.json", "for an editor's completion"),
        ),
        exit_codes=PRINT_CODES,
        see_also=("analyze rules docs",),
    ),
)
@click.option("--pack", is_flag=True, help="The schema of pack.yaml instead of that of a rule.")
@output_option
def schema(pack: bool, output: Path | None) -> None:
    """Print the JSON Schema of a rule file: keys, columns and values for completion in editors.

    Editors with a YAML language server use it where a file starts with
    `# yaml-language-server: $schema=PATH`.
    """
    from analyze.engine.schema import pack_schema, rule_schema  # noqa: PLC0415
    from analyze.report.json_writer import to_json  # noqa: PLC0415

    emit(to_json([pack_schema() if pack else rule_schema()]), output)
