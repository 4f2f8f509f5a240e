"""Help pages as rich_click draws them; imported when one is shown, for a run needs none of it."""

from collections.abc import Mapping
from inspect import cleandoc

import click
from rich.table import Table
from rich.text import Text
from rich_click import (
    RichCommand,
    RichCommandPanel,
    RichContext,
    RichGroup,
    RichHelpConfiguration,
    RichHelpFormatter,
    RichOptionPanel,
)

from analyze.cli.help_page import (
    BASELINE,
    COMPARE,
    FIND,
    LOOK,
    OPTIONS,
    OUTPUT,
    READING,
    RULES,
    SETUP,
    SHARE,
    WRITE,
    Page,
)

_OPTION_PANELS = (OPTIONS, OUTPUT, READING, BASELINE, RULES)
_COMMAND_PANELS = (FIND, LOOK, COMPARE, SHARE, WRITE, SETUP)
"""In the order in which they are shown; those with nothing in them are not."""

_CONFIG = RichHelpConfiguration(
    theme="default-slim",
    enable_theme_env_var=False,
    options_table_column_types=["opt_all_metavar", "help"],
    options_table_help_sections=["help", "deprecated", "envvar", "default"],
)
"""Options with their values in one column, so that 80 columns leave room for sentences."""


def drawn_help(command: click.Command, page: Page, ctx: click.Context) -> str:
    """Return the help of a command, with colours where they are wanted."""
    twin = _rich_twin(command, ctx)
    rich_ctx = RichContext(
        twin,
        parent=ctx.parent,
        info_name=ctx.info_name,
        rich_help_config=_CONFIG,
        **command.context_settings,
    )
    formatter = rich_ctx.make_formatter()
    command.format_usage(rich_ctx, formatter)
    _write_paragraphs(command.help, formatter)
    twin.format_options(rich_ctx, formatter)
    _write_page(page, formatter)
    return _without_trailing_blanks(formatter.getvalue().rstrip("\n"))


def _rich_twin(command: click.Command, ctx: click.Context) -> RichCommand:
    """Return a command of rich_click with the same options and commands, in panels."""
    if not isinstance(command, click.Group):
        return RichCommand(
            name=command.name,
            params=command.params,
            panels=[RichOptionPanel(name) for name in _OPTION_PANELS],
        )
    every = {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}
    return RichGroup(
        name=command.name,
        params=command.params,
        commands={name: each for name, each in every.items() if each is not None},
        panels=[RichCommandPanel(name) for name in _COMMAND_PANELS],
    )


def _without_trailing_blanks(text: str) -> str:
    """Drop what rich fills lines up with; in a terminal it stands before a colour's end."""
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


def _write_paragraphs(text: str | None, formatter: RichHelpFormatter) -> None:
    """Write text, a blank line after each paragraph."""
    for paragraph in cleandoc(text or "").split("\n\n"):
        formatter.write(Text(" ".join(paragraph.split())))
        formatter.write(Text(""))


def _write_page(page: Page, formatter: RichHelpFormatter) -> None:
    if page.examples:
        formatter.write(Text("Examples:", style="bold"))
    for example in page.examples:
        formatter.write(Text(f"  # {example.purpose}", style="dim"))
        formatter.write(Text(f"  {example.command}"))
    lists = {
        "Exit codes": {str(code): words for code, words in (page.exit_codes or {}).items()},
        "Environment": page.environment or {},
    }
    for title, entries in lists.items():
        if entries:
            formatter.write(Text(f"\n{title}:", style="bold"))
            formatter.write(_table(entries))
    if page.see_also:
        formatter.write(Text("\nSee also:", style="bold"))
        formatter.write(Text("  " + ", ".join(page.see_also)))


def _table(entries: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, meaning in entries.items():
        table.add_row(Text(f"  {name}", style="bold"), Text(meaning))
    return table
