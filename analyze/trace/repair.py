"""Get every intact event out of text that is not valid JSON.

Two tools. :func:`repair_text` mends what can be mended without guessing: control bytes and lone
backslashes in strings, bare NaN and Infinity, stray commas, bytes that are not UTF-8.
:func:`walk` decodes event by event, so that one broken event costs that event alone, and finds the
next event behind foreign text (log lines, another process's bytes).
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from analyze.trace.starts import EVENT_KEYS, decode_at, is_cut, is_document, next_event

_CONTROL = re.compile(r"[\x00-\x1f]")
_TOKENS = re.compile(
    r"""(?P<string>"(?:[^"\\]++|\\.)*+")
    |(?P<bare_number>(?<![\w.])[-+]?(?:NaN|Infinity|inf|nan)(?![\w.]))
    |(?P<stray_comma>,(?:\s*+,)++|,(?=\s*[\]}]))
    |(?P<missing_value>:(?=\s*[,}\]]))""",
    re.VERBOSE | re.DOTALL,
)
_NEXT_EVENT = re.compile(rf'\}}\s*(?:,\s*)?(?=\{{\s*"(?:{EVENT_KEYS})"\s*:)')
_END_OF_LIST = re.compile(r'\}\s*(\])\s*(?:,\s*"|\}|\Z)')
_MAX_GUESSES = 4
_MAX_LOST_MEMBERS = 100
_GAP = re.compile(r"[\s,]*")
_MEMBER = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*')

_REPLACEMENT = "\ufffd"


@dataclass
class Repairs:
    """What had to be mended or given up, for the report.

    Attributes:
        mended: repairs by kind: ``control_character``, ``backslash``, ``bare_number``,
            ``stray_comma``, ``missing_comma``, ``missing_value``, ``not_utf8``, ``surrogate``.
        events_repaired: events that were read only after a repair of their own text.
        events_lost: events that stayed unreadable.
        foreign_texts: pieces of text between events that belong to none.
        documents: JSON documents found in the file; more than one means several writers.
        truncated: the text ends before the event list does.
        metadata_broken: the text around the event list is not valid JSON; ``metadata_lost`` names
            the keys that could not be read.
        metadata_lost: see ``metadata_broken``.
    """

    mended: Counter[str] = field(default_factory=Counter)
    events_repaired: int = 0
    events_lost: int = 0
    foreign_texts: int = 0
    documents: int = 1
    truncated: bool = False
    metadata_broken: bool = False
    metadata_lost: list[str] = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether the file was anything but clean JSON."""
        return bool(
            self.mended
            or self.events_repaired
            or self.events_lost
            or self.foreign_texts
            or self.documents > 1
            or self.truncated
            or self.metadata_broken
        )


