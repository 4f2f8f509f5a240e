"""Turn JSON text of events into columns.

:class:`EventDecoder` is the seam where a compiled tokenizer can take over: whatever implements it
gets event-aligned chunks of text and must return the same columns.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol, cast

import orjson
import polars as pl

from analyze.trace.buffers import Event, FamilyBuffer, ThreadPool
from analyze.trace.families import (
    ATTENTION_INPUTS,
    CONCRETE_INPUTS,
    FAMILIES,
    FINDINGS_CATEGORY,
    INPUT_STRIDES,
    OPS,
    Family,
    family_of,
)
from analyze.trace.numbers import EXACT_FLOAT_US, keep_digits
from analyze.trace.starts import is_document

_Shape = tuple[Any, Any, tuple[str, ...]]
"""Phase, category and argument names."""

_get_ts: Callable[[Any], Any] = itemgetter("ts")


@dataclass
class EventCounts:
    """What the decoder saw.

    Attributes:
        events: JSON objects in the event list, whatever they hold, except ``kinetolint_events``.
        without_phase: of these, objects without ``ph``; they are counted and left out.
        not_objects: other JSON values in the event list.
        categories: events by (phase, category as written).
        concrete_inputs: whether any event has the argument ``Concrete Inputs``.
        kinetolint_events: what ``analyze annotate`` added; counted here alone, and left
            out.
    """

    events: int = 0
    without_phase: int = 0
    not_objects: int = 0
    categories: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    concrete_inputs: bool = False
    kinetolint_events: int = 0


class EventSink(Protocol):
    """Takes the events of a trace, chunk by chunk."""

    def decode(self, chunk: bytes | memoryview) -> None:
        """Add the events of ``chunk``: JSON objects separated by commas.

        Raises:
            ValueError: the chunk is not valid JSON; nothing of it was added.
        """

    def add(self, events: Sequence[object], texts: Sequence[str]) -> None:
        """Add events that were decoded by a repair, with the JSON text of each."""


class EventDecoder(EventSink, Protocol):
    """Decodes event-aligned chunks of text into one frame per family."""

    counts: EventCounts

    def finish(self) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
        """Return family name to frame, and the threads by their numbers."""


class OrjsonDecoder:
    """The decoder that is always there: orjson on small chunks, grouped by event shape.

    Chunks stay small (see ``split.CHUNK_BYTES``) so that the short-lived objects of one chunk stay
    in the processor's cache: decoding a whole document at once is three to five times slower.
    """

    def __init__(self) -> None:
        self.counts = EventCounts()
        self._chunks = ChunkDecoder()
        self._threads = ThreadPool()
        self._buffers = {
            name: FamilyBuffer(family, self._threads) for name, family in FAMILIES.items()
        }

    def decode(self, chunk: bytes | memoryview) -> None:
        """See :meth:`EventSink.decode`."""
        self._add(self._chunks.decode(chunk))

    def add(self, events: Sequence[object], texts: Sequence[str]) -> None:
        """See :meth:`EventSink.add`."""
        self._add(with_all_digits(events, texts))

    def _add(self, events: Sequence[object]) -> None:
        objects = cast("list[Event]", events)
        if set(map(type, events)) != {dict}:
            objects = [event for event in events if isinstance(event, dict)]
        self.counts.not_objects += len(events) - len(objects)
        try:
            shapes = _group_by_shape(objects)
        except TypeError:
            shapes = _group_by_shape([_with_plain_keys(event) for event in objects])
        for (phase, category, names), batch in shapes.items():
            self._add_shape(phase, category, names, batch)

    def _add_shape(
        self, phase: object, category: object, names: tuple[str, ...], batch: list[Event]
    ) -> None:
        if category == FINDINGS_CATEGORY:
            self.counts.kinetolint_events += len(batch)
            return
        self.counts.events += len(batch)
        if phase is None:
            self.counts.without_phase += len(batch)
            return
        kind = str(phase), None if category is None else str(category)
        self.counts.categories[kind] += len(batch)
        self.counts.concrete_inputs |= CONCRETE_INPUTS in names
        for family, events in _by_family(phase, category, batch):
            if family is not None:
                self._buffers[family.name].add(events, names)
            if family is OPS and (CONCRETE_INPUTS in names or INPUT_STRIDES in names):
                self._keep_attention_inputs(events, names)

    def _keep_attention_inputs(self, ops: list[Event], names: tuple[str, ...]) -> None:
        if attention := list(filter(_is_attention, ops)):
            self._buffers[ATTENTION_INPUTS.name].add(attention, names)

    def finish(self) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
        """See :meth:`EventDecoder.finish`."""
        frames = {name: buffer.finish() for name, buffer in self._buffers.items()}
        return frames, self._threads.finish()


class ChunkDecoder:
    """Decodes the chunks of one trace.

    A ``ts`` of which a float64 would lose digits becomes a string, see
    :func:`analyze.trace.numbers.keep_digits`. Where one chunk has such, those behind it are taken
    to have them as well, which spares decoding them twice.
    """

    def __init__(self) -> None:
        self._keeps_digits = False

    def decode(self, chunk: bytes | memoryview) -> list[Any]:
        """Decode JSON values separated by commas.

        Raises:
            ValueError: the chunk is not valid JSON, or holds a trace among the events of another.
        """
        text = b"".join((b"[", chunk, b"]"))
        if not self._keeps_digits:
            events: list[Any] = orjson.loads(text)
            self._keeps_digits = _loses_digits(events)
        if self._keeps_digits:
            events = orjson.loads(keep_digits(text))
        if any(map(is_document, events)):
            raise ValueError("a trace among the events of another")
        return events


def with_all_digits(events: Sequence[object], texts: Sequence[str]) -> Sequence[object]:
    """Decode ``events`` again from their ``texts`` where a ``ts`` has lost digits.

    The texts come from a repair, so one may hold what orjson refuses; its event stays as it is.
    """
    if not _loses_digits(events):
        return events
    return [_with_all_digits(event, text) for event, text in zip(events, texts, strict=True)]


def _with_all_digits(event: object, text: str) -> object:
    try:
        return orjson.loads(keep_digits(text.encode()))
    except ValueError:
        return event


def _loses_digits(events: Sequence[object]) -> bool:
    """Whether any ``ts`` is a fraction too large for a float64 to tell nanoseconds apart."""
    try:
        times = list(map(_get_ts, events))
        if min(times) > -EXACT_FLOAT_US and max(times) < EXACT_FLOAT_US:
            return False
    except (KeyError, TypeError, IndexError, ValueError):
        pass
    return any(isinstance(e, dict) and _is_large_fraction(e.get("ts")) for e in events)


def _is_large_fraction(ts: object) -> bool:
    return isinstance(ts, float) and abs(ts) >= EXACT_FLOAT_US


def _group_by_shape(events: Iterable[Event]) -> dict[_Shape, list[Event]]:
    """Group events by phase, category and argument names, in the order these are written.

    To see that an event is shaped like the one before it is faster than to look its group up.
    """
    shapes: defaultdict[_Shape, list[Event]] = defaultdict(list)
    latest: _Shape | None = None
    group: list[Event] = []
    for event in events:
        args = event.get("args")
        shape = event.get("ph"), event.get("cat"), tuple(args) if type(args) is dict else ()
        if shape != latest:
            group, latest = shapes[shape], shape
        group.append(event)
    return shapes


def _by_family(
    phase: object, category: object, batch: list[Event]
) -> Iterable[tuple[Family | None, list[Event]]]:
    """Divide events of one shape; without a category each tells its own family."""
    if category is not None:
        return [(family_of(phase, category, batch[0]), batch)]
    families: defaultdict[str, list[Event]] = defaultdict(list)
    for event in batch:
        if family := family_of(phase, category, event):
            families[family.name].append(event)
    return [(FAMILIES[name], events) for name, events in families.items()]


def _is_attention(event: Event) -> bool:
    """Whether the op may be attention, by its name: one of torch's, or of flash-attn's package."""
    name = event.get("name")
    return type(name) is str and ("attention" in name or "flash_attn" in name)


def _with_plain_keys(event: Event) -> Event:
    """Return ``event`` with a phase and a category that can be compared."""
    plain = {key: str(event[key]) for key in ("ph", "cat") if event.get(key) is not None}
    return {**event, **plain}
