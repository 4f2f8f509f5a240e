"""What ``--help`` says beside the options: examples, exit codes, environment, other commands."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from click.exceptions import NoSuchOption

OPTIONS, OUTPUT, READING = "Options", "Output", "Reading traces"
RULES, BASELINE = "Rules", "Baseline"
"""Panels of options; the first has what a command does not share with others."""

FIND, LOOK, COMPARE = "Find what is wrong", "Look from one side", "Compare"
SHARE, WRITE, SETUP = "Share", "Write rules", "Set up"
"""Panels of commands."""

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


class Example(NamedTuple):
    """A command as typed, and what it is for."""

    command: str
    purpose: str


class Page(NamedTuple):
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


_NO_PAGE = Page()


class Option(click.Option):
    """An option in a panel that other commands have, too."""

    def __init__(self, *args: Any, panel: str, **kwargs: Any) -> None:
        """Create it; other arguments are click's."""
        super().__init__(*args, **kwargs)
        self.panel = panel


class _WithPage(click.Command):
    """A command, or a group of them, whose help has a page.

    Attributes:
        panel: in which its group shows it; None for that of all its commands.
        page: what its help ends with.
    """

    def __init__(
        self, *args: Any, panel: str | None = None, page: Page = _NO_PAGE, **kwargs: Any
    ) -> None:
        """Create it; other arguments are click's."""
        super().__init__(*args, **kwargs)
        self.panel = panel
        self.page = page

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page."""
        from analyze.cli.rich_help import drawn_help  # noqa: PLC0415

        ctx.color = True  # click leaves the colours alone: they are there only where wanted
        return drawn_help(self, self.page, ctx)


class Command(_WithPage):
    """A command whose help has a page."""

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


class Group(_WithPage, click.Group):
    """A group of commands whose help has a page."""