def to_text(data: bytes, mended: Counter[str]) -> str:
    """Decode UTF-8, with a replacement character for each byte that is not."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        mended["not_utf8"] += 1
        return data.decode(errors="replace")


def repair_text(text: str, mended: Counter[str]) -> str:
    """Return JSON ``text`` with all that can be mended without guessing mended.

    Args:
        text: JSON text, possibly broken.
        mended: counts each repair by kind.
    """

    def replace(match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        if kind == "string":
            return _repair_string(match.group(), mended)
        mended[kind] += 1
        match kind:
            case "bare_number":
                return "null"
            case "missing_value":
                return ": null"
            case _:
                after = text[match.end() : match.end() + 64].lstrip()[:1]
                return "" if after in ("]", "}") else ","

    return _TOKENS.sub(replace, text)


def _repair_string(literal: str, mended: Counter[str]) -> str:
    literal, controls = _CONTROL.subn(lambda m: f"\\u{ord(m.group()):04x}", literal)
    literal, backslashes = _double_lone_backslashes(literal)
    literal, surrogates = _replace_surrogates(literal)
    for kind, count in (
        ("control_character", controls),
        ("backslash", backslashes),
        ("surrogate", surrogates),
    ):
        if count:
            mended[kind] += count
    return literal


def _double_lone_backslashes(literal: str) -> tuple[str, int]:
    if "\\" not in literal:
        return literal, 0
    count = 0

    def escape(match: re.Match[str]) -> str:
        nonlocal count
        pair = match.group()
        if len(pair) > 1 and pair[1] in '"\\/bfnrt':
            return pair
        if len(pair) == 6:
            return pair
        count += 1
        return "\\" + pair

    return re.sub(r"\\u[0-9a-fA-F]{4}|\\.|\\", escape, literal, flags=re.DOTALL), count


def _replace_surrogates(literal: str) -> tuple[str, int]:
    """Replace halves of UTF-16 pairs that stand alone; whole pairs stay."""
    if "\\u" not in literal:
        return literal, 0
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match.group(1) is None:
            return match.group()
        count += 1
        return _REPLACEMENT

    pattern = (
        r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    )
    return re.sub(pattern, replace, literal), count


@dataclass
class Walk:
    """The outcome of :func:`walk`.

    Attributes:
        events: the intact and mended events, in order.
        texts: the JSON text of each: as it stood in the file where it was intact.
        rest: text of a last event that is not complete yet.
        after_list: text behind the end of the event list; None when the list did not end.
    """

    events: list[Any] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rest: str = ""
    after_list: str | None = None

    def add(self, event: object, text: str) -> None:
        """Add one event and its text."""
        self.events.append(event)
        self.texts.append(text)


def walk(text: str, repairs: Repairs, *, final: bool) -> Walk:
    """Decode ``text`` event by event.

    Args:
        text: comma-separated JSON objects, in any state.
        repairs: is told of everything mended or lost.
        final: no more text follows, so an incomplete last event is lost, not waited for.
    """
    result = Walk()
    position = 0
    text = _without_half_surrogates(text, repairs.mended)
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    while True:
        position = _pass_gap(text, position, repairs.mended, after_event=bool(result.events))
        if position >= len(text):
            return result
        if text[position] == "]":
            result.after_list = text[position + 1 :]
            return result
        try:
            event, end = decode_at(decoder, text, position)
        except (ValueError, RecursionError) as error:
            found = _NEXT_EVENT.search(text, position)
            if not final and text[position] == "{" and _may_go_on(text, error, found):
                result.rest = text[position:]
                return result
            position = _pass_broken_event(text, position, found, result, repairs)
        else:
            if is_document(event):
                result.after_list = text[position:]
                return result
            result.add(event, text[position:end])
            position = end


def _may_go_on(text: str, error: Exception, following: re.Match[str] | None) -> bool:
    """Whether an event that is no valid JSON may be, once more of the text is read.

    What follows it is no event where it lies in a list that the event holds.
    """
    if following is None:
        return True
    return is_cut(error) and next_event(text, following.end(), cut_too=False) is None


def ends_list(text: str) -> bool:
    """Whether ``text`` seems to hold the end of the event list."""
    return _END_OF_LIST.search(text) is not None


def _pass_gap(text: str, position: int, mended: Counter[str], *, after_event: bool) -> int:
    """Pass over white space and commas; note where these are not what stands between events."""
    gap = _GAP.match(text, position)
    end = gap.end() if gap else position
    commas = text.count(",", position, end)
    if end >= len(text):
        return end
    expected = 1 if after_event and text[end] == "{" else 0
    if commas > expected:
        mended["stray_comma"] += 1
    elif commas < expected:
        mended["missing_comma"] += 1
    return end


def _refuse_constant(name: str) -> None:
    """Let NaN and Infinity go through the repair that counts them."""
    raise ValueError(name)


def _without_half_surrogates(text: str, mended: Counter[str]) -> str:
    text, count = _replace_surrogates(text)
    if count:
        mended["surrogate"] += count
    return text


def _pass_broken_event(
    text: str, position: int, following: re.Match[str] | None, result: Walk, repairs: Repairs
) -> int:
    """Mend the event at ``position`` or give it up; return where to go on."""
    if text[position] != "{":
        repairs.foreign_texts += 1
        return _next_start(text, position)
    end = following.start() + 1 if following else _next_start(text, position + 1)
    mended: Counter[str] = Counter()
    mended_text = repair_text(text[position:end], mended)
    try:
        event = orjson.loads(mended_text)
    except (orjson.JSONDecodeError, RecursionError):
        if following is None:
            return _pass_last_event(text, position, result, repairs)
        repairs.events_lost += 1
        return _next_start(text, position + 1)
    repairs.mended.update(mended)
    repairs.events_repaired += 1
    result.add(event, mended_text)
    return end


def _pass_last_event(text: str, position: int, result: Walk, repairs: Repairs) -> int:
    """Handle a broken event that no other event follows: the end of the list may follow it."""
    for closing in islice(_END_OF_LIST.finditer(text, position), _MAX_GUESSES):
        mended: Counter[str] = Counter()
        mended_text = repair_text(text[position : closing.start(1)], mended)
        try:
            event = orjson.loads(mended_text)
        except (orjson.JSONDecodeError, RecursionError):
            continue
        repairs.mended.update(mended)
        repairs.events_repaired += 1
        result.add(event, mended_text)
        return closing.start(1)
    if position + 1 < len(text):
        repairs.events_lost += 1
    return _next_start(text, position + 1)


def _next_start(text: str, position: int) -> int:
    """Return where the next event begins, or else where the list ends."""
    event = next_event(text, position)
    if event is not None:
        return event
    end_of_list = _END_OF_LIST.search(text, position)
    return end_of_list.start(1) if end_of_list else len(text)


def read_members(text: str, repairs: Repairs) -> dict[str, Any]:
    """Read the members of a JSON object whose text is broken somewhere.

    A member whose value is broken is left out and named in ``repairs.metadata_lost``.
    """
    repairs.metadata_broken = True
    members: dict[str, Any] = {}
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
    position = 0
    while found := _MEMBER.search(text, position):
        try:
            members[found.group(1)], position = decoder.raw_decode(text, found.end())
        except (json.JSONDecodeError, RecursionError):
            repairs.metadata_lost.append(found.group(1))
            position = found.end()
            if len(repairs.metadata_lost) >= _MAX_LOST_MEMBERS:
                break
    return members
