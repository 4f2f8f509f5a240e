"""Find the event list in a stream of JSON text and cut it into event-aligned chunks.

The cuts are guesses: the text between two events, learnt from the first two, is looked up near the
chunk size. A wrong guess (inside a nested list, inside a string) leaves unbalanced JSON, which the
decoder refuses, so no wrong cut can pass unnoticed.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from analyze.trace.starts import EVENT_LIST, next_event, pass_members

CHUNK_BYTES = 128 << 10
"""Text decoded at a time. Measured: 32 KiB to 256 KiB are equal, 4 MiB is two times slower."""

MAX_HEADER_BYTES = 64 << 20
"""Longest text accepted before the event list, after it, or within one event."""

_LIMIT = f"{MAX_HEADER_BYTES >> 20} MiB"

_MAX_MEMBER_BYTES = 8 << 20
"""Longest member that is known to be one; what lies inside a longer one may be taken for events."""

_BETWEEN_EVENTS = re.compile(rb"\}\s*(?:,\s*)?\{")
_LEARNING_WINDOW = 64 << 10


class TooLongError(Exception):
    """Some piece of text is longer than any trace's; the message says which."""


class _Start(NamedTuple):
    """Where events begin: the text before ``outside`` is not theirs, the first is at ``events``.

    Both count from the first unread byte. They are the same where there is no list, only an event
    itself, because the key of the list is damaged.
    """

    outside: int
    events: int


