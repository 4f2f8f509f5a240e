"""Units of repetition that a rule may be judged per, and how rows belong to them."""

import dataclasses
from collections.abc import Mapping
from typing import Literal, NamedTuple

import polars as pl

from analyze.engine.model import RegionUnit
from analyze.tables.catalogue import CALLS, FORWARDS, STEPS, TABLES, Column, Table
from analyze.tables.units import unit_name

UnitWord = Literal["forward", "step", "call", "region", "trace"]

_LOCATED = ("gpu_ops", "ops", "api_calls")
"""Tables whose rows belong to the regions and calls that were open when they were launched."""
_UNIT_TABLES: Mapping[str, UnitWord] = {"forwards": "forward", "steps": "step", "calls": "call"}


class Per(NamedTuple):
    """One unit of repetition.

    Attributes:
        word: what a unit is; also the prefix of its columns in expressions.
        region: the annotation, for ``region``.
    """

    word: UnitWord
    region: str | None = None

    @property
    def table(self) -> Table | None:
        """The table that describes the units; None for the whole trace."""
        return None if self.word == "trace" else self.unit_table

    @property
    def unit_table(self) -> Table:
        """The table whose columns a unit has; regions have those of forwards."""
        return {"step": STEPS, "call": CALLS}.get(self.word, FORWARDS)

    @property
    def words(self) -> str:
        """The unit in words."""
        return f"region {self.region}" if self.region else self.word


UNIT_WORD = "unit"
"""The name under which templates insert the unit in words."""


def unit_in_words(per: Per, forward_is: str | None) -> str:
    """Return what a unit is in a trace: where nothing marks a forward, it is a step or the trace.

    Args:
        per: the unit of the rule.
        forward_is: ``trace.forward_is``.
    """
    if per.word == "forward":
        return unit_name(forward_is)
    return per.words


def per_of(written: UnitWord | RegionUnit | None, table: Table) -> Per:
    """Return the unit of a rule.

    Without ``per`` a table of units is judged per such a unit; others per forward, where their rows
    belong to forwards, else per trace.
    """
    if isinstance(written, RegionUnit):
        return Per("region", written.region)
    if written is not None:
        return Per(written)
    if table.name in _UNIT_TABLES:
        return Per(_UNIT_TABLES[table.name])
    return Per("trace" if unit_column(table, Per("forward")) is None else "forward")


def unit_column(table: Table, per: Per) -> str | None:
    """Return the column that holds the unit of each row; None where rows belong to no such unit."""
    if _UNIT_TABLES.get(table.name) == per.word:
        return "index"
    return per.word if table.column(per.word) and per.word in ("forward", "step") else None


def written_unit_column(table: Table, per: Per) -> str:
    """Return the column in which the rows of a test name their unit; regions count as forwards."""
    return unit_column(table, per) or ("call" if per.word == "call" else "forward")


def written_table(table: Table, per: Per) -> Table:
    """Return a table as a test writes its rows: a call that no column names has one here."""
    name = written_unit_column(table, per)
    if not can_be_judged(table, per) or per.word == "trace" or table.column(name):
        return table
    column = Column(name, pl.Int64, f"Index of the {per.word} it belongs to")
    return dataclasses.replace(table, columns=(*table.columns, column))


def can_be_judged(table: Table, per: Per) -> bool:
    """Whether the rows of a table belong to units of this kind."""
    if per.word == "trace":
        return True
    if per.word in ("region", "call") and (table.base or table.name) in _LOCATED:
        return True
    return unit_column(table, per) is not None


def base_table(table: Table) -> Table:
    """Return the table that a view is taken from, or the table itself."""
    return TABLES[table.base] if table.base else table
