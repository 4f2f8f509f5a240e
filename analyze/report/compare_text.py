"""Traces side by side as text: numbers, how the work runs, and the lesson of each trace."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from analyze.report import compare_words as words
from analyze.report.console import buffer_console, plain_table, print_pairs, rendered
from analyze.words import printable

Data = Mapping[str, Any]

_LONGEST_UNBROKEN = 32
"""Characters of a name that is kept in one line."""


def render_compare(data: Data, *, color: bool = False) -> str:
    """Return the text of a comparison made by :func:`analyze.report.compare.compare`."""
    console = buffer_console(color=color)
    rows = data["traces"]
    columns = words.glance_columns(data)
    title = f"At a glance, {words.medians_of(rows)}"
    console.print(table_of_rows(title, "variant", columns, rows))
    for note in words.notes(data):
        console.print(Text(note, style="dim"))
    if any(row["occupancy"] for row in rows):
        title = "\nHow the work runs; occupancy of the costliest kernel (median): reported -> real"
        console.print(_left_aligned(table_of_rows(title, "variant", words.paths(), rows)))
    console.print(Text("\nWhat each trace teaches", style="bold"))
    print_pairs(console, ((printable(row["name"]), words.lesson(row)) for row in rows))
    for entry in data["absent"]:
        console.print(Text(words.absence(entry["name"], entry["status"], entry["reason"])))
    return rendered(console)


def _left_aligned(table: Table) -> Table:
    """Align words to the left; of the last column, cut what does not fit."""
    for column in table.columns:
        column.justify = "left"
    table.columns[-1].overflow = "ellipsis"
    return table


def table_of_rows(
    title: str, first: str, columns: Mapping[str, words.Cell], rows: Sequence[Data]
) -> Table:
    """Return a table with the name of each row in its first column.

    Args:
        title: above the table.
        first: heading of the column of names.
        columns: the cells of the others, by heading.
        rows: what :func:`analyze.report.compare.glance` returns, or more.
    """
    table = plain_table(title, first, *columns)
    names = [printable(row["name"]) for row in rows]
    table.columns[0].no_wrap = max(map(len, names), default=0) <= _LONGEST_UNBROKEN
    for name, row in zip(names, rows, strict=True):
        table.add_row(Text(name), *(Text(cell(row)) for cell in columns.values()))
    return table
