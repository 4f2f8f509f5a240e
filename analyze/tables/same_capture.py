"""Whether an entry of capture.json is about a trace: what both say of it must not differ."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from analyze.tables.noted import mapping, text
from analyze.trace.capture_json import CaptureEntry

_Told = tuple[str, object, object]
"""What is told, what the trace says of it, and what capture.json does."""

_LONGEST = 60
"""Characters of a value that are shown."""


def contradiction(
    noted: Mapping[str, Any], metadata: Mapping[str, Any], entry: CaptureEntry
) -> str | None:
    """Return what a trace and capture.json say otherwise of the capture; None where they agree.

    What one of them does not say, or not as ``capture`` writes it, contradicts nothing.

    Args:
        noted: what ``capture`` noted in the trace; empty where it did not write the trace.
        metadata: the trace's top-level keys.
        entry: what capture.json says of a trace of that name.
    """
    told = _told_by_capture(noted, entry) if noted else _told_by_others(metadata, entry)
    differences = (
        f"{what} here {_shown(here)}, there {_shown(there)}"
        for what, here, there in told
        if _differ(here, there)
    )
    first = next(differences, None)
    return _written_before(noted, entry) if first is None else first


def _written_before(noted: Mapping[str, Any], entry: CaptureEntry) -> str | None:
    created, began = _moment(noted.get("created")), _moment(entry.run.get("created"))
    if created is not None and began is not None and created < began:
        return "written before that capture began"
    return None


def _told_by_capture(noted: Mapping[str, Any], entry: CaptureEntry) -> Iterator[_Told]:
    said = {**entry.data, **entry.run}
    here, there = (
        mapping(mapping(side.get("environment")).get("device")) for side in (noted, said)
    )
    return chain(
        _told_twice(noted, said, ("name", "kind", "annotations")),
        *(
            _told_twice(mapping(noted.get(part)), mapping(said.get(part)))
            for part in ("workload", "protocol", "environment")
        ),
        (("device", ours, theirs) for _, ours, theirs in _told_twice(here, there)),
    )


def _told_twice(
    here: Mapping[str, Any], there: Mapping[str, Any], names: tuple[str, ...] | None = None
) -> Iterator[_Told]:
    for name in here if names is None else names:
        yield name, here.get(name), there.get(name)


def _told_by_others(metadata: Mapping[str, Any], entry: CaptureEntry) -> Iterator[_Told]:
    """Yield what a trace that ``capture`` did not write says of its variant and its GPU."""
    if entry.data.get("kind") == "variant":
        yield "variant", metadata.get("variant"), entry.name
    device = mapping(mapping(entry.run.get("environment")).get("device"))
    properties = metadata.get("deviceProperties")
    listed = properties if isinstance(properties, list) else []
    names = [name for each in listed if (name := text(mapping(each).get("name"))) is not None]
    if device.get("type") == "cuda" and names and device.get("name") not in names:
        yield "device", names[0], device.get("name")


def _differ(here: object, there: object) -> bool:
    return _kind(here) is not None and _kind(here) == _kind(there) and here != there


def _kind(value: object) -> str | None:
    """Return what can be compared with each other; None for what cannot be compared at all."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "texts" if is_texts else None


def _shown(value: object) -> str:
    words = ", ".join(value) if isinstance(value, list) else str(value)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else moment
