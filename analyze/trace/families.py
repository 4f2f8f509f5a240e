"""Which events a trace can hold, sorted into families, and which arguments each family keeps.

The categories and argument names are Kineto's, over all its eras: torch 1.8 wrote ``Operator``,
``Runtime``, ``Kernel``; ``Input dims``; ``external id``. Whatever is not declared here is carried
as JSON text in the family's ``extra`` column, so a new event is kept, never an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

CONCRETE_INPUTS = "Concrete Inputs"
"""Values of an op's scalar inputs; only those of attention ops are kept."""
INPUT_STRIDES = "Input Strides"
"""How an op's inputs lie in memory; only those of attention ops are kept."""


class Kind(Enum):
    """How a column is stored."""

    INTEGER = "Int64"
    ID = "UInt64"
    NUMBER = "Float64"
    FLAG = "Boolean"
    TEXT = "String, pooled"
    JSON = "JSON text, pooled"
    THREAD = "UInt32, one number for each (pid, tid)"
    MICROSECONDS = "Int64 nanoseconds, from microseconds in the file"


class Column(NamedTuple):
    """One stored column."""

    name: str
    kind: Kind


CoreKey = str | tuple[str, str]
"""Key of an event beside ``args``; a pair of keys for a thread."""

CORE_KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur")
"""What an event holds beside its arguments."""


@dataclass(frozen=True)
class Family:
    """Events that share their columns.

    Attributes:
        name: the name of the family's frame.
        core: event key to column, for keys beside ``args``.
        args: argument name in the file to column. Several names may share one column, because the
            names changed between torch versions.
        unread: arguments that are known and that no table needs; they are left out.
    """

    name: str
    core: Mapping[CoreKey, Column]
    args: Mapping[str, Column] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()


EXTRA = Column("extra", Kind.JSON)
"""Arguments nobody declared, as one JSON object."""

_Core = dict[CoreKey, Column]
_NAME: _Core = {"name": Column("name", Kind.TEXT)}
_CATEGORY: _Core = {"cat": Column("cat", Kind.TEXT)}
_PROCESS: _Core = {"pid": Column("pid", Kind.TEXT)}
_ROW: _Core = {"tid": Column("tid", Kind.TEXT)}
_LANE: _Core = {("pid", "tid"): Column("lane", Kind.THREAD)}
_START: _Core = {"ts": Column("start_ns", Kind.MICROSECONDS)}
_INTERVAL: _Core = {**_START, "dur": Column("dur_ns", Kind.MICROSECONDS)}
_HOST: _Core = {**_NAME, **_LANE, **_INTERVAL}
"""Nothing that says the same for all: at a million events a column is 16 MB."""

_EXTERNAL_ID = Column("external_id", Kind.ID)
_CORRELATION = Column("correlation", Kind.ID)
_LINKS = {
    "External id": _EXTERNAL_ID,
    "external id": _EXTERNAL_ID,
    "correlation": _CORRELATION,
}
_EVENT_INDEX = Column("event_index", Kind.INTEGER)
_SHAPES = Column("input_shapes", Kind.JSON)
_CPU_ARGS = {
    "External id": _EXTERNAL_ID,
    "external id": _EXTERNAL_ID,
    "Ev Idx": _EVENT_INDEX,
    "Profiler Event Index": _EVENT_INDEX,
    "Fwd thread id": Column("forward_thread", Kind.INTEGER),
    "Input Dims": _SHAPES,
    "Input dims": _SHAPES,
    "Input type": Column("input_types", Kind.JSON),
    "Call stack": Column("call_stack", Kind.TEXT),
    "finished": Column("finished", Kind.FLAG),
}
_UNREAD_CPU_ARGS = frozenset(
    {"Record function id", "Sequence number", CONCRETE_INPUTS, INPUT_STRIDES}
)

