"""JSON: one object for one trace, a list for several. ``analyze schema`` documents the keys."""

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

from analyze.engine.result import TraceReport
from analyze.report.formats import Rendering
from analyze.tables.noted import fits_int64
from analyze.words import UNPRINTABLE, visible

_SURROGATES = re.compile(r"[\ud800-\udfff]+")
_ACTIVE = re.compile(rf"(?!\n){UNPRINTABLE.pattern}|(?<=#)#(?=\[)")
_OLD_COMMAND = "##["
_DELETE = "\x7f"
"""The one character of ASCII that a terminal obeys and JSON does not escape."""


def write_json(reports: Sequence[TraceReport], _: Rendering) -> str:
    """Return reports of findings as JSON; the format ``json``."""
    return to_json(list(map(result_data, reports)))


def result_data(report: TraceReport) -> dict[str, Any]:
    """Return a report as :meth:`~TraceReport.to_dict` does, for writing only: nothing is copied.

    Views hold thousands of numbers, and copying them takes several times as long as writing them.
    """
    data = {field.name: getattr(report, field.name) for field in fields(TraceReport)}
    return {"schema_version": data.pop("schema_version"), **data}


def to_json(results: Sequence[dict[str, Any]]) -> str:
    """Return the results as indented JSON text that ends with a newline."""
    data = results[0] if len(results) == 1 else list(results)
    return inert_json(json_bytes(data, orjson.OPT_INDENT_2).decode()) + "\n"


def inert_json(text: str) -> str:
    """Return JSON text, of the same value, that acts on no terminal and on no CI runner.

    What a terminal obeys or a reader does not see is written as an escape, so is the older form of
    a CI command (``##[``), and the line separators of Unicode are: however a reader splits the
    text, its lines stay what they are.

    Args:
        text: JSON whose only control characters outside of texts are ends of lines.
    """
    if text.isascii() and _DELETE not in text and _OLD_COMMAND not in text:
        return text
    return _ACTIVE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    """Return the escapes of a character: one beyond 16 bits has two (RFC 8259, section 7)."""
    units = found.group().encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def json_bytes(data: Any, option: int = 0) -> bytes:
    """Return plain data as JSON in UTF-8, whatever its texts hold.

    NaN and infinite numbers become null. Lone surrogates, as a file name that is not UTF-8 has
    them, become visible; whole numbers beyond 64 bits, which JSON readers would round, floats.

    Args:
        data: dicts with text keys, dataclasses, lists, texts, numbers, booleans, null.
        option: of orjson.
    """
    try:
        return orjson.dumps(data, option=option)
    except TypeError:  # of hardly any file; looking through each for what is odd would cost more
        return orjson.dumps(_encodable(data), option=option)


def visible_surrogates(text: str) -> str:
    """Return text without lone surrogates, which no encoding can hold: they are made visible."""
    return _SURROGATES.sub(lambda found: visible(found.group()), text)


def _encodable(data: Any) -> Any:
    match data:
        case dict():
            return {visible_surrogates(key): _encodable(value) for key, value in data.items()}
        case list() | tuple():
            return [_encodable(item) for item in data]
        case str():
            return visible_surrogates(data)
        case int() if not fits_int64(data):
            return float(data)
        case _:
            return _encodable(vars(data)) if is_dataclass(data) else data
