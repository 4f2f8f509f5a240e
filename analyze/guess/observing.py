"""What a trace holds of each quantity, by the same rules that check guesses."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from analyze.engine.data import Tables
from analyze.engine.evaluate import Evaluation
from analyze.engine.needs import missing
from analyze.engine.per import unit_in_words
from analyze.engine.rule import Rule
from analyze.guess.amounts import OPEN, Amount
from analyze.guess.quantities import Quantity
from analyze.guess.rules import WORK_OF_UNIT, Guess, make_guess
from analyze.guess.words import ATTENTION, GROUPS, PRECISIONS
from analyze.words import counted

_ANYTHING: dict[str, Guess] = {
    "amount": Amount(0, OPEN, "anything"),
    "families": tuple(group for group in GROUPS if group != ATTENTION),
    "precisions": PRECISIONS,
    "order": ("anything",),
}
"""Guesses whose rules measure what is there; of attention written out as ops, its families."""


@dataclass(frozen=True)
class Observation:
    """One quantity of one trace.

    Attributes:
        quantity: which.
        units: one row per unit with what its rule measures; empty where the trace cannot tell.
        unknown: why the trace cannot tell, wholly or in some units.
    """

    quantity: Quantity
    units: pl.DataFrame
    unknown: str | None

    @property
    def values(self) -> list[Any]:
        """The observed values, one per unit."""
        return self.units["observed"].to_list() if self.units.width else []

    @property
    def typical(self) -> Any:
        """The median; of words the commonest; None where nothing is known."""
        if not self.units.width:
            return None
        observed = self.units["observed"].drop_nulls()
        if observed.is_empty():
            return None
        return observed.mode().sort()[0] if observed.dtype == pl.String else observed.median()


def observe(quantity: Quantity, tables: Tables) -> Observation:
    """Measure a quantity in every unit of a trace."""
    rule = make_guess(quantity, _ANYTHING[quantity.kind]).rule
    return observe_by(rule, quantity, tables)


def observe_by(rule: Rule, quantity: Quantity, tables: Tables) -> Observation:
    """Measure a quantity by the rule of a guess about it."""
    program = rule.compile(tables.facts)
    reason = missing(program, tables)
    if reason is not None:
        return Observation(quantity, pl.DataFrame(), reason)
    (group,) = Evaluation(program, tables, rule.model.quorum).measured_groups()
    unknown = group.units["observed"].null_count()
    if not unknown:
        return Observation(quantity, group.units, None)
    units = counted(group.units.height, unit_in_words(program.per, tables.facts["forward_is"]))
    in_part = 0 if program.per.word == "trace" else group.units[WORK_OF_UNIT].null_count()
    if in_part and quantity.is_of_work:
        why = f"a part of the launched work may be missing from the file in {in_part:,} of {units}"
    else:
        why = f"{quantity.silence} in {unknown:,} of {units}"
    return Observation(quantity, group.units, why)
