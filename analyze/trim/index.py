"""What trimming must know of every event of a file: one row each, in the order of the file."""

from collections.abc import Hashable, Mapping
from enum import IntEnum
from typing import Any

import polars as pl

from analyze.tables.clock import MAX_DURATION_NS
from analyze.tables.host import STEP_PREFIX
from analyze.trace.families import ANNOTATIONS, API_CALLS, FRAMES, GPU_OPS, OPS, family_of
from analyze.trace.numbers import to_ns

_ROWS = 1 << 16
"""Rows that are kept as Python objects before they are packed."""

_MAX_ID = 1 << 64
_FORWARD_BACKWARD = frozenset({"fwdbwd", "forward_backward"})
_GPU_ANNOTATION = "gpu_user_annotation"
_PROFILERS_SPAN = "trace"


class Role(IntEnum):
    """How an event takes part in trimming."""

    OP = 0
    ANNOTATION = 1
    STEP = 2
    FRAME = 3
    API_CALL = 4
    GPU_OP = 5
    GPU_ANNOTATION = 6
    FLOW_START = 7
    FLOW_END = 8
    FLOW_BETWEEN = 9
    PROCESS_NAME = 10
    THREAD_NAME = 11
    PROFILERS_SPAN = 12
    OTHER = 13


HOST = (Role.OP, Role.ANNOTATION, Role.STEP, Role.FRAME, Role.API_CALL)
RECORDED = (*HOST, Role.GPU_OP, Role.GPU_ANNOTATION, Role.OTHER)
FLOWS = (Role.FLOW_START, Role.FLOW_END, Role.FLOW_BETWEEN)
NAMING = (Role.PROCESS_NAME, Role.THREAD_NAME)

_OF_FAMILY = {
    OPS.name: Role.OP,
    ANNOTATIONS.name: Role.ANNOTATION,
    FRAMES.name: Role.FRAME,
    API_CALLS.name: Role.API_CALL,
    GPU_OPS.name: Role.GPU_OP,
}
_OF_PHASE = {"s": Role.FLOW_START, "f": Role.FLOW_END, "t": Role.FLOW_BETWEEN}

_SCHEMA = {
    "role": pl.UInt8,
    "process": pl.UInt32,
    "lane": pl.UInt32,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
    "key": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}

Event = Mapping[str, Any]


class EventIndex:
    """Collects the rows; :meth:`finish` returns them as a frame.

    Columns: ``role``; ``process`` and ``lane``, numbers of the pid and of (pid, tid);
    ``correlation`` and ``external_id``, null where there is none (of an arrow from a launch the
    first is its id); ``key``, a number for what else must be equal: name of an annotation, category
    and id of an arrow; ``start_ns`` and ``end_ns`` in the file's own time, the latter null for
    events without a plausible duration.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._rows: list[tuple[int, int, int, int | None, int | None, int | None]] = []
        self._starts: list[object] = []
        self._durations: list[object] = []
        self._chunks: list[pl.DataFrame] = [pl.DataFrame(schema=_SCHEMA)]

    def add(self, event: Event) -> None:
        """Add the next event of the file."""
        role = _role(event)
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        pid, tid = str(event.get("pid")), str(event.get("tid"))
        self._rows.append(
            (
                role,
                self._number(("process", pid)),
                self._number(("lane", pid, tid)),
                _flow_id(event) if role in FLOWS else _id(args.get("correlation")),
                _id(args.get("External id", args.get("external id"))),
                self._key(role, event),
            )
        )
        self._starts.append(event.get("ts"))
        self._durations.append(event.get("dur"))
        if len(self._rows) >= _ROWS:
            self._flush()

    def finish(self) -> pl.DataFrame:
        """Return one row an event."""
        self._flush()
        return pl.concat(self._chunks)

    def _key(self, role: Role, event: Event) -> int | None:
        if role in FLOWS:
            return self._number(("flow", str(event.get("cat")), str(event.get("id"))))
        if role in (Role.ANNOTATION, Role.STEP, Role.GPU_ANNOTATION):
            return self._number(("name", str(event.get("name"))))
        return None

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _flush(self) -> None:
        names = list(_SCHEMA)[:6]
        schema = {name: _SCHEMA[name] for name in names}
        rows = pl.DataFrame(self._rows, schema=schema, orient="row")
        duration = to_ns(self._durations)
        plausible = duration.is_between(0, MAX_DURATION_NS)
        self._chunks.append(
            rows.with_columns(start_ns=to_ns(self._starts)).with_columns(
                end_ns=pl.when(plausible).then(pl.col("start_ns") + duration)
            )
        )
        self._rows, self._starts, self._durations = [], [], []


def _role(event: Event) -> Role:
    phase, category = event.get("ph"), str(event.get("cat")).lower()
    if not isinstance(phase, str):
        return Role.OTHER
    if phase in _OF_PHASE:
        return _OF_PHASE[phase]
    if phase == "M":
        is_of_thread = str(event.get("name")).startswith("thread")
        return Role.THREAD_NAME if is_of_thread else Role.PROCESS_NAME
    if category == _GPU_ANNOTATION:
        return Role.GPU_ANNOTATION
    if category == _PROFILERS_SPAN:
        return Role.PROFILERS_SPAN
    return _role_of_family(phase, event)


def _role_of_family(phase: str, event: Event) -> Role:
    family = family_of(phase, event.get("cat"), event)
    role = _OF_FAMILY.get(family.name, Role.OTHER) if family else Role.OTHER
    is_step = str(event.get("name")).startswith(STEP_PREFIX)
    return Role.STEP if is_step and role in (Role.OP, Role.ANNOTATION) else role


def _flow_id(event: Event) -> int | None:
    """Return the correlation of the launch an arrow starts at; others are numbered otherwise."""
    return None if event.get("cat") in _FORWARD_BACKWARD else _id(event.get("id"))


def _id(value: object) -> int | None:
    """Return an id; 0 stands for none."""
    return value if type(value) is int and 0 < value < _MAX_ID else None
