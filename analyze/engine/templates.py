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
from analyze.words import UNKNOWN, duration, printable, share, size, whole

MAX_TEMPLATE = 2000
"""Characters of one inserted value."""

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


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
        alike = [word for word in kinds if ("." in word) == ("." in name)]
        raise ExpressionError(f"unknown name '{name}'", start, len(name), did_you_mean(name, alike))
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
    return printable(str(value))


FORMATS: Mapping[str, Callable[[float], str]] = {
    "us": duration,
    "pct": share,
    "int": whole,
    "bytes": size,
    ".1f": lambda value: f"{value:.1f}",
    ".2f": lambda value: f"{value:.2f}",
    ",": lambda value: f"{value:,.0f}",
}
"""How numbers are written: times in microseconds, shares 0 to 1, sizes in bytes."""
