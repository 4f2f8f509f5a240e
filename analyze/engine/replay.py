"""Repeat a list of raw trace events as a recording would: later, and with fresh ids."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

MAX_EVENTS = 200_000

_STEP = re.compile(r"(ProfilerStep#)(\d+)")
_ID_ARGUMENTS = ("correlation", "External id", "Ev Idx")
_DEFAULTS: Mapping[str, Any] = {"ph": "X", "pid": 1, "tid": 1}


def replay(events: Sequence[Mapping[str, Any]], repeat: int, every: float) -> list[dict[str, Any]]:
    """Return events played several times.

    Each time they start ``every`` microseconds later, the ids that link them are new, and
    ``ProfilerStep#`` numbers go up. ``ph``, ``pid`` and ``tid`` default to a complete event of one
    thread.

    Args:
        events: raw Chrome events.
        repeat: how many times, at least 1.
        every: microseconds from one time to the next.
    """
    span = 1 + max((_largest_id(event) for event in events), default=0)
    return [
        _shifted(event, time, every * time, span * time)
        for time in range(repeat)
        for event in events
    ]


def _largest_id(event: Mapping[str, Any]) -> int:
    arguments = event.get("args")
    named = arguments if isinstance(arguments, dict) else {}
    ids = [event.get("id"), *(named.get(name) for name in _ID_ARGUMENTS)]
    return max((value for value in ids if isinstance(value, int)), default=0)


def _shifted(event: Mapping[str, Any], time: int, later: float, ids: int) -> dict[str, Any]:
    shifted = {**_DEFAULTS, **event}
    if _is_time(event.get("ts")):
        shifted["ts"] = event["ts"] + later
    if _is_id(event.get("id")):
        shifted["id"] = event["id"] + ids
    step = _STEP.fullmatch(event["name"]) if isinstance(event.get("name"), str) else None
    if step is not None:
        shifted["name"] = f"{step[1]}{int(step[2]) + time}"
    arguments = event.get("args")
    if isinstance(arguments, dict):
        shifted["args"] = {
            name: value + ids if name in _ID_ARGUMENTS and _is_id(value) else value
            for name, value in arguments.items()
        }
    return shifted


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
