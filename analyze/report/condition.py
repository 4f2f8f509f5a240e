"""The rows of a table that a report is about, where ``--where`` chose some."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        return {"expression": self.text, "undecided": self.undecided}
