"""What ``--help`` says beside the options: examples, exit codes, environment, other commands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click
from click.exceptions import NoSuchOption
from rich_click import RichHelpConfiguration

if TYPE_CHECKING:
    from rich.table import Table

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS, OUTPUT, READING = "Options", "Output", "Reading traces"
RULES, BASELINE = "Rules", "Baseline"
"""Panels of options; the first has what a command does not share with others."""

FIND, LOOK, COMPARE = "Find what is wrong", "Look from one side", "Compare"
SHARE, WRITE, SETUP = "Share", "Write rules", "Set up"
"""Panels of commands."""

HELP_CONFIG = RichHelpConfiguration(
    theme="default-slim",
    enable_theme_env_var=False,
    options_table_column_types=["opt_all_metavar", "help"],
    options_table_help_sections=["help", "deprecated", "envvar", "default"],
)
"""Options with their values in one column, so that 80 columns leave room for sentences."""

_USAGE = {
    2: "usage error, or nothing could be shown",
    3: "a trace is missing, unreadable or of another kind",
}

VIEW_CODES: Mapping[int, str] = {0: "shown", **_USAGE}
"""Exit codes of commands that show something of traces."""

RULE_CODES: Mapping[int, str] = {**VIEW_CODES, 4: "rules are invalid"}
"""Exit codes of commands that show something of traces and load rules."""

CHECK_CODES: Mapping[int, str] = {
    0: "nothing at or above --fail-on",
    1: "findings at or above it",
    2: "usage error, or nothing could be checked",
    3: _USAGE[3],
    4: "rules are invalid",
}
"""Exit codes of a check; of several traces the worst by 4 > 3 > 1 > 2 > 0."""

GATE_CODES: Mapping[int, str] = {
    0: "no condition of --fail-if holds",
    1: "one does",
    2: "usage error, nothing was recorded, or an amount in a condition is unknown",
    3: _USAGE[3],
    4: "rules are invalid",
}
"""Exit codes of a comparison with gates."""

FILE_CODES: Mapping[int, str] = {
    0: "written",
    2: "usage error, a trace holds nothing, or a file cannot be read or written",
    3: _USAGE[3],
    4: "rules are invalid",
}
"""Exit codes of commands that write a file and load rules."""

GUESS_CODES: Mapping[int, str] = {
    0: "compared or written",
    2: "usage error, nothing was guessed, or the trace can answer none of it",
    3: _USAGE[3],
    4: "the guess file is invalid",
}
"""Exit codes of guessing; a wrong guess is no failure."""

VALID_CODES: Mapping[int, str] = {0: "all is well", 2: "usage error", 4: "invalid, or a test fails"}
"""Exit codes of what checks rules."""

LOADED_CODES: Mapping[int, str] = {0: "printed", 2: "usage error", 4: "rules are invalid"}
"""Exit codes of what prints rules."""

PRINT_CODES: Mapping[int, str] = {0: "printed", 2: "usage error"}
"""Exit codes of commands that read no trace."""

COLOURS: Mapping[str, str] = {
    "NO_COLOR": "set: no colours",
    "FORCE_COLOR": "set: colours in files and pipes, too",
    "COLUMNS": "width of what a terminal shows; files and pipes get 100",
}
"""Variables that every command with text heeds."""

TRACE_ENVIRONMENT: Mapping[str, str] = {
    **COLOURS,
    "ANALYZE_CACHE": "auto, off or refresh, as --cache",
    "XDG_CACHE_HOME": "where the cache lies, ~/.cache by default",
    "POLARS_MAX_THREADS": "threads, 1 by default; more help with traces above 500 MB",
}
"""Variables that every command over traces heeds."""


@dataclass(frozen=True)
class Example:
    """A command as typed, and what it is for."""

    command: str
    purpose: str


@dataclass(frozen=True)
class Page:
    """What a command's help ends with.

    Attributes:
        examples: may name ``trace.json.gz``, ``before.json.gz`` and ``after.json.gz``, the folder
            ``captures``, ``good.yaml``, ``baseline.json``, ``report.json`` and ``softmax.yaml``;
            tests run them where these exist.
        exit_codes: with their meanings.
        environment: variables with their meanings.
        see_also: commands.
    """

    examples: tuple[Example, ...] = ()
    exit_codes: Mapping[int, str] | None = None
    environment: Mapping[str, str] | None = None
    see_also: tuple[str, ...] = ()


def in_panels(function: Function) -> Function:
    """Let a group show the panels of its commands in this order."""
    for name in reversed((FIND, LOOK, COMPARE, SHARE, WRITE, SETUP)):
        click.command_panel(name)(function)
    return function


class _WithPage(click.RichCommand):
    """A command, or a group of them, whose help has a page."""

    def __init__(self, *args: Any, page: Page = Page(), **kwargs: Any) -> None:
        """Create it; other arguments are click's."""
        super().__init__(*args, **kwargs)
        self.page = page

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page."""
        return _without_trailing_blanks(super().get_help(ctx))

    def format_help_text(  # type: ignore[override]
        self, _ctx: click.RichContext, formatter: click.RichHelpFormatter
    ) -> None:
        """Write what it does."""
        _write_paragraphs(self.help, formatter)

    def format_epilog(  # type: ignore[override]
        self, _ctx: click.RichContext, formatter: click.RichHelpFormatter
    ) -> None:
        """Write the page."""
        _write_page(self.page, formatter)


class Command(_WithPage):
    """A command whose help has a page, with its options in panels."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the command; the arguments are those of a command with a page."""
        super().__init__(*args, **kwargs)
        for name in (OPTIONS, OUTPUT, READING, BASELINE, RULES):
            self.add_panel(click.RichOptionPanel(name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; for an unknown option suggest those that have it as one of their words."""
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            word = error.option_name.lstrip("-")
            options = [name for parameter in self.get_params(ctx) for name in parameter.opts]
            meant = [name for name in options if word in name.lstrip("-").split("-")]
            if error.possibilities or not meant:
                raise
            # Given as possibilities, click would drop what is spelt too differently.
            words = " or ".join(f"'{name}'" for name in meant)
            message = f"{error.message} Did you mean {words}?"
            raise NoSuchOption(error.option_name, message, ctx=error.ctx) from None


class Group(_WithPage, click.RichGroup):  # type: ignore[misc]  # as rich_click's own groups
    """A group of commands whose help has a page."""


def _without_trailing_blanks(text: str) -> str:
    """Drop what rich fills lines up with; in a terminal it stands before a colour's end."""
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


def _write_paragraphs(text: str | None, formatter: click.RichHelpFormatter) -> None:
    """Write text, a blank line after each paragraph."""
    from rich.text import Text  # noqa: PLC0415

    for paragraph in cleandoc(text or "").split("\n\n"):
        formatter.write(Text(" ".join(paragraph.split())))
        formatter.write(Text(""))


def _write_page(page: Page, formatter: click.RichHelpFormatter) -> None:
    from rich.text import Text  # noqa: PLC0415

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


def _table(entries: Mapping[str, str]) -> "Table":
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, meaning in entries.items():
        table.add_row(Text(f"  {name}", style="bold"), Text(meaning))
    return table
