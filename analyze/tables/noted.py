"""Values of a file's metadata, each as what it should be, or null where it is something else."""

from collections.abc import Mapping
from typing import Any

_INT64 = 1 << 63


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


def text(value: object) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def flag(value: object) -> bool | None:
    """Return true or false."""
    return value if isinstance(value, bool) else None


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}
