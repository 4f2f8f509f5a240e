"""A diff as text: what is compared, the summary, then what contributed most to it."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.report import diff_words as words
from analyze.report.console import buffer_console, plain_table, print_pairs, rendered

Data = Mapping[str, Any]

DEFAULT_LIMIT = 8


def render_diff(data: Data, *, limit: int = DEFAULT_LIMIT, color: bool = False) -> str:
    """Return the text of a diff made by :func:`analyze.report.diff.diff`.

    Args:
        data: the diff.
        limit: rows of each list.
        color: use terminal colours; the text says the same without them.
    """
    console = buffer_console(color=color)
    print_pairs(console, _opening(data))
    _print_summary(console, data)
    for sentence in filter(None, [words.verdict(data)]):
        console.print(Text(f"\n{sentence}", style="bold"))
    headlines = list(words.headlines(data, limit))
    if headlines:
        console.print(Text("\n" + "\n".join(headlines)))
    for section in words.shown_sections(data):
        _print_section(console, data, section, limit)
    _print_findings(console, data, limit)
    gates = list(words.gate_sentences(data))
    if gates:
        console.print(Text("\n--fail-if", style="bold"))
        print_pairs(console, gates)
    return rendered(console)


def _opening(data: Data) -> list[tuple[str, str]]:
    return [
        ("before", words.side_sentence(data["before"])),
        ("after", words.side_sentence(data["after"])),
        *(("careful", sentence) for sentence in data["warnings"]),
    ]


def _print_summary(console: Console, data: Data) -> None:
    table = plain_table("", *words.summary_columns(data))
    table.title = None
    table.columns[-1].justify = "left"
    for cells in words.summary_rows(data):
        table.add_row(*map(Text, cells))
    console.print()
    console.print(table)


def _print_section(console: Console, data: Data, section: str, limit: int) -> None:
    table = plain_table(f"\n{words.SECTION_TITLES[section]}", *words.ROW_COLUMNS)
    table.columns[-1].justify = "left"
    for column in table.columns[:-1]:
        column.no_wrap = True
    for row in words.changed_rows(data, section)[:limit]:
        table.add_row(*map(Text, words.row_cells(data, row)))
    console.print(table)
    rest = words.left_out(data, section, limit)
    if rest:
        console.print(Text(rest, style="dim"))


def _print_findings(console: Console, data: Data, limit: int) -> None:
    rows = list(words.finding_rows(data, limit))
    if rows:
        console.print(Text("\nFindings", style="bold"))
        print_pairs(console, rows)
