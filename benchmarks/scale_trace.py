"""Make a large trace out of a small one, in the layout that the profiler's exporter writes.

The events are repeated with shifted times, correlations and ids, so that every copy is linked
within itself. With ``unique_names`` every event gets a name of its own: the worst case for a reader
that pools its strings.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

ID_ARGUMENTS = (
    "correlation",
    "External id",
    "external id",
    "Ev Idx",
    "Python id",
    "Python parent id",
    "Sequence number",
)
GAP_US = 1000
"""Pause between two copies of the trace."""

Event = dict[str, Any]


def read_document(path: Path) -> dict[str, Any]:
    """Return a trace as one JSON object; a bare event list becomes one."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    document = orjson.loads(data)
    return document if isinstance(document, dict) else {"traceEvents": document}


def scale_trace(source: Path, target: Path, text_bytes: int, *, unique_names: bool) -> int:
    """Write ``target`` with at least ``text_bytes`` of text; return its size.

    Args:
        source: a valid trace, plain or gzip.
        target: is written as plain JSON.
        text_bytes: how large it must be.
        unique_names: give every complete event a name of its own.
    """
    document = read_document(source)
    events = document.pop("traceEvents")
    period = _length_us(events) + GAP_US
    ids = 1 + max((_largest_id(event) for event in events), default=0)
    with target.open("wb") as file:
        head = orjson.dumps(document, option=orjson.OPT_INDENT_2)[:-2]
        file.write(head + b',\n  "traceEvents": [\n')
        separator, copy = b"  ", 0
        while file.tell() < text_bytes:
            for event in _shifted(events, copy, period, ids, unique_names=unique_names):
                file.write(separator + _indented(event))
                separator = b",\n  "
            copy += 1
        file.write(b"\n  ]\n}\n")
        return file.tell()


def _indented(event: Event) -> bytes:
    return orjson.dumps(event, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n  ")


def _length_us(events: list[Event]) -> float:
    times = [event["ts"] for event in events if "ts" in event and event.get("ph") == "X"]
    ends = [event["ts"] + event.get("dur", 0) for event in events if event.get("ph") == "X"]
    return float(round(max(ends) - min(times)))


def _largest_id(event: Event) -> int:
    args = event.get("args") or {}
    numbers = [args[key] for key in ID_ARGUMENTS if isinstance(args.get(key), int)]
    own = event.get("id")
    return max([*map(int, numbers), own if isinstance(own, int) else 0])


def _shifted(
    events: list[Event], copy: int, period: float, ids: int, *, unique_names: bool
) -> Iterator[Event]:
    for number, event in enumerate(events):
        if copy and event.get("ph") == "M":
            continue
        shifted = dict(event)
        if "ts" in shifted:
            shifted["ts"] = round(shifted["ts"] + copy * period, 3)
        if isinstance(shifted.get("id"), int):
            shifted["id"] += copy * ids
        if isinstance(shifted.get("args"), dict):
            shifted["args"] = _shifted_args(shifted["args"], copy * ids)
        if unique_names and shifted.get("ph") == "X":
            shifted["name"] = f"{shifted['name']} {copy}.{number}"
        yield shifted


def _shifted_args(args: Event, offset: int) -> Event:
    moved = {
        key: args[key] + offset
        for key in ID_ARGUMENTS
        if isinstance(args.get(key), int) and args[key] > 0
    }
    return {**args, **moved}
