"""Values of a file's metadata, each as what it should be, or null where it is something else."""

from collections.abc import Iterator, Mapping
from typing import Any

_INT64 = 1 << 63
_MOST_NOTES = 20


def fits_int64(value: int) -> bool:
    """Whether a table can hold a number."""
    return -_INT64 <= value < _INT64


def integer(value: object) -> int | None:
    """Return a whole number that a table can hold."""
    return value if type(value) is int and fits_int64(value) else None


def nanoseconds(microseconds: object) -> int | None:
    """Return a time that was noted in microseconds."""
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    return integer(round(microseconds * 1000)) if abs(microseconds) < _INT64 else None


def amount(value: int | None) -> int | None:
    """Return a number that can be an amount, which is never negative."""
    return None if value is None or value < 0 else value


def text(value: object) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def flag(value: object) -> bool | None:
    """Return true or false."""
    return value if isinstance(value, bool) else None


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def key_of(key: str, number: int) -> str:
    """Return the name of a trace's note of this number, from 1: a copy of a copy has several."""
    return key if number == 1 else f"{key}_{number}"


def notes(metadata: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the notes of this name in the members beside the events, the latest last."""
    for number in range(1, _MOST_NOTES + 1):
        note = metadata.get(key_of(key, number))
        if not isinstance(note, Mapping):
            return
        yield note


def free_key(metadata: Mapping[str, Any], key: str) -> str:
    """Return the name for a note; the copy of a copy keeps the earlier notes."""
    number = 1
    while key_of(key, number) in metadata:
        number += 1
    return key_of(key, number)
