"""What ``analyze trim`` noted in a trace: what was kept of what."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from analyze.tables.noted import integer, notes, text
from analyze.words import printable

KEY = "kinetolint_trim"
"""The member beside the events; where a trimmed trace was trimmed again, the first note."""

_MOST_WINDOWS = 1000


class Trimmed(NamedTuple):
    """One note; what it does not say, or says in no way that can be meant, is null.

    Attributes:
        kept, of: what was kept, and of what, in words.
        events, all_events: how many.
        windows_ns: the kept time in the file's own time, as (first nanosecond, first no longer
            kept).
    """

    kept: str | None
    of: str | None
    events: int | None
    all_events: int | None
    windows_ns: tuple[tuple[int, int], ...] | None


def read_trimmed(metadata: Mapping[str, Any]) -> tuple[Trimmed, ...]:
    """Return the notes in the members beside the events, the latest last."""
    return tuple(
        Trimmed(
            kept=_text(note.get("kept")),
            of=_text(note.get("of")),
            events=_count(note.get("events")),
            all_events=_count(note.get("all_events")),
            windows_ns=_windows(note.get("windows_ns")),
        )
        for note in notes(metadata, KEY)
    )


def _text(value: object) -> str | None:
    known = text(value)
    return None if known is None else printable(known)


def _count(value: object) -> int | None:
    known = integer(value)
    return known if known is not None and known >= 0 else None


def _windows(value: object) -> tuple[tuple[int, int], ...] | None:
    if not isinstance(value, list) or len(value) > _MOST_WINDOWS:
        return None
    windows = [tuple(each) for each in value if isinstance(each, list)]
    if len(windows) < len(value) or not all(map(_is_window, windows)):
        return None
    return tuple((first, last) for first, last in windows)


def _is_window(window: tuple[Any, ...]) -> bool:
    return len(window) == 2 and all(integer(t) is not None for t in window)
