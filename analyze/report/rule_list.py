"""The list of rules as text and as JSON."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from analyze.engine.rule import Rule
from analyze.report.console import buffer_console, rendered
from analyze.report.json_writer import to_json
from analyze.words import counted, printable

SCHEMA_VERSION = 1
"""Raised when a key is renamed, removed or changes its meaning; new keys do not raise it."""

_HEADINGS = ("code", "name", "category", "status", "title")


def rules_as_text(rules: Sequence[Rule]) -> str:
    """Return one line per rule, and how to read on."""
    console = buffer_console()
    grid = Table(box=None, pad_edge=False)
    for heading in _HEADINGS:
        grid.add_column(Text(heading), overflow="fold", no_wrap=heading == "code")
    for rule in rules:
        grid.add_row(*(Text(printable(cell)) for cell in _cells(rule)))
    console.print(grid)
    return (
        rendered(console) + f"\n{counted(len(rules), 'rule')}; `analyze explain CODE` documents one"
        " and, with a trace, says why it fires there or not.\n"
    )


def rules_as_json(rules: Sequence[Rule]) -> str:
    """Return the same as versioned JSON, with pack and file."""
    entries = [
        {**dict(zip(_HEADINGS, _cells(rule), strict=True)), "pack": rule.pack, "file": rule.file}
        for rule in rules
    ]
    return to_json([{"schema_version": SCHEMA_VERSION, "rules": entries}])


def _cells(rule: Rule) -> tuple[str, ...]:
    return (rule.code, rule.name, rule.category, rule.model.status, rule.model.title)