OPS = Family("ops", _HOST, _CPU_ARGS, _UNREAD_CPU_ARGS)
ATTENTION_INPUTS = Family(
    "attention_inputs",
    {**_NAME, **_LANE, **_START},
    {
        CONCRETE_INPUTS: Column("concrete_inputs", Kind.JSON),
        INPUT_STRIDES: Column("input_strides", Kind.JSON),
    },
    (frozenset(_CPU_ARGS) | _UNREAD_CPU_ARGS) - {CONCRETE_INPUTS, INPUT_STRIDES},
)
"""Ops once more, where they are attention and scalar inputs or strides were recorded.

A column of ``ops`` would cost every op of a trace what a few of them need.
"""
ANNOTATIONS = Family("annotations", _HOST, _CPU_ARGS, _UNREAD_CPU_ARGS)
FRAMES = Family(
    "frames",
    _HOST,
    {"Ev Idx": _EVENT_INDEX},
    frozenset({"Python id", "Python parent id", "Python module id", "finished"}),
)
API_CALLS = Family("api_calls", _HOST, _LINKS, frozenset({"cbid", "cid"}))
GPU_OPS = Family(
    "gpu_ops",
    {**_CATEGORY, **_NAME, **_PROCESS, **_ROW, **_INTERVAL},
    {
        **_LINKS,
        "device": Column("device", Kind.TEXT),
        "stream": Column("stream", Kind.TEXT),
        "bytes": Column("bytes", Kind.INTEGER),
        "grid": Column("grid", Kind.JSON),
        "block": Column("block", Kind.JSON),
        "registers per thread": Column("registers_per_thread", Kind.INTEGER),
        "shared memory": Column("shared_memory_bytes", Kind.INTEGER),
        "est. achieved occupancy %": Column("occupancy_reported", Kind.NUMBER),
        "blocks per SM": Column("blocks_per_sm", Kind.NUMBER),
        "graph id": Column("graph_id", Kind.ID),
    },
    frozenset(
        {
            "context",
            "graph node id",
            "memory bandwidth (GB/s)",
            "priority",
            "queued",
            "warps per SM",
        }
    ),
)
MEMORY = Family(
    "memory",
    {**_NAME, **_LANE, **_START},
    {
        "Device Type": Column("device_type", Kind.INTEGER),
        "Device Id": Column("device", Kind.INTEGER),
        "Addr": Column("address", Kind.INTEGER),
        "Bytes": Column("bytes", Kind.INTEGER),
        "Total Allocated": Column("total_allocated", Kind.INTEGER),
        "Total Reserved": Column("total_reserved", Kind.INTEGER),
        "Ev Idx": _EVENT_INDEX,
    },
    frozenset({"finished"}),
)
OTHER = Family(
    "other",
    {
        "ph": Column("ph", Kind.TEXT),
        **_CATEGORY,
        **_NAME,
        **_PROCESS,
        **_ROW,
        **_INTERVAL,
    },
)

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (OPS, ATTENTION_INPUTS, ANNOTATIONS, FRAMES, API_CALLS, GPU_OPS, MEMORY, OTHER)
}
"""Every family by name."""

KERNEL_CATEGORIES = frozenset({"kernel"})
MEMCPY_CATEGORIES = frozenset({"gpu_memcpy", "memcpy"})
MEMSET_CATEGORIES = frozenset({"gpu_memset", "memset"})

_COMPLETE: dict[str, Family] = {
    "cpu_op": OPS,
    "operator": OPS,
    "user_annotation": ANNOTATIONS,
    "python_function": FRAMES,
    "cuda_runtime": API_CALLS,
    "cuda_driver": API_CALLS,
    "runtime": API_CALLS,
    "driver": API_CALLS,
    "hip_runtime": API_CALLS,
    "xpu_runtime": API_CALLS,
    "xpu_driver": API_CALLS,
    "mtia_runtime": API_CALLS,
    "privateuse1_runtime": API_CALLS,
    "privateuse1_driver": API_CALLS,
    "cpu_instant_event": MEMORY,  # an interval in the exporter that torch 2.13 writes in Python
    **dict.fromkeys(KERNEL_CATEGORIES | MEMCPY_CATEGORIES | MEMSET_CATEGORIES, GPU_OPS),
}

_PYTORCH_ONLY = frozenset(
    {
        "cpu_instant_event",
        "gpu_user_annotation",
        "cuda_sync",
        "cuda_event",
        "cuda_profiler_range",
        "collective_comm",
        "glow_runtime",
        "hardware_counters",
        "hpu_op",
        "mtia_ccp_events",
        "mtia_counters",
        "mtia_insight",
        "mtia_workloadd",
        "xpu_scope_profiler",
        "xpu_sync",
        "ac2g",
        "fwdbwd",
        "async_cpu_to_gpu",
        "trace",
    }
)
PYTORCH_CATEGORIES = frozenset(_COMPLETE) | _PYTORCH_ONLY
"""Categories, in lower case, that only PyTorch's profiler writes."""

FINDINGS_CATEGORY = "kinetolint"
"""Category of what ``analyze annotate`` adds to a trace; no measurement, so it is never read."""

LEGACY_CPU_PROCESS = "CPU functions"
LEGACY_GPU_PROCESS = "CUDA functions"
"""Process names of ``torch.autograd.profiler``'s own exporter, which writes no categories."""


def family_of(phase: object, category: object, event: Mapping[str, object]) -> Family | None:
    """Return the family of one event; ``OTHER`` when nothing more is known about it.

    None is for events that need only be counted: the names of processes, and arrows. From launches
    to GPU work these say what correlation says. They are not followed where a file has lost its
    arguments: GPU work is then without a launch, and counted so.
    """
    if phase == "X":
        if category is None:
            return _legacy_family(event)
        return _COMPLETE.get(str(category).lower(), OTHER)
    if phase in ("s", "f", "t", "M"):
        return None
    if phase == "i" and event.get("name") in ("[memory]", "[OutOfMemory]"):
        return MEMORY
    return OTHER


def _legacy_family(event: Mapping[str, object]) -> Family:
    match event.get("pid"):
        case str(pid) if pid == LEGACY_CPU_PROCESS:
            return OPS
        case str(pid) if pid == LEGACY_GPU_PROCESS:
            return GPU_OPS
        case _:
            return OTHER
