"""Where the events of a trace begin, also in text that is not valid JSON.

A program may add any metadata (``add_metadata_json``), so what looks like an event or like the
event list may be part of a member. Whole members are therefore passed over
(:func:`pass_members`), and only what is left is searched (:func:`next_event`).
"""

import json
import re
from typing import Any, NamedTuple

EVENT_KEYS = "ph|cat|name|pid|tid|ts|dur|id|args|s|bp"
"""The keys of an event, as a pattern; any may be its first."""

EVENT_LIST = re.compile(r'"traceEvents"\s*:\s*\[', re.ASCII)

_EVENT_START = re.compile(rf'\{{\s*"({EVENT_KEYS})"\s*:', re.ASCII)
_LIST_MEMBER = re.compile(rf"\s*[{{,]\s*{EVENT_LIST.pattern}", re.ASCII)
_MEMBER = re.compile(r'\s*[{,]\s*"(?:[^"\\]|\\.)*+"\s*:\s*', re.ASCII | re.DOTALL)
_LONGEST_KEY = 1 << 10
_LONGEST_LITERAL = len("-Infinity")
_INDENTATION = 64
_NEAR = 16 << 10
"""Longer than nearly every event."""


class Members(NamedTuple):
    """The outcome of :func:`pass_members`.

    Attributes:
        end: where the last whole member ends.
        list_follows: the next member is the event list.
        is_cut: the next member goes on beyond the text.
    """

    end: int
    list_follows: bool = False
    is_cut: bool = False


def pass_members(text: str, position: int) -> Members:
    """Pass over whole members of a JSON object, each with the brace or comma before it."""
    decoder = json.JSONDecoder(strict=False)
    while member := _MEMBER.match(text, position):
        if _LIST_MEMBER.match(text, position):
            return Members(position, list_follows=True)
        try:
            _, end = decoder.raw_decode(text, member.end())
        except json.JSONDecodeError as error:
            return Members(position, is_cut=is_cut(error))
        except RecursionError:
            return Members(position)
        if end == len(text):
            return Members(position, is_cut=True)
        position = end
    return Members(position, is_cut=len(text) - position < _LONGEST_KEY)


def next_event(text: str, position: int, *, cut_too: bool = True) -> int | None:
    """Return where the next event begins: an object with ``ph`` that is no key's value.

    Args:
        text: any text.
        position: where to start.
        cut_too: take objects that go on beyond the text for events.
    """
    decoder = json.JSONDecoder(strict=False)
    while found := _EVENT_START.search(text, position):
        is_event, position = _look_at(decoder, text, found, cut_too=cut_too)
        if is_event:
            return found.start()
    return None


def _look_at(
    decoder: json.JSONDecoder, text: str, found: re.Match[str], *, cut_too: bool
) -> tuple[bool, int]:
    """Return whether the object found is an event, and where to go on if not."""
    inside = found.start() + 1
    if _is_a_value(text, found.start()):
        return False, inside
    begins_with_ph = found.group(1) == "ph"
    try:
        value, end = decode_at(decoder, text, found.start())
    except json.JSONDecodeError as error:
        return begins_with_ph or (cut_too and is_cut(error)), inside
    except RecursionError:
        return begins_with_ph, inside
    return "ph" in value, end


def _is_a_value(text: str, position: int) -> bool:
    """Whether what stands at ``position`` is the value of a key, not an event."""
    return text[max(0, position - _INDENTATION) : position].rstrip()[-1:] == ":"


def decode_at(decoder: json.JSONDecoder, text: str, position: int) -> tuple[Any, int]:
    """Decode the value at ``position``; return it and where it ends.

    It works on a copy of the text from there on, because an error counts the lines before it.

    Raises:
        ValueError: there is no valid JSON.
    """
    near = text[position : position + _NEAR]
    try:
        value, length = decoder.raw_decode(near)
    except ValueError as error:
        if len(near) < _NEAR or not is_cut(error):
            raise
        value, length = decoder.raw_decode(text[position:])
    return value, position + length


def is_document(value: object) -> bool:
    """Whether a value is a whole trace, which stands among the events of one that was cut."""
    return isinstance(value, dict) and "traceEvents" in value and "ph" not in value


def is_cut(error: Exception) -> bool:
    """Whether a value is not valid JSON only because the text ends before it does."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = len(error.doc) - error.pos
    return rest <= _LONGEST_LITERAL or error.msg.startswith("Unterminated string")
