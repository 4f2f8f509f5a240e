"""Decoded events as bytes, and back: frames as compressed Arrow IPC, all else as JSON.

Nothing is checked here: :mod:`analyze.cache.store` hands out only bytes that this user's own runs
have written.
"""

import json
import struct
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import polars as pl

from analyze.trace.decode import EventCounts
from analyze.trace.reader import TraceEvents
from analyze.trace.repair import Repairs
from analyze.trace.source import SourceReport

_THREADS = "threads"
_HEAD_LENGTH = struct.Struct("<Q")


def pack(events: TraceEvents) -> bytes:
    """Return everything in ``events`` but the name of its file.

    Zstandard makes the frames about 15 times smaller, which reading them from a disk and checking
    them gains more than decompressing costs. The newest Arrow layout keeps texts that many rows
    share only once.

    Raises:
        ValueError, RecursionError: the metadata cannot be written as JSON.
    """
    frames = {**events.frames, _THREADS: events.threads}
    blobs = {name: _to_ipc(frame) for name, frame in frames.items()}
    head = json.dumps(
        {
            "frames": {name: len(blob) for name, blob in blobs.items()},
            "metadata": events.metadata,
            "counts": _counts(events.counts),
            "source": vars(events.source),
            "repairs": vars(events.repairs),
            "form": events.form,
        }
    ).encode()
    return b"".join((_HEAD_LENGTH.pack(len(head)), head, *blobs.values()))


def unpack(data: memoryview, name: str) -> TraceEvents:
    """Return the events that :func:`pack` made ``data`` of.

    Args:
        data: the bytes.
        name: the path under which the trace is read now.
    """
    (length,) = _HEAD_LENGTH.unpack_from(data)
    start = _HEAD_LENGTH.size + length
    head = json.loads(bytes(data[_HEAD_LENGTH.size : start]))
    frames = dict(_frames(head["frames"], data[start:]))
    repairs = head["repairs"]
    return TraceEvents(
        threads=frames.pop(_THREADS),
        frames=frames,
        metadata=head["metadata"],
        counts=_read_counts(head["counts"]),
        source=SourceReport(**{**head["source"], "name": name}),
        repairs=Repairs(**{**repairs, "mended": Counter(repairs["mended"])}),
        form=head["form"],
    )


def _to_ipc(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.write_ipc(buffer, compression="zstd", compat_level=pl.CompatLevel.newest())
    return buffer.getvalue()


def _frames(lengths: dict[str, int], data: memoryview) -> Iterator[tuple[str, pl.DataFrame]]:
    start = 0
    for name, length in lengths.items():
        yield name, pl.read_ipc(bytes(data[start : start + length]))
        start += length


def _counts(counts: EventCounts) -> dict[str, Any]:
    categories = [[*kind, count] for kind, count in counts.categories.items()]
    return {**vars(counts), "categories": categories}


def _read_counts(written: dict[str, Any]) -> EventCounts:
    categories = {(phase, category): count for phase, category, count in written["categories"]}
    return EventCounts(**{**written, "categories": Counter(categories)})
