"""Write the first version of a rule: valid, commented, with one test that fires and one silent."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from analyze.engine.per import per_of, unit_column
from analyze.tables.catalogue import Table

PREFIX = "MY"
"""Letters of the codes that starter rules get."""

SCHEMA_FILE = "rule.schema.json"

_CODE = re.compile(rf"^code: *{PREFIX}([0-9]{{3}})\b", re.MULTILINE)


@dataclass(frozen=True)
class _Example:
    """A condition on one column, with a value that meets it and one that does not."""

    column: str
    condition: str
    meets: str
    differs: str


def starter_rule(name: str, code: str, table: Table) -> str:
    """Return the text of a starter rule.

    Args:
        name: kebab-case name of the rule.
        code: its code.
        table: the table or view it looks at.
    """
    example, unit = _example(table), per_of(None, table).word
    is_timed = table.column("dur_us") is not None
    time_measure, time_shown = ("  us: sum(dur_us)\n", ", {us:us}") if is_timed else ("", "")
    title = name.replace("-", " ").capitalize()
    per_unit = "in the trace" if unit == "trace" else "per {unit}"
    return f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# The line above gives completion and checks in the editor; write the file that it names once with
# `analyze rules schema > {SCHEMA_FILE}`.
version: 1
code: {code}  # two to six capitals and three digits; stable, never reused
name: {_text(name)}
title: {_text(title)}
# What you expect to be true, in one sentence. It is printed with every finding.
guess: No {_singular(table.name).replace("_", " ")} of this kind is needed.
from: {table.name}  # its columns: analyze columns {table.name}
# Which rows count. Unknown values match nothing.
where:
  {example.column}: {example.condition}
params:
  most: 0  # say in a comment where the number comes from
# Named expressions over the rows that match, computed for each {unit}.
measure:
  n: count()
{time_measure}\
# What must hold for the guess to be true.
expect: n <= params.most
severity: warning
message: "{{n:int}} {_rows(table)} match{time_shown} {per_unit}"
fix: Say what to change.
# known_problems: When is a finding of this rule wrong?
tests:
  - name: one is too many
    rows:
      - {_row(table, example.column, example.meets)}
    expect: {{state: mismatch, severity: warning, measures: {{n: 1}}}}
  - name: others do not count
    rows:
      - {_row(table, example.column, example.differs)}
    expect: {{state: pass, measures: {{n: 0}}}}
"""


def free_code(texts: Iterable[str]) -> str:
    """Return the first code of starter rules that no rule among ``texts`` uses."""
    used = {int(number) for text in texts for number in _CODE.findall(text)}
    number = next(number for number in range(1, 1000) if number not in used or number == 999)
    return f"{PREFIX}{number:03}"


def _example(table: Table) -> _Example:
    free_text = [item.name for item in table.columns if item.dtype == pl.String and not item.values]
    if free_text:
        column = "name" if "name" in free_text else free_text[0]
        noun = _singular(table.name)
        return _Example(column, f"{{contains: my_{noun}}}", f"my_{noun}", f"another_{noun}")
    unit = unit_column(table, per_of(None, table))
    column = next(
        item.name for item in table.columns if item.dtype == pl.Int64 and item.name != unit
    )
    return _Example(column, "{gte: 100}", "100", "99")


def _row(table: Table, column: str, value: str) -> str:
    cells = {column: value}
    if table.column("dur_us") is not None:
        cells["dur_us"] = "12.5"
    unit = unit_column(table, per_of(None, table))
    if unit is not None:
        cells[unit] = "0"
    return "{" + ", ".join(f"{name}: {cell}" for name, cell in cells.items()) + "}"


def _rows(table: Table) -> str:
    return "rows" if table.name in ("trace", "memory") else table.name.replace("_", " ")


def _singular(plural: str) -> str:
    for ending, singular in (("ies", "y"), ("ches", "ch"), ("s", "")):
        if plural.endswith(ending):
            return plural.removesuffix(ending) + singular
    return plural


def _text(words: str) -> str:
    """Return words as YAML text; one word alone may read as a number or as null."""
    return words if words[0].isalpha() and re.search("[ -]", words) else f'"{words}"'
