"""The names that the expressions of one rule may use, and what compiling them collects."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl

from analyze.engine.values import Kind, Typed, Value, kind_of_dtype
from analyze.tables.catalogue import TABLES, TRACE


@dataclass
class Uses:
    """The names an expression uses.

    Attributes:
        columns: columns of the table, without those below.
        handled: columns that are asked whether they are null, so that unknown is no obstacle.
        unit: columns of the unit of repetition, unless they are asked whether they are null.
        facts: columns of the ``trace`` table, likewise.
        measures: earlier measures.
        counted: conditions per row whose number is asked for, which counts unknown as no; by the
            hidden column of the aggregate.
    """

    columns: set[str] = field(default_factory=set)
    handled: set[str] = field(default_factory=set)
    unit: set[str] = field(default_factory=set)
    facts: set[str] = field(default_factory=set)
    measures: set[str] = field(default_factory=set)
    counted: dict[str, pl.Expr] = field(default_factory=dict)

    def add(self, other: "Uses") -> None:
        """Add the names that something else uses, its measures aside."""
        self.columns |= other.columns
        self.handled |= other.handled
        self.unit |= other.unit
        self.facts |= other.facts
        self.counted |= other.counted


@dataclass
class Scope:
    """The names that expressions of one rule may use, and what compiling them collects.

    Attributes:
        table: name of the rule's table, for messages.
        columns: kind of each of its columns.
        unit: the word for the unit of repetition; None for the whole trace.
        unit_columns: kind of each column of the unit.
        facts: columns of the ``trace`` row as constants of their kind.
        params: values of the rule's parameters.
        measures: kinds of the measures so far.
        declared: names of all measures of the rule.
        broken: measures that could not be compiled, and parameters (``params.x``) likewise.
        aggregates: per hidden column, the aggregate that fills it.
        text_tests: per hidden column, the text column and the expression of it that fills it.
        row_unit_columns: columns of the unit that are used per row.
    """

    table: str
    columns: Mapping[str, Kind]
    unit: str | None
    unit_columns: Mapping[str, Kind]
    facts: Mapping[str, Typed]
    params: Mapping[str, Value]
    measures: dict[str, Kind] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()
    broken: set[str] = field(default_factory=set)
    aggregates: dict[str, pl.Expr] = field(default_factory=dict)
    text_tests: dict[str, tuple[str, pl.Expr]] = field(default_factory=dict)
    row_unit_columns: set[str] = field(default_factory=set)
    _aggregate_names: dict[str, str] = field(default_factory=dict)

    def add_aggregate(self, written: str, expr: pl.Expr) -> str:
        """Return the hidden column of an aggregate; the same text is computed once."""
        if written not in self._aggregate_names:
            name = f"#aggregate{len(self._aggregate_names)}"
            self._aggregate_names[written] = name
            self.aggregates[name] = expr
        return self._aggregate_names[written]

    def add_text_test(self, column: str, expr: pl.Expr) -> pl.Expr:
        """Return the hidden column of a test that is made on distinct texts only."""
        name = f"#text{len(self.text_tests)}"
        self.text_tests[name] = (column, expr)
        return pl.col(name)


@cache
def column_kinds(table: str) -> Mapping[str, Kind]:
    """Return the kind of each column of a table."""
    return {column.name: kind_of_dtype(column.dtype) for column in TABLES[table].columns}


class TraceFacts(Mapping[str, Typed]):
    """The columns of the ``trace`` row as constants, made when a rule asks for one."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row

    def __getitem__(self, name: str) -> Typed:
        kind = column_kinds(TRACE.name)[name]
        return Typed(pl.lit(self._row.get(name), dtype=TRACE.schema[name]), kind)

    def __iter__(self) -> Iterator[str]:
        return iter(column_kinds(TRACE.name))

    def __len__(self) -> int:
        return len(column_kinds(TRACE.name))
