"""Units of repetition that a rule may be judged per, and how rows belong to them."""

from dataclasses import dataclass
from typing import Literal

from analyze.engine.model import RegionUnit
from analyze.tables.catalogue import FORWARDS, STEPS, TABLES, Table

UnitWord = Literal["forward", "step", "region", "trace"]

_WITH_REGIONS = ("gpu_ops", "ops", "api_calls")
_UNIT_TABLES = {"forwards": "forward", "steps": "step"}


@dataclass(frozen=True)
class Per:
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
        if self.word == "trace":
            return None
        return STEPS if self.word == "step" else FORWARDS

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
        return {"ProfilerStep": "step", "trace": "trace"}.get(forward_is or "", "forward")
    return per.words


def per_of(written: str | RegionUnit | None, table: Table) -> Per:
    """Return the unit of a rule.

    Without ``per`` it is the forward, where the table's rows belong to forwards; of the table
    ``steps`` it is the step; of other tables the whole trace.
    """
    if isinstance(written, RegionUnit):
        return Per("region", written.region)
    if written in ("forward", "step", "trace"):
        return Per(written)  # type: ignore[arg-type]
    if unit_column(table, Per("forward")) is not None:
        return Per("forward")
    return Per("step") if table.name == "steps" else Per("trace")


def unit_column(table: Table, per: Per) -> str | None:
    """Return the column that holds the unit of each row; None where rows belong to no such unit."""
    if _UNIT_TABLES.get(table.name) == per.word:
        return "index"
    return per.word if table.column(per.word) and per.word in ("forward", "step") else None


def can_be_judged(table: Table, per: Per) -> bool:
    """Whether the rows of a table belong to units of this kind."""
    if per.word == "trace":
        return True
    if per.word == "region":
        return (table.base or table.name) in _WITH_REGIONS
    return unit_column(table, per) is not None


def base_table(table: Table) -> Table:
    """Return the table that a view is taken from, or the table itself."""
    return TABLES[table.base] if table.base else table
