"""Words and numbers as people read them, safe to print whatever a trace contains."""

import re

_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

MAX_NAME = 400


def printable(text: str) -> str:
    """Return ``text`` with control characters and direction marks made visible, and bounded.

    Names come from the trace: an escape sequence in one must not reach the terminal.
    """
    visible = _UNPRINTABLE.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
    return visible if len(visible) <= MAX_NAME else visible[: MAX_NAME - 1] + "\u2026"


def duration(microseconds: float | None) -> str:
    """Word a duration given in microseconds, in us, ms or s."""
    if microseconds is None:
        return "unknown"
    size = abs(microseconds)
    if size >= 1e6:
        return f"{microseconds / 1e6:.2f} s"
    if size >= 1e4:
        return f"{microseconds / 1e3:.1f} ms"
    if size >= 1e3:
        return f"{microseconds / 1e3:.2f} ms"
    return f"{microseconds:.1f} us"


def share(value: float | None) -> str:
    """Word a share of 0 to 1 as a percentage."""
    return "unknown" if value is None else percentage(value * 100)


def percentage(value: float | None) -> str:
    """Word a percentage; what is not nothing but below 1 % is said to be so."""
    if value is None:
        return "unknown"
    if 0 < value < 1:
        return "<1 %"
    return f"{value:.0f} %"


def size(count: float | None) -> str:
    """Word a number of bytes in binary units."""
    if count is None:
        return "unknown"
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Word a count with its noun: ``1 step``, ``3 steps``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
