"""Message templates: ``{name}`` and ``{name:FORMAT}`` with a closed set of formats.

A parser of its own instead of ``str.format``: no attribute or index access, no widths, and a value
that is not known is written as ``unknown``.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analyze.engine.problems import did_you_mean
from analyze.engine.syntax import ExpressionError
from analyze.engine.values import Kind

UNKNOWN = "unknown"
MAX_TEMPLATE = 2000
MAX_VALUE = 200
"""Characters of one inserted value."""

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True)
class Field:
    """A place to insert a value: the name of the value and the format, empty for none."""

    name: str
    format: str = ""


@dataclass(frozen=True)
class Template:
    """A parsed template: texts and the fields between them."""

    parts: tuple[str | Field, ...]

    @property
    def names(self) -> set[str]:
        """Names of the values it inserts."""
        return {part.name for part in self.parts if isinstance(part, Field)}

    def render(self, values: Mapping[str, Any]) -> str:
        """Insert values; missing and null ones are written as ``unknown``."""
        return "".join(
            part if isinstance(part, str) else _insert(part, values.get(part.name))
            for part in self.parts
        )


def parse_template(text: str, kinds: Mapping[str, Kind]) -> Template:
    """Parse a template and check its names and formats.

    Args:
        text: as written; ``{{`` and ``}}`` are braces.
        kinds: kind of each value that may be inserted.

    Raises:
        ExpressionError: with the position of the mistake.
    """
    if len(text) > MAX_TEMPLATE:
        raise ExpressionError(f"a template of {len(text)} characters; at most {MAX_TEMPLATE}")
    parts: list[str | Field] = []
    position = 0
    for match in _TOKEN.finditer(text):
        parts.append(text[position : match.start()])
        position = match.end()
        token = match[0]
        if token in ("{{", "}}"):
            parts.append(token[0])
        elif len(token) == 1:
            raise ExpressionError(f"a single '{token}'", match.start(), 1, f"write '{token * 2}'")
        else:
            parts.append(_field(match, kinds))
    parts.append(text[position:])
    return Template(tuple(part for part in parts if part))


def _field(match: re.Match[str], kinds: Mapping[str, Kind]) -> Field:
    name, colon, form = match[1].partition(":")
    start, length = match.start() + 1, max(len(match[1]), 1)
    if not _FIELD.fullmatch(name):
        message = f"'{{{match[1][:40]}}}' is not a name"
        raise ExpressionError(message, start, length, "write {name} or {name:FORMAT}")
    if name not in kinds:
        raise ExpressionError(f"unknown name '{name}'", start, len(name), did_you_mean(name, kinds))
    if colon and form not in FORMATS:
        known = f"known: {' '.join(FORMATS)}"
        raise ExpressionError(f"unknown format '{form[:20]}'", start, length, known)
    if form and kinds[name] not in (Kind.NUMBER, Kind.NULL):
        message = f"the format '{form}' needs a number, but '{name}' is {kinds[name].value}"
        raise ExpressionError(message, start, length)
    return Field(name, form)


def _insert(field: Field, value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if field.format and isinstance(value, int | float):
        return FORMATS[field.format](value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return _clean(str(value))


def _clean(text: str) -> str:
    """Return text of a trace in one printable line of bounded length."""
    printable = "".join(char if char.isprintable() else "?" for char in text[: MAX_VALUE + 1])
    return printable if len(text) <= MAX_VALUE else printable[: MAX_VALUE - 1] + _ELLIPSIS


def format_time(microseconds: float) -> str:
    """Write a time in the unit that suits it, with three digits."""
    size = abs(microseconds)
    for limit, factor, unit in ((999.5, 1.0, "us"), (999.5e3, 1e-3, "ms")):
        if size < limit:
            return f"{_three_digits(microseconds * factor)} {unit}"
    return f"{_three_digits(microseconds * 1e-6)} s"


def format_share(share: float) -> str:
    """Write a share as a whole percentage; what is neither nothing nor all never reads as that."""
    percent = share * 100
    if 0 < percent < 1:
        return "<1 %"
    if 99 < percent < 100:
        return ">99 %"
    return f"{_whole(percent)} %"


def format_bytes(size: float) -> str:
    """Write a size in binary units, with three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1023.5:
            return f"{_three_digits(size)} {unit}"
        size /= 1024
    return f"{_three_digits(size)} TiB"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95 or value == 0:
        return f"{value:.0f}"
    digits = 1 if size >= 9.995 else 2
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return f"{value:.3g}"
    return text.rstrip("0").rstrip(".")


def _whole(value: float) -> str:
    """Round half away from zero, as people do."""
    return str(int(math.copysign(math.floor(abs(value) + 0.5), value)))


FORMATS: Mapping[str, Callable[[float], str]] = {
    "us": format_time,
    "pct": format_share,
    "int": _whole,
    "bytes": format_bytes,
    ".1f": lambda value: f"{value:.1f}",
    ".2f": lambda value: f"{value:.2f}",
    ",": lambda value: f"{value:,.0f}",
}
"""How numbers are written: times in microseconds, shares 0 to 1, sizes in bytes."""