class TraceText:
    """The text of one trace, consumed from front to back.

    Attributes:
        form: ``"object"`` (``{"traceEvents": [...]}``) or ``"array"`` (a bare event list).
        outside: the text around the event list, with an empty list in its place.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._buffer = b""
        self._position = 0
        self._exhausted = False
        self._chunk_bytes = CHUNK_BYTES
        self._next_chunk_bytes = CHUNK_BYTES
        self._separator: bytes | None = None
        self._gap = b""
        self.form = ""
        self.outside = b""

    def find_events(self) -> bool:
        """Advance to the first event; False when the text holds no event list.

        Raises:
            TooLongError: no event list within the first ``MAX_HEADER_BYTES``.
        """
        first = self._first_character()
        if first == b"[":
            self.form = "array"
            self._position += 1
            return True
        self.form = "object"
        members, list_follows = self._pass_members()
        start = self._find_start(members if list_follows else 0)
        if start is None:
            return False
        list_end = b"]" if start.events > start.outside else b""
        self.outside = self._take(start.events) + list_end
        return True

    def head(self, size: int = _LEARNING_WINDOW) -> bytes:
        """Return the unread text, about ``size`` bytes of it at most."""
        self._fill(size)
        return self._buffer[self._position : self._position + size]

    def next_chunk(self) -> memoryview:
        """Return the next events, without the comma after them; empty at the end of the text."""
        self._chunk_bytes, self._next_chunk_bytes = self._next_chunk_bytes, CHUNK_BYTES
        self._fill(self._chunk_bytes)
        end, following = self._cut(self._position + self._chunk_bytes)
        chunk = memoryview(self._buffer)[self._position : end]
        self._gap = self._buffer[end:following]
        self._position = following
        return chunk

    def push_back(self, text: bytes) -> None:
        """Return ``text`` to the front, to be read again together with more of what follows it."""
        self._next_chunk_bytes = 2 * max(len(text), self._chunk_bytes)
        self._buffer = text + self._gap + self._buffer[self._position :]
        self._position = 0
        self._gap = b""

    def leave_events(self, text: bytes) -> bool:
        """Take ``text`` and all that follows as text after the event list.

        Returns:
            True when another process's events follow in it; reading then goes on with these.

        Raises:
            TooLongError: more than ``MAX_HEADER_BYTES`` of text.
        """
        self.push_back(text)
        members, _ = self._pass_members()
        start = self._find_start(members)
        if start is None:
            self.outside += self._take(len(self._buffer) - self._position)
            return False
        self.outside += self._take(start.outside)
        self._position += start.events - start.outside
        return True

    @property
    def exhausted(self) -> bool:
        """Whether all text has been handed out."""
        return self._exhausted and self._position >= len(self._buffer)

    def _first_character(self) -> bytes:
        while True:
            self._fill(1)
            rest = self._buffer[self._position :]
            stripped = rest.lstrip()
            self._position += len(rest) - len(stripped)
            if stripped or self._exhausted:
                return stripped[:1]

    def _take(self, size: int) -> bytes:
        start = self._position
        self._position += size
        return self._buffer[start : self._position]

    def _pass_members(self) -> tuple[int, bool]:
        """Return how long the whole members from here on are, and whether the list follows."""
        size, end = CHUNK_BYTES, 0
        while True:
            text = self._window(size)
            end, list_follows, is_cut = pass_members(text, end)
            if not is_cut or len(text) < size or size >= _MAX_MEMBER_BYTES:
                return end, list_follows
            size *= 2

    def _find_start(self, offset: int) -> _Start | None:
        """Search all text behind ``offset``, reading as much as it takes.

        What an object is shows in the text that follows, so some of that is always read.
        """
        size = CHUNK_BYTES
        while True:
            text = self._window(offset + size)
            start = _start_in(text, offset)
            if len(text) < offset + size or (start and len(text) - start.events >= CHUNK_BYTES):
                return start
            size *= 2
            if size > MAX_HEADER_BYTES:
                raise TooLongError(f"more than {_LIMIT} of text outside the event list")

    def _window(self, size: int) -> str:
        """Return ``size`` bytes of unread text, or all that is left, one character for each."""
        return self.head(size).decode("latin-1")

    def _cut(self, limit: int) -> tuple[int, int]:
        """Return where a chunk ends and where the next one starts."""
        if self._exhausted and limit >= len(self._buffer):
            return len(self._buffer), len(self._buffer)
        separator = self._learn_separator()
        if separator:
            found = self._buffer.rfind(separator, self._position, limit)
            if found >= 0:
                return found + 1, found + len(separator) - 1
        return self._cut_anywhere(limit)

    def _cut_anywhere(self, limit: int) -> tuple[int, int]:
        """Cut at the last place in the chunk, or the first after it, that may divide events."""
        places = list(_BETWEEN_EVENTS.finditer(self._buffer, self._position, limit))
        last = places[-1] if places else None
        size = CHUNK_BYTES
        while last is None:
            last = _BETWEEN_EVENTS.search(self._buffer, self._position)
            if last is None and self._exhausted:
                return len(self._buffer), len(self._buffer)
            size *= 2
            if size > MAX_HEADER_BYTES:
                raise TooLongError(f"one event is longer than {_LIMIT}")
            if last is None:
                self._fill(size)
        return last.start() + 1, last.end() - 1

    def _learn_separator(self) -> bytes | None:
        if self._separator is None:
            window = self._buffer[self._position : self._position + _LEARNING_WINDOW]
            found = _BETWEEN_EVENTS.search(window)
            self._separator = found.group() if found else None
        return self._separator

    def _fill(self, size: int) -> None:
        """Have ``size`` bytes of unread text in the buffer, or all that is left."""
        if len(self._buffer) - self._position >= size:
            return
        parts = [self._buffer[self._position :]]
        length = len(parts[0])
        while length < size:
            block = next(self._blocks, None)
            if block is None:
                self._exhausted = True
                break
            parts.append(block)
            length += len(block)
        self._buffer = b"".join(parts)
        self._position = 0


def _start_in(text: str, offset: int) -> _Start | None:
    event = next_event(text, offset) if '"ph"' in text else None
    event_list = EVENT_LIST.search(text, offset)
    if event_list and (event is None or event_list.start() < event):
        return _Start(event_list.start(), event_list.end())
    return None if event is None else _Start(event, event)
