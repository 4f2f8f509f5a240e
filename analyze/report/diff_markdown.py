"""A diff in Markdown, for a pull request."""

from collections.abc import Iterator, Mapping
from typing import Any

from analyze.report import diff_words as words
from analyze.report.markdown_words import code, markdown_table, plain

Data = Mapping[str, Any]


def diff_markdown(data: Data, *, limit: int) -> str:
    """Return a diff as Markdown.

    Args:
        data: made by :func:`analyze.report.diff.diff`.
        limit: rows of each list.
    """
    return "\n".join(_blocks(data, limit))


def _blocks(data: Data, limit: int) -> Iterator[str]:
    lines = [
        f"- before: {words.side_sentence(data['before'], code)}",
        f"- after: {words.side_sentence(data['after'], code)}",
        *(f"- careful: {plain(sentence)}" for sentence in data["warnings"]),
        *(f"- {sentence}" for sentence in words.headlines(data, limit, code)),
        *(f"- gate {state}: {text}" for state, text in words.gate_sentences(data, code)),
    ]
    yield "\n".join(lines) + "\n"
    yield markdown_table(words.summary_columns(data), words.summary_rows(data))
    for sentence in filter(None, [words.verdict(data)]):
        yield f"**{sentence}**\n"
    for section in words.shown_sections(data):
        yield f"### {words.SECTION_TITLES[section]}\n"
        rows = words.changed_rows(data, section)[:limit]
        yield markdown_table(words.ROW_COLUMNS, (words.row_cells(data, row, code) for row in rows))
        rest = words.left_out(data, section, limit)
        if rest:
            yield f"{rest}\n"
    findings = [(state, plain(finding)) for state, finding in words.finding_rows(data, limit)]
    if findings:
        yield "### Findings\n"
        yield markdown_table(("", "finding"), findings)
