"""How numbers and names are worded in tables and messages."""

import difflib
from collections.abc import Iterable

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_MAX_REASON = 300


def duration(microseconds: float) -> str:
    """Word a duration with three significant digits: ``146.8 us``, ``1.96 ms``, ``2.50 s``."""
    if microseconds < 1_000:
        return f"{microseconds:.1f} us"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.2f} ms"
    return f"{microseconds / 1_000_000:.2f} s"


def size(count: int) -> str:
    """Word a number of bytes in binary units: ``1.5 GiB``."""
    amount = float(count)
    for unit in _BYTE_UNITS[:-1]:
        if abs(amount) < 1024:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {_BYTE_UNITS[-1]}"


def one_line(text: str) -> str:
    """Put a text of unknown origin on one line of bounded length, without control characters."""
    flat = "".join(letter if letter.isprintable() else " " for letter in text)
    flat = " ".join(flat.split())
    return flat if len(flat) <= _MAX_REASON else f"{flat[: _MAX_REASON - 1]}…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest known word, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
