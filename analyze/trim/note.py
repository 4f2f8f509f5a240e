"""The member that a trimmed trace has beside its events, which says what was kept of what."""

from collections.abc import Mapping
from typing import Any

from analyze.tables.trimmed import KEY, key_of


def free_key(metadata: Mapping[str, Any]) -> str:
    """Return the name for the note; a trace that was trimmed before keeps its earlier notes."""
    number = 1
    while key_of(number) in metadata:
        number += 1
    return key_of(number)


def is_note(key: str) -> bool:
    """Whether a member is such a note."""
    return key == KEY or (key.startswith(f"{KEY}_") and key.removeprefix(f"{KEY}_").isdecimal())
