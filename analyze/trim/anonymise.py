"""Replace in a trace every text that is not known to say nothing of whoever recorded it.

What is kept is a list, ``known.yaml``: numbers, shapes and dtypes, the names of torch, Python and
GPU libraries, the keys that torch's profiler writes. Everything else is replaced, the same text by
the same name throughout a file, different texts by different names. Numbers keep every digit; pids,
addresses and times stay. Members beside the events that are not known are left out.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import orjson

from analyze.trace.families import (
    ANNOTATIONS,
    API_CALLS,
    FINDINGS_CATEGORY,
    FRAMES,
    GPU_OPS,
    OPS,
    PYTORCH_CATEGORIES,
    family_of,
)
from analyze.trim.known import Keys, keys
from analyze.trim.names import Names
from analyze.trim.note import first_of

ANONYMISED_KEY = "kinetolint_anonymised"

_CATEGORIES = PYTORCH_CATEGORIES | {
    *(FINDINGS_CATEGORY, "overhead"),
    *("async", "async_gpu", "forward_backward", "launch"),  # arrows of older torch
}
_OTHER_NAMES = {
    FINDINGS_CATEGORY: "text",
    "gpu_user_annotation": "annotation",
    "cuda_profiler_range": "kernel",
}
_NAME_KINDS = {
    OPS.name: "op",
    ANNOTATIONS.name: "annotation",
    FRAMES.name: "frame",
    API_CALLS.name: "api_call",
    GPU_OPS.name: "kernel",
}
_NAMING = {"process_name": "process", "thread_name": "thread"}
_FIELDS = {"ph": "phase", "pid": "lane", "tid": "lane", "id": "number id", "s": "phase",
           "bp": "phase", "ts": "number text", "dur": "number text"}  # fmt: skip

_MAX_DEPTH = 32
_ANY = "text"
_TOO_DEEP = "nested too deeply"


class Anonymiser:
    """Rewrites the events and the members of one trace."""

    def __init__(self, keep: frozenset[str] = frozenset()) -> None:
        """Begin with nothing replaced.

        Args:
            keep: texts that stay as they are wherever they are a whole name.
        """
        self._names = Names(keep)
        self._dropped = 0
        self._arguments = keys("arguments")

    def replaced(self) -> dict[str, int]:
        """Return how many distinct texts of each kind were replaced."""
        return self._names.placeholders.counts()

    def dropped(self) -> int:
        """Return how many members beside the events were left out."""
        return self._dropped

    def metadata(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return the known members beside the events with what is not known in them replaced.

        Others are left out: torch's profiler does not write them, and what a program noted there
        means nothing without its words.
        """
        known = dict(keys("metadata"))
        known |= {key: known[first] for key in members if (first := first_of(key))}
        kept = {key: value for key, value in members.items() if key in known}
        self._dropped += len(members) - len(kept)
        rewritten = self._rewrite({**kept, ANONYMISED_KEY: True}, known)
        return cast("dict[str, Any]", rewritten)

    def event(self, text: bytes) -> bytes:
        """Return the JSON text of an event with what is not known replaced."""
        try:
            event = json.loads(text, parse_int=orjson.Fragment, parse_float=orjson.Fragment)
        except RecursionError:
            event = {"name": _TOO_DEEP}
        return orjson.dumps(self._event(event))

    def _event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        rewritten: dict[str, Any] = {}
        for key, value in event.items():
            if key == "args" and isinstance(value, dict):
                rewritten[key] = self._rewrite(value, self._keys_of(event))
            elif key == "name" and isinstance(value, str):
                rewritten[key] = self._names.of(_kind_of_name(event), value)
            elif key == "cat" and isinstance(value, str):
                is_known = value.lower() in _CATEGORIES
                rewritten[key] = value if is_known else self._names.of("category", value)
            else:
                known = {"args": _ANY, "name": _ANY, "cat": _ANY, **_FIELDS}
                rewritten |= cast("dict[str, Any]", self._rewrite({key: value}, known))
        return rewritten

    def _keys_of(self, event: Mapping[str, Any]) -> Keys:
        kind = _NAMING.get(str(event.get("name"))) if event.get("ph") == "M" else None
        return self._arguments if kind is None else {**self._arguments, "name": kind}

    def _rewrite(self, value: object, known: Keys | str, depth: int = 0) -> object:
        """Return a value with what is not known replaced.

        Args:
            value: as decoded.
            known: of which kinds its texts are, or the same of each key.
            depth: how deeply it is nested.
        """
        if depth > _MAX_DEPTH:
            return _TOO_DEEP
        match value:
            case str():
                return self._names.of(known if isinstance(known, str) else _ANY, value)
            case list():
                return [self._rewrite(each, known, depth + 1) for each in value]
            case dict():
                return self._rewrite_members(value, known, depth + 1)
            case _:
                return value

    def _rewrite_members(
        self, members: Mapping[str, object], known: Keys | str, depth: int
    ) -> dict[str, object]:
        of_keys: Keys = {} if isinstance(known, str) else known
        rewritten: dict[str, object] = {}
        for key, value in members.items():
            name = key if key in of_keys else self._names.of("key", key)
            rewritten[name] = self._rewrite(value, of_keys.get(key, _ANY), depth)
        return rewritten


def _kind_of_name(event: Mapping[str, Any]) -> str:
    phase, category = event.get("ph"), event.get("cat")
    if isinstance(category, str) and category in _OTHER_NAMES:
        return _OTHER_NAMES[category]
    family = family_of(phase, category, event) if isinstance(phase, str) else None
    return _NAME_KINDS.get(family.name, "event") if family else "event"
