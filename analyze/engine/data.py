"""What rules are evaluated on: the tables of a trace, or those a test writes out.

The same few questions for both: rows with their unit, the units, the facts of the trace. Work that
several rules share (distinct texts of a column, units of a region) is kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import polars as pl

from analyze.engine.per import Per, base_table, unit_column
from analyze.tables.build import Trace
from analyze.tables.catalogue import Need, Table, publish
from analyze.tables.unit_rows import UNIT_OF_ROW, UnitWork, work_in
from analyze.tables.units import Units, find_forwards

RECORDED_FLAGS: Mapping[Need, str] = {
    Need.GPU: "has_gpu",
    Need.MEMORY: "has_memory",
    Need.SHAPES: "has_shapes",
    Need.STACKS: "has_stacks",
}
"""Columns of the table ``trace`` that say whether something was recorded at all."""

UNIT = "#unit"
"""Column with the index of the unit."""


class Tables(ABC):
    """The tables that one evaluation sees.

    Attributes:
        facts: the one row of the table ``trace``.
    """

    def __init__(self) -> None:
        self._encoded: dict[tuple[str, str], tuple[pl.Series, pl.Series]] = {}
        self._units_by_per: dict[Per, pl.DataFrame] = {}

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """The one row of the table ``trace``."""

    @abstractmethod
    def table(self, name: str) -> pl.DataFrame:
        """Return a table or view with its documented columns."""

    @abstractmethod
    def was_recorded(self, table: Table) -> bool:
        """Whether a table that has a need could be filled from this trace."""

    @abstractmethod
    def unit_index(self, table: Table, per: Per) -> pl.Series:
        """Return the index of the unit each row of a table belongs to; null for none."""

    @abstractmethod
    def unit_table(self, per: Per) -> pl.DataFrame:
        """Return the units with the documented columns of their table; not for ``trace``."""

    def any_in_units(self, table: Table, per: Per) -> bool:
        """Whether any row of a table, or of the table it is a view of, belongs to a unit."""
        index = self.unit_index(base_table(table), per)
        return index.is_empty() or index.is_not_null().any()

    def units(self, per: Per) -> pl.DataFrame:
        """Return the units: ``#unit`` and the columns of their table as ``unit.column``.

        Of the whole trace it is one row with its ``trace.gpu_busy_us`` and ``trace.cpu_us``.
        """
        if per not in self._units_by_per:
            self._units_by_per[per] = self._find_units(per)
        return self._units_by_per[per]

    def _find_units(self, per: Per) -> pl.DataFrame:
        if per.word == "trace":
            wholes = [
                pl.Series(f"trace.{name}", [self.facts[name]], pl.Float64)
                for name in ("gpu_busy_us", "cpu_us")
            ]
            return pl.DataFrame([pl.Series(UNIT, [0], pl.Int64), *wholes])
        units = self.unit_table(per)
        columns = units.select_seq(pl.all().name.prefix(f"{per.word}."))
        index = self.index_of_units(units, per).alias(UNIT)
        return columns.insert_column(0, index).unique(UNIT, keep="first", maintain_order=True)

    def index_of_units(self, units: pl.DataFrame, per: Per) -> pl.Series:  # noqa: ARG002
        """Return the index of each of the units, by which :meth:`unit_index` names them."""
        return units["index"]

    def distinct_test(self, table: Table, column: str, test: pl.Expr) -> pl.Series:
        """Evaluate a test of one text column on its distinct values; one result per row.

        Null is one of these values: a test may say something about it.
        """
        key = (table.name, column)
        if key not in self._encoded:
            self._encoded[key] = _encode(self.table(table.name)[column])
        codes, texts = self._encoded[key]
        results = texts.to_frame().select_seq(test.alias("result"))["result"]
        return results.gather(codes)


def _encode(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return a code per row, and the distinct texts by code; the last of them is null."""
    distinct = texts.drop_nulls().unique(maintain_order=True)
    codes = texts.cast(pl.Enum(distinct)).to_physical().cast(pl.UInt32)
    return codes.fill_null(len(distinct)), distinct.extend_constant(None, 1)


class TraceTables(Tables):
    """The tables of a trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace
        self._facts: dict[str, Any] = trace.table("trace").row(0, named=True)
        self._regions: dict[str, UnitWork] = {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """See :class:`Tables`."""
        return self._facts

    def table(self, name: str) -> pl.DataFrame:
        """See :class:`Tables`."""
        return self._trace.table(name)

    def was_recorded(self, table: Table) -> bool:
        """See :class:`Tables`; a GPU without gaps was recorded all the same."""
        flag = RECORDED_FLAGS.get(table.needs) if table.needs else None
        if flag is not None:
            return bool(self._facts[flag])
        return not self.table(base_table(table).name).is_empty()

    def unit_index(self, table: Table, per: Per) -> pl.Series:
        """See :class:`Tables`."""
        if per.word == "trace":
            return pl.repeat(0, self.table(table.name).height, dtype=pl.Int64, eager=True)
        column = unit_column(table, per)
        if column is not None and per.word == "step":
            return self._trace.step_rows(table.name)
        if column is not None:
            return self.table(table.name)[column]
        base: pl.DataFrame = getattr(self._work(per).facts, base_table(table).name)
        rows = base if table.condition is None else base.filter(table.condition)
        return rows[UNIT_OF_ROW]

    def index_of_units(self, units: pl.DataFrame, per: Per) -> pl.Series:
        """See :class:`Tables`; several steps may have one number."""
        if per.word == "step":
            return self._trace.step_rows("steps")
        return super().index_of_units(units, per)

    def unit_table(self, per: Per) -> pl.DataFrame:
        """See :class:`Tables`."""
        if per.region is None:
            return self._trace.table(per.unit_table.name)
        return publish(self._work(per).rows(), per.unit_table)

    def _work(self, per: Per) -> UnitWork:
        """Return what was launched in the units that are no columns of the tables."""
        if per.region is None:
            return self._trace.work_of_calls
        if per.region not in self._regions:
            self._regions[per.region] = work_in(self._occurrences(per.region), self._trace.facts)
        return self._regions[per.region]

    def _occurrences(self, region: str) -> Units:
        """Return the units that there would be with ``--forward region``."""
        facts = self._trace.facts
        annotations = facts.host.nodes.filter(~pl.col("is_op"))
        if region in annotations["name"]:
            return find_forwards(annotations, facts.steps, region)
        return Units(region, facts.forwards.intervals.clear(), any_thread=False)
