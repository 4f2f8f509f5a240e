"""The members that a copy has beside its events: what was kept, and what its source lost."""

from analyze.tables import lost, trimmed

_KEYS = (trimmed.KEY, lost.KEY)


def first_of(member: str) -> str | None:
    """Return the name of the first note of the kind that a member is; None for another member."""
    return next((key for key in _KEYS if _is_note(member, key)), None)


def _is_note(member: str, key: str) -> bool:
    return member == key or (
        member.startswith(f"{key}_") and member.removeprefix(f"{key}_").isdecimal()
    )
