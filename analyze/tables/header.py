"""What the file says about itself: device, options, versions, ranks, producer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analyze.kernels.device import DeviceLimits
from analyze.tables.captured import Captured, read_captured
from analyze.tables.lost import Lost, lost_before
from analyze.tables.noted import integer, mapping
from analyze.tables.trimmed import Trimmed, read_trimmed
from analyze.trace.reader import TraceEvents
from analyze.trace.source import STDIN_NAME

_OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")


class Header(NamedTuple):
    """Facts of the file's metadata and of the features its events show.

    Attributes:
        devices: device properties by ordinal, implausible values already replaced or dropped.
        vendor: ``nvidia``, ``amd``, ``intel``, ``other`` or null, from properties, metadata and API
            names.
        options: profiler options the file says were on. Older producers do not write them.
        rank: this process's rank, when torch.distributed was initialised.
        world_size: likewise.
        captured: what ``capture`` noted about the trace.
        capture_problem: why the notes in capture.json could not be used, if so.
        synthetic: the file says that it is made up.
        trimmed: what the file says of being trimmed, the latest last.
        lost_before: what was lost of the files that this one was copied from.
        producer: the range of torch versions whose features the file shows.
    """

    devices: Mapping[int, DeviceLimits]
    vendor: str | None
    options: frozenset[str]
    rank: int | None
    world_size: int | None
    captured: Captured
    capture_problem: str | None
    synthetic: bool
    trimmed: tuple[Trimmed, ...]
    lost_before: Lost
    producer: str

    def device(self, ordinal: int | None) -> DeviceLimits | None:
        """Return the properties of a device; where all are alike, of one that is not listed too.

        Under HIP_VISIBLE_DEVICES the ordinals of GPU work and of the listed devices differ.
        """
        if ordinal is not None and ordinal in self.devices:
            return self.devices[ordinal]
        kinds = set(self.devices.values())
        return kinds.pop() if len(kinds) == 1 else None


def read_header(events: TraceEvents) -> Header:
    """Collect the header facts of a trace."""
    metadata = events.metadata
    devices = _devices(metadata)
    distributed = mapping(metadata.get("distributedInfo"))
    captured, capture_problem = read_captured(metadata, _path(events))
    return Header(
        devices=devices,
        vendor=_vendor(devices, events),
        options=frozenset(name for name in _OPTIONS if metadata.get(name)),
        rank=integer(distributed.get("rank")),
        world_size=integer(distributed.get("world_size")),
        captured=captured,
        capture_problem=capture_problem,
        synthetic=metadata.get("synthetic") is True,
        trimmed=read_trimmed(metadata),
        lost_before=lost_before(metadata),
        producer=_producer(events),
    )


def _devices(metadata: Mapping[str, Any]) -> dict[int, DeviceLimits]:
    properties = metadata.get("deviceProperties") or metadata.get("computeProperties") or []
    devices: dict[int, DeviceLimits] = {}
    for position, entry in enumerate(properties if isinstance(properties, list) else []):
        if isinstance(entry, dict):
            ordinal = integer(entry.get("id"))
            limits = DeviceLimits.from_properties(entry)
            devices[position if ordinal is None else ordinal] = limits
    return devices


def _vendor(devices: Mapping[int, DeviceLimits], events: TraceEvents) -> str | None:
    if "hip_runtime_version" in events.metadata or _calls_hip(events):
        return "amd"
    named = next((device.vendor for device in devices.values() if device.vendor), None)
    if named:
        return named
    cuda = {"cuda_runtime_version", "cuda_driver_version"} & set(events.metadata)
    return "nvidia" if cuda or _calls_cuda(events) else None


def _calls_hip(events: TraceEvents) -> bool:
    return bool(events.frames["api_calls"]["name"].str.starts_with("hip").any())


def _calls_cuda(events: TraceEvents) -> bool:
    return bool(events.frames["api_calls"]["name"].str.starts_with("cuda").any())


def _path(events: TraceEvents) -> Path | None:
    name = events.source.name
    return None if name == STDIN_NAME else Path(name)


def _producer(events: TraceEvents) -> str:
    """Name the newest feature present; the file does not carry torch's version."""
    metadata = events.metadata
    categories = {category for _, category in events.counts.categories}
    has_host = {"host_name", "trace_id"} <= metadata.keys()
    features = (
        ("host_name (torch >= 2.12, or a fleet's own build)", has_host),
        ("trace_id (torch >= 2.6)", "trace_id" in metadata),
        ("baseTimeNanoseconds (torch >= 2.4)", "baseTimeNanoseconds" in metadata),
        ("Concrete Inputs (torch >= 2.1)", events.counts.concrete_inputs),
        ("category ac2g (torch >= 2.0)", "ac2g" in categories),
        ("category async_cpu_to_gpu (torch 1.13)", "async_cpu_to_gpu" in categories),
        ("category kernel (torch >= 1.13)", "kernel" in categories),
        ("category cpu_op (torch >= 1.10)", "cpu_op" in categories),
        ("category Operator (torch 1.8 or 1.9)", "Operator" in categories),
    )
    return next((name for name, present in features if present), "unknown")
