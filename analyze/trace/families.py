"""Which events a trace can hold, sorted into families, and which arguments each family keeps.

The categories and argument names are Kineto's, over all its eras: torch 1.8 wrote ``Operator``,
``Runtime``, ``Kernel``; ``Input dims``; ``external id``. Whatever is not declared here is carried
as JSON text in the family's ``extra`` column, so a new event is kept, never an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """How a column is stored."""

    INTEGER = "Int64"
    ID = "UInt64"
    NUMBER = "Float64"
    FLAG = "Boolean"
    TEXT = "String, pooled"
    JSON = "JSON text, pooled"
    BUNDLE = "several arguments as one JSON object, pooled"
    MICROSECONDS = "Int64 nanoseconds, from microseconds in the file"


@dataclass(frozen=True, slots=True)
class Column:
    """One stored column."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Family:
    """Events that share their columns.

    Attributes:
        name: the name of the family's frame.
        core: event key to column, for keys beside ``args``.
        args: argument name in the file to column. Several names may share one column, because the
            names changed between torch versions.
    """

    name: str
    core: Mapping[str, Column]
    args: Mapping[str, Column] = field(default_factory=dict)


EXTRA = Column("extra", Kind.BUNDLE)
"""Arguments nobody declared, as one JSON object."""

_INTERVAL = {
    "cat": Column("cat", Kind.TEXT),
    "name": Column("name", Kind.TEXT),
    "pid": Column("pid", Kind.TEXT),
    "tid": Column("tid", Kind.TEXT),
    "ts": Column("start_ns", Kind.MICROSECONDS),
    "dur": Column("dur_ns", Kind.MICROSECONDS),
}
_POINT = {key: column for key, column in _INTERVAL.items() if key != "dur"}
_OF_ONE_CATEGORY = {key: column for key, column in _INTERVAL.items() if key != "cat"}
"""For families whose category says nothing more; at a million events a column is 16 MB."""
_PHASED = {"ph": Column("ph", Kind.TEXT)}

_EXTERNAL_ID = Column("external_id", Kind.ID)
_CORRELATION = Column("correlation", Kind.ID)
_LINKS = {
    "External id": _EXTERNAL_ID,
    "external id": _EXTERNAL_ID,
    "correlation": _CORRELATION,
}
_EVENT_INDEX = Column("event_index", Kind.INTEGER)
_INPUTS = Column("inputs", Kind.BUNDLE)
"""What record_shapes tells of an op's inputs: shapes, types, strides and concrete values."""
_CPU_ARGS = {
    "External id": _EXTERNAL_ID,
    "external id": _EXTERNAL_ID,
    "Ev Idx": _EVENT_INDEX,
    "Profiler Event Index": _EVENT_INDEX,
    "Record function id": Column("record_function_id", Kind.ID),
    "Sequence number": Column("sequence_number", Kind.INTEGER),
    "Fwd thread id": Column("forward_thread", Kind.INTEGER),
    "Input Dims": _INPUTS,
    "Input dims": _INPUTS,
    "Input type": _INPUTS,
    "Input Strides": _INPUTS,
    "Concrete Inputs": _INPUTS,
    "Call stack": Column("call_stack", Kind.TEXT),
    "finished": Column("finished", Kind.FLAG),
}

OPS = Family("ops", _OF_ONE_CATEGORY, _CPU_ARGS)
ANNOTATIONS = Family("annotations", _OF_ONE_CATEGORY, _CPU_ARGS)
FRAMES = Family(
    "frames",
    _OF_ONE_CATEGORY,
    {
        "Python id": Column("python_id", Kind.INTEGER),
        "Python parent id": Column("python_parent_id", Kind.INTEGER),
        "Python module id": Column("python_module_id", Kind.INTEGER),
        "Ev Idx": _EVENT_INDEX,
        "finished": Column("finished", Kind.FLAG),
    },
)
API_CALLS = Family(
    "api_calls",
    _INTERVAL,
    {**_LINKS, "cbid": Column("cbid", Kind.INTEGER), "cid": Column("cbid", Kind.INTEGER)},
)
GPU_OPS = Family(
    "gpu_ops",
    _INTERVAL,
    {
        **_LINKS,
        "device": Column("device", Kind.TEXT),
        "stream": Column("stream", Kind.TEXT),
        "context": Column("context", Kind.TEXT),
        "bytes": Column("bytes", Kind.INTEGER),
        "grid": Column("grid", Kind.JSON),
        "block": Column("block", Kind.JSON),
        "registers per thread": Column("registers_per_thread", Kind.INTEGER),
        "shared memory": Column("shared_memory_bytes", Kind.INTEGER),
        "est. achieved occupancy %": Column("occupancy_reported", Kind.NUMBER),
        "blocks per SM": Column("blocks_per_sm", Kind.NUMBER),
        "warps per SM": Column("warps_per_sm", Kind.NUMBER),
        "memory bandwidth (GB/s)": Column("bandwidth_reported", Kind.NUMBER),
        "graph id": Column("graph_id", Kind.ID),
        "graph node id": Column("graph_node_id", Kind.ID),
        "queued": Column("queued", Kind.INTEGER),
        "priority": Column("priority", Kind.INTEGER),
    },
)
MEMORY = Family(
    "memory",
    _POINT,
    {
        "Device Type": Column("device_type", Kind.INTEGER),
        "Device Id": Column("device_id", Kind.INTEGER),
        "Addr": Column("address", Kind.ID),
        "Bytes": Column("bytes", Kind.INTEGER),
        "Total Allocated": Column("total_allocated", Kind.INTEGER),
        "Total Reserved": Column("total_reserved", Kind.INTEGER),
        "Ev Idx": _EVENT_INDEX,
        "finished": Column("finished", Kind.FLAG),
    },
)
FLOWS = Family(
    "flows",
    {
        **_PHASED,
        "cat": Column("cat", Kind.TEXT),
        "id": Column("flow_id", Kind.ID),
        "ts": Column("start_ns", Kind.MICROSECONDS),
    },
)
"""Arrows say nothing that correlation does not say; only what joins them is kept."""
METADATA = Family("metadata", _POINT)
OTHER = Family("other", {**_PHASED, **_INTERVAL})

FAMILIES = (OPS, ANNOTATIONS, FRAMES, API_CALLS, GPU_OPS, MEMORY, FLOWS, METADATA, OTHER)

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

LEGACY_CPU_PROCESS = "CPU functions"
LEGACY_GPU_PROCESS = "CUDA functions"
"""Process names of ``torch.autograd.profiler``'s own exporter, which writes no categories."""


def family_of(phase: object, category: object, event: Mapping[str, object]) -> Family:
    """Return the family of one event; ``OTHER`` when nothing more is known about it."""
    if phase == "X":
        if category is None:
            return _legacy_family(event)
        return _COMPLETE.get(str(category).lower(), OTHER)
    if phase in ("s", "f", "t"):
        return FLOWS
    if phase == "M":
        return METADATA
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
