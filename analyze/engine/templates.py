"""Message templates: ``{name}`` and ``{name:FORMAT}`` with a closed set of formats.

``{n:copy|copies}`` writes the noun that fits a number, and what stands between ``[?`` and ``?]`` is
left out where a value in it is not known. A parser of its own instead of ``str.format``: no
attribute or index access, no widths, and elsewhere an unknown value is written as ``unknown``.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from analyze.engine.problems import did_you_mean
from analyze.engine.syntax import ExpressionError
from analyze.engine.values import Kind
from analyze.words import UNKNOWN, duration, printable, share, size, whole

MAX_TEMPLATE = 2000
"""Characters of one template."""

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|\[\?|\?\]")
_NOUN = re.compile(r"[^|]+\|[^|]+")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


class Field(NamedTuple):
    """A place to insert a value: the name of the value and the format, empty for none."""

    name: str
    format: str = ""


class Template(NamedTuple):
    """A parsed template: texts, the fields between them, and parts that may be left out."""

    parts: "tuple[str | Field | Template, ...]"

    @property
    def fields(self) -> tuple[Field, ...]:
        """The places where it inserts values, in order."""
        found: list[Field] = []
        for part in self.parts:
            found += [part] if isinstance(part, Field) else []
            found += part.fields if isinstance(part, Template) else []
        return tuple(found)

    @property
    def names(self) -> set[str]:
        """Names of the values it inserts."""
        return {field.name for field in self.fields}

    def render(self, values: Mapping[str, Any]) -> str:
        """Insert values; missing and null ones are written as ``unknown``."""
        return "".join(_render(part, values) for part in self.parts)


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
    whole_text: list[str | Field | Template] = []
    parts, opened_at = whole_text, -1
    position = 0
    for match in _TOKEN.finditer(text):
        parts.append(text[position : match.start()])
        position = match.end()
        mark = match[0]
        if mark in ("{{", "}}"):
            parts.append(mark[0])
        elif len(mark) == 1:
            raise ExpressionError(f"a single '{mark}'", match.start(), 1, f"write '{mark * 2}'")
        elif mark == "[?":
            _check_bracket(opened_at < 0, match)
            parts, opened_at = [], match.start()
        elif mark == "?]":
            _check_bracket(opened_at >= 0, match)
            whole_text.append(Template(tuple(part for part in parts if part)))
            parts, opened_at = whole_text, -1
        else:
            parts.append(_field(match, kinds))
    if opened_at >= 0:
        raise ExpressionError("'[?' is not closed", opened_at, 2, "close it with ?]")
    parts.append(text[position:])
    return Template(tuple(part for part in parts if part))


def _check_bracket(fits: bool, match: re.Match[str]) -> None:
    if not fits:
        message = f"'{match[0]}' does not fit here"
        raise ExpressionError(message, match.start(), 2, "write [? ... ?], one inside none other")


def _render(part: str | Field | Template, values: Mapping[str, Any]) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Field):
        return _insert(part, values.get(part.name))
    is_known = all(not _is_unknown(values.get(name)) for name in part.names)
    return part.render(values) if is_known else ""


def _is_unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _field(match: re.Match[str], kinds: Mapping[str, Kind]) -> Field:
    name, colon, form = match[1].partition(":")
    start, length = match.start() + 1, max(len(match[1]), 1)
    if not _FIELD.fullmatch(name):
        message = f"'{{{match[1][:40]}}}' is not a name"
        raise ExpressionError(message, start, length, "write {name} or {name:FORMAT}")
    if name not in kinds:
        alike = [word for word in kinds if ("." in word) == ("." in name)]
        raise ExpressionError(f"unknown name '{name}'", start, len(name), did_you_mean(name, alike))
    if colon and form not in FORMATS and not _NOUN.fullmatch(form):
        known = f"known: {' '.join(FORMATS)} singular|plural"
        raise ExpressionError(f"unknown format '{form[:20]}'", start, length, known)
    if form and kinds[name] not in (Kind.NUMBER, Kind.NULL):
        message = f"the format '{form}' needs a number, but '{name}' is {kinds[name].value}"
        raise ExpressionError(message, start, length)
    return Field(name, form)


def _insert(field: Field, value: Any) -> str:
    if _is_unknown(value):
        return UNKNOWN
    if field.format and isinstance(value, int | float):
        return _formatted(value, field.format)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return printable(str(value))


def _formatted(value: float, form: str) -> str:
    if form in FORMATS:
        return FORMATS[form](value)
    singular, plural = form.split("|")
    return singular if value == 1 else plural


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
