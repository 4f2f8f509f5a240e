"""How a capture that was not a plain success is worded."""

from collections.abc import Callable, Mapping
from typing import Any

from analyze.words import printable


def capture_problem(
    notes: Mapping[str, Any], named: Callable[[str], str] = printable
) -> str | None:
    """Word why a capture is not a plain success; None for one that is, and where nobody noted it.

    Args:
        notes: ``capture_status`` and ``capture_reason``, as far as they are known.
        named: makes a text of the notes safe to print.
    """
    status = notes.get("capture_status")
    if status in (None, "captured"):
        return None
    return f"{named(status)}: {named(notes.get('capture_reason') or 'without a reason')}"
