"""Traces side by side in Markdown, as GitHub renders it."""

from collections.abc import Mapping
from typing import Any

from analyze.report import compare_words as words
from analyze.report.markdown_words import code, markdown_table, plain


def compare_markdown(data: Mapping[str, Any]) -> str:
    """Return a comparison made by :func:`analyze.report.compare.compare` as one table."""
    columns: dict[str, words.Cell] = {
        "variant": lambda row: code(row["name"]),
        **words.glance_columns(data),
        **words.paths(code),
        "lesson": lambda row: plain(words.lesson(row)),
    }
    rows = ([cell(row) for cell in columns.values()] for row in data["traces"])
    absent = (plain(words.absence(e["name"], e["status"], e["reason"])) for e in data["absent"])
    amounts = words.medians_of(data["traces"])
    below = [f"- {line}" for line in (amounts, *words.notes(data, code), *absent)]
    return "\n".join([markdown_table(list(columns), rows), *below]) + "\n"
