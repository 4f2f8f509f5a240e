"""Read a trace for copying: every intact event with its own JSON text, in the order of the file.

For commands that write a trace from a trace. The text of an event is the file's own, so that a
``ts`` such as ``1729003456789012.345`` keeps every digit, unless the event itself had to be mended.
Damaged files go down the same repair ladder as in :mod:`analyze.trace.reader`: what that reads,
this yields. ::

    with raw_events(path) as trace, write_trace(output, trace.head) as document:
        for text, event in trace:
            document.write(text)
        document.tail = trace.tail()

Memory is bounded by the text of a few chunks. The writer is
:func:`analyze.report.trace_file.write_trace`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from analyze.trace.decode import ChunkDecoder, with_all_digits
from analyze.trace.reader import Progress, TraceReading, paused_garbage_collector
from analyze.trace.repair import Repairs, repair_text
from analyze.trace.source import SourceReport, open_source

RawEvent = tuple[bytes, dict[str, Any]]
"""The JSON text of an event (UTF-8, valid), and the event decoded from it."""

LIST_KEY = b'"traceEvents"'
_END = b"\n}\n"

_BETWEEN_EVENTS = re.compile(rb"\}\s*,\s*\{")
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],]', re.DOTALL)


@contextmanager
def raw_events(path: str | Path, progress: Progress | None = None) -> Iterator["RawTrace"]:
    """Open the trace at ``path`` for copying; ``-`` is standard input.

    Args:
        path: a file of any compression that holds a Chrome trace.
        progress: is told, now and then, how many bytes of the file have been read.

    Yields:
        The trace, to be iterated over once.

    Raises:
        TraceError: the file is missing, unreadable, or of another kind.
    """
    with open_source(path) as (blocks, source), paused_garbage_collector():
        sink = _RawSink()
        yield RawTrace(TraceReading(blocks, source, sink, progress), sink)


class RawTrace:
    """The events of one trace file, and the text around them.

    Iterate over it once: it yields ``(text, event)`` for every JSON object in the event list. In
    ``event`` a ``ts`` of more digits than a float64 holds is a string;
    :func:`analyze.trace.numbers.exact_ns` turns any ``ts`` or ``dur`` into nanoseconds.

    Attributes:
        form: ``"object"`` or ``"array"``.
        head: the text before the events, up to and with the bracket that opens their list: the
            file's own where that is valid JSON, else without any other member. It is known before
            the first event is read.
        source: bytes and compression.
        repairs: what was mended, lost or cut so far; complete after the last event.
    """

    def __init__(self, reading: TraceReading, sink: "_RawSink") -> None:
        """Advance to the first event.

        Raises:
            TraceError: the file is of another kind.
        """
        reading.find_events()
        self._reading = reading
        self._sink = sink
        self._before = reading.text.outside
        self.form: str = reading.text.form
        self.source: SourceReport = reading.source
        self.repairs: Repairs = reading.repairs
        head = b"[" if self.form == "array" else self._before.removesuffix(b"]")
        self._has_own_head = self.form == "array" or isinstance(_load(head + b"]}"), dict)
        self.head = head if self._has_own_head else head_of({})

    def __iter__(self) -> Iterator[RawEvent]:
        """Yield the text and the content of each intact event, in file order."""
        goes_on = True
        while goes_on:
            goes_on = self._reading.read_on()
            yield from self._sink.take()

    def metadata(self) -> dict[str, Any]:
        """Return the members beside the events, decoded and mended.

        Call it after the last event.
        """
        return self._reading.metadata()

    def head_with(self, added: Mapping[str, Any]) -> bytes:
        """Return the head of a copy that has these members beside those of the file.

        A bare list of events has no place for members: the copy is an object with that list in it.
        """
        return head_of({}) if self.form == "array" and added else self.head

    def tail_with(self, added: Mapping[str, Any]) -> bytes:
        """Return the text after the bracket that closes the event list of such a copy.

        Call it after the last event.
        """
        if not added:
            return self.tail()
        members = tail_of(added)
        if self.form == "array":
            return members
        return members.removesuffix(_END) + self.tail()

    def tail(self) -> bytes:
        """Return the text after the bracket that closes the event list.

        Call it after the last event. Where the file's own text is not valid JSON it is made anew
        from the members that could be read, except those that ``head`` holds.
        """
        if self.form == "array":
            return b""
        after = self._reading.text.outside[len(self._before) :]
        is_sound = isinstance(_load(b"{" + LIST_KEY + b": []" + after), dict)
        if is_sound and self._has_own_head:
            return after
        in_head = _load(self.head + b"]}")
        return tail_of({k: v for k, v in self.metadata().items() if in_head.get(k, self) != v})


def head_of(members: dict[str, Any]) -> bytes:
    """Return the text of a trace document before its first event, with these members in it."""
    written = (_member(key, value) + b",\n" for key, value in members.items())
    return b"{\n" + b"".join(written) + LIST_KEY + b": ["


def tail_of(members: Mapping[str, Any]) -> bytes:
    """Return the text of a trace document after its event list, with these members in it."""
    written = (b",\n" + _member(key, value) for key, value in members.items())
    return b"".join(written) + _END


def _member(key: str, value: object) -> bytes:
    """Write a member as valid JSON, whatever the file's own text of it was."""
    text = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
    return repair_text(text, Counter()).encode(errors="replace")


def _load(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


class _RawSink:
    """Keeps the events of one chunk, with their texts, until they are taken."""

    def __init__(self) -> None:
        self._chunks = ChunkDecoder()
        self._pending: list[RawEvent] = []

    def decode(self, chunk: bytes | memoryview) -> None:
        """See :class:`analyze.trace.decode.EventSink`."""
        events = self._chunks.decode(chunk)
        self._add(events, _texts(bytes(chunk), events))

    def add(self, events: Sequence[object], texts: Sequence[str]) -> None:
        """See :class:`analyze.trace.decode.EventSink`."""
        self._add(with_all_digits(events, texts), [text.encode() for text in texts])

    def take(self) -> list[RawEvent]:
        """Return what has come since the last call."""
        taken, self._pending = self._pending, []
        return taken

    def _add(self, events: Sequence[object], texts: Sequence[bytes]) -> None:
        pairs = zip(texts, events, strict=True)
        self._pending += [(text, event) for text, event in pairs if isinstance(event, dict)]


def _texts(chunk: bytes, events: Sequence[object]) -> list[bytes]:
    """Cut valid JSON ``chunk`` into the texts of its ``events``.

    Between two objects of the list there is always a place that looks like one; where there are
    just as many such places as the events need, none of them is anything else.
    """
    cuts = [found.span() for found in _BETWEEN_EVENTS.finditer(chunk)]
    if len(cuts) == len(events) - 1 and all(isinstance(event, dict) for event in events):
        starts = [0, *(end - 1 for _, end in cuts)]
        ends = [*(start + 1 for start, _ in cuts), len(chunk)]
        return [chunk[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return _texts_by_depth(chunk, events)


def _texts_by_depth(chunk: bytes, events: Sequence[object]) -> list[bytes]:
    """Cut at the commas outside all brackets and strings."""
    texts, start, depth = [], 0, 0
    for found in _STRUCTURE.finditer(chunk):
        token = found.group()
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif token == b"," and depth == 0:
            texts.append(chunk[start : found.start()].strip())
            start = found.end()
    texts.append(chunk[start:].strip())
    return texts if events else []
