"""Build the tables of a test from the rows it writes; what it leaves out is null."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from analyze.engine.data import Tables
from analyze.engine.document import KeyPath
from analyze.engine.model import RuleTest
from analyze.engine.params import quantity_of
from analyze.engine.per import Per, written_table, written_unit_column
from analyze.engine.problems import did_you_mean
from analyze.engine.program import Program
from analyze.engine.syntax import ExpressionError
from analyze.engine.values import is_usable
from analyze.tables.catalogue import TABLES, TRACE, Table


class InvalidTestError(Exception):
    """A test in a rule is itself wrong.

    Attributes:
        path: the place below the test.
        message, help: for people.
        key: the key at that place is wrong, not its value.
    """

    def __init__(
        self, path: KeyPath, message: str, help_text: str | None = None, *, key: bool = False
    ) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.help = help_text
        self.key = key


class WrittenTables(Tables):
    """Tables whose rows a test writes out; what it leaves out is null."""

    def __init__(
        self,
        table: Table,
        rows: pl.DataFrame,
        *,
        units: pl.DataFrame,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Hold the rows.

        Args:
            table: the rule's table.
            rows: its rows, with the table's schema.
            units: the units, with the schema of their table.
            facts: columns of the ``trace`` row.
        """
        super().__init__()
        self._table = table
        self._rows = rows
        self._units = units
        self._facts = {column.name: None for column in TRACE.columns} | dict(facts or {})

    @property
    def facts(self) -> Mapping[str, Any]:
        """See :class:`Tables`."""
        return self._facts

    def table(self, name: str) -> pl.DataFrame:
        """See :class:`Tables`."""
        if name == self._table.name:
            return self._rows
        return pl.DataFrame(schema=TABLES[name].schema)

    def was_recorded(self, table: Table) -> bool:  # noqa: ARG002 - rows that are written are there
        """See :class:`Tables`."""
        return True

    def unit_index(self, table: Table, per: Per) -> pl.Series:
        """See :class:`Tables`."""
        rows = self.table(table.name)
        if per.word == "trace":
            return pl.repeat(0, rows.height, dtype=pl.Int64, eager=True)
        column = written_unit_column(table, per)
        return rows[column] if column in rows.columns else pl.Series(dtype=pl.Int64)

    def unit_table(self, per: Per) -> pl.DataFrame:  # noqa: ARG002 - a test has units of one kind
        """See :class:`Tables`."""
        return self._units


def write_tables(program: Program, test: RuleTest) -> WrittenTables:
    """Return the tables of a test with ``rows``.

    Raises:
        InvalidTestError: a row has an unknown column or a value of another kind.
    """
    rows = _frame(test.rows or [], written_table(program.table, program.per), ("rows",))
    units = _units(program, test, rows)
    _check_units_of_rows(program, test.rows or [], rows, units)
    facts = _frame([test.facts], TRACE, ("facts",)).row(0, named=True)
    return WrittenTables(program.table, rows, units=units, facts=facts)


def _check_units_of_rows(
    program: Program,
    written: Sequence[Mapping[str, Any]],
    rows: pl.DataFrame,
    units: pl.DataFrame,
) -> None:
    """Check that rows name units, and units that are written: else they are left out silently.

    Raises:
        InvalidTestError: no row names one, or one names a unit that is not written.
    """
    column = written_unit_column(program.table, program.per)
    if program.per.word == "trace" or column not in rows.columns:
        return
    if rows.height and not any(column in row for row in written):
        message = f"no row says which {program.per.words} it belongs to"
        help_text = f"write '{column}: 0' in the rows; '{column}: null' for one outside any"
        raise InvalidTestError(("rows",), message, help_text)
    known = set(units["index"])
    for index, unit in enumerate(rows[column]):
        if unit is not None and unit not in known:
            key = _units_key(program)
            message = f"the row belongs to {column} {unit}, which is not among '{key}'"
            help_text = f"write it there: {key}: [{{index: {unit}}}]"
            raise InvalidTestError(("rows", index, column), message, help_text)


def _units_key(program: Program) -> str:
    return "forwards" if program.per.word == "trace" else program.per.unit_table.name


def _units(program: Program, test: RuleTest, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the units a test writes; else one for each that its rows name."""
    table = program.per.unit_table
    key = _units_key(program)
    written = {"steps": test.steps, "calls": test.calls}.get(key, test.forwards)
    if written is not None:
        return _frame(written, table, (key,))
    if program.table.name == key:
        return rows
    column = written_unit_column(program.table, program.per)
    named = rows[column].drop_nulls().unique().sort() if column in rows.columns else [0]
    return _frame([{"index": index} for index in named], table, (key,))


def _frame(rows: Sequence[Mapping[str, Any]], table: Table, path: KeyPath) -> pl.DataFrame:
    for index, row in enumerate(rows):
        for name in row:
            if table.column(name) is None:
                place = (*path, name) if path == ("facts",) else (*path, index, name)
                message = f"unknown column '{name}' in table '{table.name}'"
                raise InvalidTestError(place, message, did_you_mean(name, table.schema), key=True)
    return pl.DataFrame(
        {
            column.name: _series(column.name, [row.get(column.name) for row in rows], table, path)
            for column in table.columns
        }
    )


def _series(name: str, written: list[Any], table: Table, path: KeyPath) -> pl.Series:
    dtype = table.schema[name]
    values = [_value(value, dtype) for value in written]
    for index, value in enumerate(values):
        if not _fits(value, dtype):
            place = (*path, name) if path == ("facts",) else (*path, index, name)
            raise InvalidTestError(place, f"'{name}' cannot hold {value!r}")
    return pl.Series(name, values, dtype, strict=True)


def _value(value: Any, dtype: type[pl.DataType]) -> Any:
    """Return a written value; quantities such as ``MiB(1)`` become numbers."""
    if isinstance(value, str) and dtype in (pl.Int64, pl.Float64):
        try:
            quantity = quantity_of(value)
        except ExpressionError:
            return value
        value = value if quantity is None else quantity
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole and dtype == pl.Int64 else value


def _fits(value: Any, dtype: type[pl.DataType]) -> bool:
    if value is None:
        return True
    if dtype == pl.Boolean or isinstance(value, bool):
        return dtype == pl.Boolean and isinstance(value, bool)
    if dtype == pl.String:
        return isinstance(value, str)
    number = int if dtype == pl.Int64 else int | float
    return isinstance(value, number) and is_usable(value)
