"""Traces side by side in Markdown, as GitHub renders it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analyze.report import compare_words as words
from analyze.words import printable

_SPECIAL = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_[]|~#$"} | {"<": "&lt;", "&": "&amp;"}
)


def escape(text: str) -> str:
    """Return text that Markdown shows as it is: names of a trace are no markup."""
    return text.replace("\n", " ").translate(_SPECIAL)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain texts; an empty one has its heading only."""
    lines = [columns, ["---"] * len(columns)]
    head = [_line(map(escape, lines[0])), _line(lines[1])]
    return "\n".join([*head, *(_line(map(escape, row)) for row in rows)]) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def compare_markdown(data: Mapping[str, Any]) -> str:
    """Return a comparison made by :func:`analyze.report.compare.compare` as one table."""
    columns: dict[str, words.Cell] = {
        "variant": lambda row: printable(row["name"]),
        **words.glance_columns(data),
        **words.PATHS,
        "lesson": words.lesson,
    }
    rows = ([cell(row) for cell in columns.values()] for row in data["traces"])
    absent = (words.absence(e["name"], e["status"], e["reason"]) for e in data["absent"])
    below = [f"- {escape(line)}" for line in (*words.notes(data), *absent)]
    return "\n".join([markdown_table(list(columns), rows), *below]) + "\n"
