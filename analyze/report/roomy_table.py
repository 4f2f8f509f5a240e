"""Tables of named rows, whose less important columns are left out where a line is short."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

NOTHING = "-"

_ROOMY = 96
"""Characters of a line from which there is room for all columns."""

_LONGEST_LABEL = 72

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of numbers.

    Attributes:
        heading: in two lines.
        cell: what it says of a row.
        of_gpu: it says nothing where no GPU work was recorded.
        needs_room: it is left out of narrow tables.
    """

    heading: str
    cell: Callable[[Row], str]
    of_gpu: bool = False
    needs_room: bool = False


def print_rows(
    console: Console,
    heading: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[str, Row]],
    *,
    has_gpu: bool,
) -> None:
    """Print rows with their labels.

    Args:
        console: where; its width says which columns there is room for.
        heading: of the labels.
        columns: those there are.
        rows: a label, which may be of several lines, and what the cells are made from.
        has_gpu: GPU work was recorded.
    """
    is_roomy = console.width >= _ROOMY
    shown = [
        column
        for column in columns
        if (has_gpu or not column.of_gpu) and (is_roomy or not column.needs_room)
    ]
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column(Text(f"\n{heading}"), overflow="fold")
    for column in shown:
        table.add_column(Text(column.heading, justify="right"), justify="right", no_wrap=True)
    for label, row in rows:
        table.add_row(Text(label), *(column.cell(row) for column in shown))
    console.print(table)


def clipped(label: str) -> str:
    """Cut a long label in the middle: the ends of names and shapes tell them apart."""
    if len(label) <= _LONGEST_LABEL:
        return label
    half = (_LONGEST_LABEL - 1) // 2
    return f"{label[:half]}\N{HORIZONTAL ELLIPSIS}{label[-half:]}"
