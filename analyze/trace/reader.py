"""Read one trace file into event frames, metadata and an honest account of how that went."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from analyze.errors import TraceError
from analyze.trace.decode import EventCounts, EventDecoder, EventSink, OrjsonDecoder
from analyze.trace.kinds import is_pytorch, other_chrome_trace, other_kind, refusal
from analyze.trace.repair import Repairs, ends_list, read_members, repair_text, to_text, walk
from analyze.trace.source import SourceReport, open_source
from analyze.trace.split import MAX_HEADER_BYTES, TooLongError, TraceText

Progress = Callable[[int], None]
"""Is told, now and then, how many bytes of the file have been read."""


@dataclass
class TraceEvents:
    """Everything a trace file holds, decoded but not yet interpreted.

    Attributes:
        frames: one frame per family of ``families.FAMILIES``; times are int64 nanoseconds as in the
            file (not rebased).
        threads: ``pid`` and ``tid``, as text, of each number in the frames' columns ``lane``.
        metadata: the members of the JSON object other than the events.
        counts: events by category.
        source: bytes and compression.
        repairs: what was mended, lost or cut.
        form: ``"object"`` or ``"array"``.
    """

    frames: dict[str, pl.DataFrame]
    threads: pl.DataFrame
    metadata: dict[str, Any]
    counts: EventCounts
    source: SourceReport
    repairs: Repairs
    form: str


def read_events(path: str | Path, progress: Progress | None = None) -> TraceEvents:
    """Read the trace at ``path``; ``-`` is standard input.

    Args:
        path: a file of any compression that holds a Chrome trace of torch.profiler.
        progress: see :data:`Progress`.

    Raises:
        TraceError: the file is missing, unreadable, or of another kind; the text says which.
    """
    with open_source(path) as (blocks, source), paused_garbage_collector():
        decoder: EventDecoder = OrjsonDecoder()
        reading = TraceReading(blocks, source, decoder, progress)
        head = reading.find_events()
        while reading.read_on():
            pass
        return _finish(reading, decoder, head)


def _finish(reading: "TraceReading", decoder: EventDecoder, head: bytes) -> TraceEvents:
    counts, source = decoder.counts, reading.source
    categories = [category for _, category in counts.categories]
    metadata = reading.metadata()
    if not is_pytorch(categories, head) and (counts.events or "schemaVersion" not in metadata):
        raise TraceError(refusal(source.name, other_chrome_trace(head)))
    frames, threads = decoder.finish()
    return TraceEvents(
        frames, threads, metadata, counts, source, reading.repairs, reading.text.form
    )


@contextmanager
def paused_garbage_collector() -> Iterator[None]:
    """Keep the cyclic collector from traversing millions of objects that form no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class TraceReading:
    """One pass over one file, whose events go to a sink.

    Attributes:
        text: the text around the events, as far as it has been read.
        source: what the text comes from.
        repairs: what was mended, lost or cut so far.
    """

    def __init__(
        self,
        blocks: Iterator[bytes],
        source: SourceReport,
        sink: EventSink,
        progress: Progress | None = None,
    ) -> None:
        """Take the text of a file, as :func:`analyze.trace.source.open_source` yields it."""
        self.text = TraceText(blocks)
        self.source = source
        self.repairs = Repairs()
        self._sink = sink
        self._progress = progress or (lambda _: None)

    def find_events(self) -> bytes:
        """Advance to the first event; return how the text begins.

        Raises:
            TraceError: the file is of another kind.
        """
        head = self.text.head()
        self._refuse_other_kinds(head)
        self._find_list()
        return head

    def read_on(self) -> bool:
        """Pass some more events to the sink; False when these were the last."""
        try:
            goes_on = self._read_chunk()
        except TooLongError as error:
            self.source.notes.append(f"{error}; what follows was not read")
            self.repairs.truncated = True
            return False
        if goes_on:
            self._progress(self.source.file_bytes)
        return goes_on

    def _refuse_other_kinds(self, head: bytes) -> None:
        kind = other_kind(head)
        if kind == "empty":
            raise TraceError(f"{self.source.name}: the file is empty; the export did not finish")
        if kind:
            raise TraceError(refusal(self.source.name, kind))

    def _find_list(self) -> None:
        try:
            found = self.text.find_events()
        except TooLongError as error:
            raise TraceError(refusal(self.source.name, f"no trace: {error}")) from None
        if not found:
            raise TraceError(refusal(self.source.name, "JSON without a traceEvents list"))

    def _read_chunk(self) -> bool:
        """Read one chunk; False at the end of the events."""
        chunk = self.text.next_chunk()
        if not chunk:
            self.repairs.truncated = True
            return False
        return self._decode(chunk)

    def _decode(self, chunk: memoryview) -> bool:
        """Decode one chunk; False when the event list ended in it."""
        try:
            self._sink.decode(chunk)
        except ValueError:
            return self._decode_carefully(bytes(chunk))
        return True

    def _decode_carefully(self, chunk: bytes) -> bool:
        """Decode a chunk that is cut wrongly, holds the end of the list, or is broken."""
        final = self.text.exhausted or len(chunk) > MAX_HEADER_BYTES
        text = to_text(chunk, self.repairs.mended)
        if not ends_list(text) and self._decode_mended(text):
            return True
        result = walk(text, self.repairs, final=final)
        self._sink.add(result.events, result.texts)
        if result.after_list is not None:
            self.repairs.documents += self.text.leave_events(_encode(result.after_list))
            return not self.text.exhausted
        if result.rest:
            self.text.push_back(_encode(result.rest))
        return True

    def _decode_mended(self, text: str) -> bool:
        """Decode a chunk of which every broken place can be mended; False when that fails."""
        mended: Counter[str] = Counter()
        try:
            self._sink.decode(_encode(repair_text(text, mended)))
        except ValueError:
            return False
        self.repairs.mended.update(mended)
        return True

    def metadata(self) -> dict[str, Any]:
        """Return the members of the JSON object other than the events, once these are read."""
        if self.text.form == "array":
            return {}
        text = to_text(self.text.outside, self.repairs.mended)
        if self.repairs.truncated:
            text += "}"
        metadata = _load_object(text)
        if metadata is None:
            metadata = _load_object(repair_text(text, self.repairs.mended))
        if metadata is None:
            metadata = read_members(text, self.repairs)
        metadata.pop("traceEvents", None)
        return metadata


def _encode(text: str) -> bytes:
    return text.encode(errors="replace")


def _load_object(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
