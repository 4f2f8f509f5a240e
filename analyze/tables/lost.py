"""What of a recording a file lost by being cut short or damaged; a copy notes it of its source.

A copy is valid JSON and ends where its event list does. Without the note, what is unknown of a file
that lost a part would be a fact of its copy.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from analyze.tables.noted import integer, notes
from analyze.trace.repair import Repairs
from analyze.trace.source import SourceReport

KEY = "kinetolint_lost"
"""The member beside the events; where a copy was damaged and copied again, the first note."""

_MOST_EVENTS = 1 << 48
"""No file has more."""


class Lost(NamedTuple):
    """What is lost.

    Attributes:
        truncated: the file ends before its event list does.
        events: how many could not be read.
    """

    truncated: bool
    events: int

    def and_lost(self, more: "Lost") -> "Lost":
        """Return what is lost by both."""
        return Lost(self.truncated or more.truncated, self.events + more.events)

    def as_note(self) -> dict[str, Any] | None:
        """Return what a copy says of it; None where nothing is lost."""
        if not (self.truncated or self.events):
            return None
        return {"truncated": self.truncated, "events_lost": self.events}


def lost_by_reading(repairs: Repairs, source: SourceReport) -> Lost:
    """Return what was lost of the file itself."""
    return Lost(repairs.truncated or source.cut_short, repairs.events_lost)


def lost_before(metadata: Mapping[str, Any]) -> Lost:
    """Return what was lost of the files that this one was copied from, by its notes."""
    lost = Lost(truncated=False, events=0)
    for note in notes(metadata, KEY):
        count = min(max(0, integer(note.get("events_lost")) or 0), _MOST_EVENTS)
        lost = lost.and_lost(Lost(note.get("truncated") is True, count))
    return lost
