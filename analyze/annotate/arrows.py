"""Which event of the file each slice is about, found while the file passes by."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analyze.annotate.slices import Slice
from analyze.engine.result import Place
from analyze.trace.families import GPU_OPS, family_of
from analyze.trace.numbers import exact_ns


@dataclass(frozen=True)
class Thread:
    """A process and a thread, as the file writes them."""

    pid: Any
    tid: Any


class Targets:
    """The events that slices are about.

    Attributes:
        found: the thread of the event of each slice whose event has passed by.
    """

    def __init__(self, slices: Iterable[Slice]) -> None:
        """Look for the event of each slice that has a place."""
        self.found: dict[Slice, Thread] = {}
        self._wanted: dict[str, dict[int, list[Slice]]] = defaultdict(lambda: defaultdict(list))
        for part in slices:
            if part.place is not None:
                self._wanted[part.place.name][part.start_ns].append(part)

    def see(self, event: Mapping[str, Any]) -> None:
        """Take notice of an event of the file."""
        name = event.get("name")
        by_start = self._wanted.get(name) if isinstance(name, str) else None
        if by_start is None:
            return
        start_ns = exact_ns(event.get("ts"))
        slices = by_start.get(start_ns) if start_ns is not None else None
        if not slices or event.get("ph") not in ("X", "i"):
            return
        here = [part for part in slices if part.place and _is_at(event, part.place)]
        for part in here:
            self.found[part] = Thread(event.get("pid"), event.get("tid"))
            slices.remove(part)


def _is_at(event: Mapping[str, Any], place: Place) -> bool:
    """Whether an event of the name and start of ``place`` is the one; unknown values agree."""
    if place.stream is None:
        return _agree(event.get("pid"), place.pid) and _agree(event.get("tid"), place.tid)
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    is_gpu_work = family_of(event.get("ph"), event.get("cat"), event) is GPU_OPS
    return is_gpu_work and all(
        _agree(args.get(key), known)
        for key, known in (("device", place.device), ("stream", place.stream))
    )


def _agree(written: object, known: object) -> bool:
    return written is None or known is None or str(written) == str(known)
