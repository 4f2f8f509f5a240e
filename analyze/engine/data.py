"""What rules are evaluated on: the tables of a trace, or those a test writes out.

The same few questions for both: rows with their unit, the units, the facts of the trace. Work that
several rules share (distinct texts of a column, units of a region) is kept.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import polars as pl

from analyze.engine.per import Per, base_table, unit_column
from analyze.tables.build import Trace
from analyze.tables.catalogue import FORWARDS, Table, publish
from analyze.tables.facts import Facts
from analyze.tables.unit_rows import unit_rows
from analyze.tables.units import Units, find_forwards

UNIT = "#unit"
"""Column with the index of the unit."""

_REGION = "#region_unit"


class Tables(ABC):
    """The tables that one evaluation sees.

    Attributes:
        facts: the one row of the table ``trace``.
    """

    def __init__(self) -> None:
        self._encoded: dict[tuple[str, str], tuple[pl.Series, pl.Series]] = {}

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
        if per.word == "trace":
            wholes = [
                pl.Series(f"trace.{name}", [self.facts[name]], pl.Float64)
                for name in ("gpu_busy_us", "cpu_us")
            ]
            return pl.DataFrame([pl.Series(UNIT, [0], pl.Int64), *wholes])
        units = self.unit_table(per).unique("index", keep="first", maintain_order=True)
        return units.select(pl.col("index").alias(UNIT), pl.all().name.prefix(f"{per.word}."))

    def distinct_test(self, table: Table, column: str, test: pl.Expr) -> pl.Series:
        """Evaluate a test of one text column on its distinct values; one result per row."""
        key = (table.name, column)
        if key not in self._encoded:
            self._encoded[key] = _encode(self.table(table.name)[column])
        codes, texts = self._encoded[key]
        results = texts.to_frame().select(test.alias("result"))["result"]
        return results.gather(codes)


def _encode(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return a code per row (null for null), and the distinct texts by code."""
    distinct = texts.drop_nulls().unique(maintain_order=True)
    codes = texts.cast(pl.Enum(distinct)).to_physical().cast(pl.UInt32)
    return codes, distinct


class TraceTables(Tables):
    """The tables of a trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace
        self._facts: dict[str, Any] = trace.table("trace").row(0, named=True)
        self._regions: dict[str, Facts] = {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """See :class:`Tables`."""
        return self._facts

    def table(self, name: str) -> pl.DataFrame:
        """See :class:`Tables`."""
        return self._trace.table(name)

    def was_recorded(self, table: Table) -> bool:
        """See :class:`Tables`."""
        return not self.table(base_table(table).name).is_empty()

    def unit_index(self, table: Table, per: Per) -> pl.Series:
        """See :class:`Tables`."""
        if per.word == "trace":
            return pl.repeat(0, self.table(table.name).height, dtype=pl.Int64, eager=True)
        if per.region is None:
            return self.table(table.name)[str(unit_column(table, per))]
        base: pl.DataFrame = getattr(self._region(per.region), base_table(table).name)
        rows = base if table.condition is None else base.filter(table.condition)
        return rows[_REGION]

    def unit_table(self, per: Per) -> pl.DataFrame:
        """See :class:`Tables`."""
        if per.region is None:
            return self._trace.table("steps" if per.word == "step" else "forwards")
        region = self._region(per.region)
        return publish(unit_rows(region.forwards, _REGION, region), FORWARDS)

    def _region(self, name: str) -> Facts:
        """Return the facts with the unit that each row would have with ``--forward name``."""
        if name not in self._regions:
            self._regions[name] = self._find_region(name)
        return self._regions[name]

    def _find_region(self, name: str) -> Facts:
        facts = self._trace.facts
        annotations = facts.host.nodes.filter(~pl.col("is_op"))
        if name in annotations["name"]:
            units = find_forwards(annotations, facts.steps, name)
        else:
            units = Units(name, facts.forwards.intervals.clear(), any_thread=False)
        of_calls = units.index_at(facts.api_calls)
        return dataclasses.replace(
            facts,
            forwards=units,
            gpu_ops=_with_unit(facts.gpu_ops, of_calls.gather(facts.gpu_ops["api_row"])),
            ops=_with_unit(facts.ops, units.index_at(facts.ops)),
            api_calls=_with_unit(facts.api_calls, of_calls),
        )


def _with_unit(frame: pl.DataFrame, index: pl.Series) -> pl.DataFrame:
    return frame.with_columns(index.alias(_REGION))
