"""The consoles that text reports are printed on: no markup, no guessing, no surprises."""

import os
import sys
from collections.abc import Iterable
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from analyze.words import inert_to_ci

DEFAULT_WIDTH = 100
"""Width of text that goes to a file or a pipe, where no terminal says its own."""

_NOT_FORCED = ("0", "false")


def buffer_console(*, width: int | None = None, color: bool = False) -> Console:
    """Return a console that renders into memory; read it with ``console.file.getvalue()``.

    Data is never interpreted: markup, emoji codes and highlighting are off.
    """
    return Console(
        file=StringIO(),
        width=width or terminal_width(),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


class _Titled(Table):
    """A table whose title is not folded to the width of its columns."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        title, self.title = self.title, None
        if title is not None:
            yield title
        yield from super().__rich_console__(console, options)
        self.title = title


def plain_table(title: str, *columns: str) -> Table:
    """Return an empty table: the first column to the left, numbers to the right."""
    table = _Titled(title=Text(title, style="bold"), box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if number == 0 else "right", overflow="fold")
    return table


def print_pairs(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Print labelled sentences, the labels in a column of their own."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, sentence in pairs:
        grid.add_row(Text(f"  {label}"), Text(sentence))
    console.print(grid)


def rendered(console: Console) -> str:
    """Return what was printed on a :func:`buffer_console`, without trailing blanks.

    A CI runner that has it in its log sees no command in it.
    """
    assert isinstance(console.file, StringIO)  # noqa: S101 - made by buffer_console
    lines = console.file.getvalue().splitlines()
    return inert_to_ci("".join(f"{line.rstrip()}\n" for line in lines))


def terminal_width() -> int:
    """Return the width of the terminal on standard output, or :data:`DEFAULT_WIDTH`."""
    return Console().width if sys.stdout is not None and sys.stdout.isatty() else DEFAULT_WIDTH


def wants_color() -> bool:
    """Whether to colour standard output.

    A terminal does. ``NO_COLOR`` (no-color.org), then ``FORCE_COLOR`` decide first: where they are
    set and not empty, the one is never, the other always, but for ``0`` and ``false`` (as in Node).
    """
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced.lower() not in _NOT_FORCED
    return sys.stdout is not None and Console().color_system is not None
