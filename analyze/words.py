"""Words and numbers as people read them, safe to print whatever a trace contains."""

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches

_CONTROLS = r"\x00-\x1f\x7f-\x9f"
_DIRECTIONS = r"\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = r"\ufeff\U000e0000-\U000e007f"
"""The byte order mark, and tags, which can spell any text without a glyph."""

UNPRINTABLE = re.compile(rf"[{_CONTROLS}{_DIRECTIONS}{_INVISIBLE}\ud800-\udfff]")
"""What a terminal obeys, or a reader does not see."""

_CI_COMMAND = re.compile(r"^(\s*)(?=::)|(?<=#)(?=#\[)", re.MULTILINE)
"""What a CI runner takes for a command: ``::`` that begins a line, ``##[`` anywhere."""

_FOUR_DIGITS = 999.5
"""A number from here on rounds to four digits: three would be written with an exponent."""

_VAST = 1e12
"""A number from here on is no measurement but a slip: it is worded in a few characters."""

MAX_NAME = 400
MAX_WORD = 100
UNKNOWN = "unknown"


def visible(text: str) -> str:
    """Return ``text`` in one line, with control, direction and tag characters made visible.

    Names come from the trace: an escape sequence in one must not reach the terminal.
    """
    return UNPRINTABLE.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def inert_to_ci(text: str) -> str:
    """Return lines of text in which a CI runner sees no command, such as ``::error::``.

    A backslash comes before, which a shell passes over: the name of a file can still be copied.
    """
    return _CI_COMMAND.sub(lambda found: f"{found.group(1) or ''}\\", text)


def aligned(text: str) -> str:
    """Return ``text`` safe to print with every character still in its column."""
    return UNPRINTABLE.sub("\ufffd", text.replace("\t", " "))


def printable(text: str) -> str:
    """Return ``text`` made visible, and cut where it is longer than ``MAX_NAME``."""
    shown = visible(text[: MAX_NAME + 1])
    return shown if len(shown) <= MAX_NAME else shown[: MAX_NAME - 1] + "\u2026"


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that ``word`` is probably a misspelling of, if there is one."""
    return next(iter(get_close_matches(word[:MAX_WORD], list(known), n=1)), None)


def duration(microseconds: float | None) -> str:
    """Word a time given in microseconds, in the unit that suits it, with three digits."""
    if microseconds is None:
        return UNKNOWN
    for limit, factor, unit in ((999.5, 1.0, "us"), (999.5e3, 1e-3, "ms")):
        if abs(microseconds) < limit:
            return f"{_three_digits(microseconds * factor)} {unit}"
    return f"{_three_digits(microseconds * 1e-6)} s"


def share(value: float | None) -> str:
    """Word a share of 0 to 1; what is neither nothing nor all never reads as that."""
    if value is None:
        return UNKNOWN
    percent = value * 100
    if 0 < percent < 1:
        return "<1 %"
    if 99 < percent < 100:
        return ">99 %"
    return f"{whole(percent)} %"


def percentage(value: float | None) -> str:
    """Word a percentage with three digits; what is not nothing but below 1 % is said to be so."""
    if value is None:
        return UNKNOWN
    return "<1 %" if 0 < value < 1 else f"{_three_digits(value)} %"


def size(count: float | None) -> str:
    """Word a number of bytes in binary units, with three digits."""
    if count is None:
        return UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1023.5:
            return f"{_three_digits(count)} {unit}"
        count /= 1024
    return f"{_three_digits(count)} TiB"


def whole(value: float) -> str:
    """Word a number rounded half away from zero, as people do; in short where it is vast."""
    if abs(value) >= _VAST:
        return f"{value:.3g}"
    return str(int(math.copysign(math.floor(abs(value) + 0.5), value)))


def unitless(value: float) -> str:
    """Word a number without a unit, such as waves or how many times, with three digits."""
    return f"{value:.3g}" if abs(value) < _FOUR_DIGITS or abs(value) >= _VAST else f"{value:,.0f}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Word a count with its noun: ``1 step``, ``3 steps``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def amount(count: int | None) -> str:
    """Word a count that may be unknown."""
    return UNKNOWN if count is None else f"{count:,}"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= _VAST:
        return f"{value:.3g}"
    if magnitude >= 99.95 or value == 0:
        return f"{value:.0f}"
    text = f"{value:.{1 if magnitude >= 9.995 else 2}f}"
    if float(text) == 0:
        return f"{value:.3g}"
    return text.rstrip("0").rstrip(".")
