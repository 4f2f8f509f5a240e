"""``analyze columns``: the tables and columns that rules are written against."""

import click

from analyze.cli.completing import complete_tables
from analyze.cli.help_page import PRINT_CODES, WRITE, Command, Example, Page
from analyze.cli.traces import format_option


@click.command(
    cls=Command,
    panel=WRITE,
    page=Page(
        examples=(
            Example("analyze columns", "the tables"),
            Example("analyze columns kernels", "the columns of one of them"),
        ),
        exit_codes=PRINT_CODES,
        see_also=(
            "analyze rules new",
            "analyze rules docs",
        ),
    ),
)
@click.argument("table", required=False, shell_complete=complete_tables)
@format_option("text", "json")
def columns(table: str | None, output_format: str) -> None:
    """Print the documented tables, or the columns of TABLE."""
    from analyze.report.columns import columns_as_json, columns_as_text  # noqa: PLC0415
    from analyze.tables.catalogue import TABLES  # noqa: PLC0415

    if table is not None and table not in TABLES:
        raise click.UsageError(_no_such_table(table, list(TABLES)))
    tables = list(TABLES.values()) if table is None else [TABLES[table]]
    if output_format == "json":
        click.echo(columns_as_json(tables), nl=False)
    else:
        click.echo(columns_as_text(tables, details=table is not None), nl=False)


def _no_such_table(name: str, known: list[str]) -> str:
    from analyze.words import closest  # noqa: PLC0415

    close = closest(name, known)
    hint = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
    return f"no table {name!r}; {hint}"
