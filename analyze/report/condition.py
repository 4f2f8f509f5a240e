"""The rows of a table that a report is about, where ``--where`` chose some.

Every report has the key ``where``: null without a condition, else ``expression`` (as given),
``rows`` (of the table), ``matched`` (rows for which it is known to hold) and ``undecided`` (rows of
which that cannot be told, because a value is unknown; they are left out).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyze.words import counted, printable

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Condition:
    """Which rows of a table to count.

    Attributes:
        text: the expression, as given.
        kept: whether it is known to hold, per row of the table.
        undecided: rows of which that cannot be told, because something is unknown.
    """

    text: str
    kept: "pl.Series"
    undecided: int

    def as_json(self) -> dict[str, Any]:
        """Return what a report says of it."""
        return {
            "expression": self.text,
            "rows": len(self.kept),
            "matched": int(self.kept.sum()),
            "undecided": self.undecided,
        }


def condition_sentence(where: Mapping[str, Any], noun: str) -> str:
    """Word what a report says of a condition: how many rows it keeps, and what is left out.

    Args:
        where: what :meth:`Condition.as_json` returned.
        noun: what a row of the table is.
    """
    matched = f"{where['matched']:,}" if where["matched"] else "none"
    sentence = f"{printable(where['expression'])}: {matched} of {counted(where['rows'], noun)}"
    if not where["undecided"]:
        return sentence
    those = "it is" if where["undecided"] == 1 else "they are"
    return f"{sentence}; of {where['undecided']:,} it cannot be told, {those} left out"
