"""Limits of one device: from the trace's device properties, else from its architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

KIB: Final = 1024


class _Architecture(NamedTuple):
    """Limits of one SM of an NVIDIA compute capability; shared memory in bytes."""

    max_threads_per_sm: int | None
    max_blocks_per_sm: int
    shared_memory_per_sm: int | None
    shared_memory_per_block_optin: int | None


def _architecture(threads: int, blocks: int, per_sm_kib: int, optin_kib: int) -> _Architecture:
    return _Architecture(threads, blocks, per_sm_kib * KIB, optin_kib * KIB)


# Sources: NVIDIA CUDA occupancy calculator header (cuda_occupancy.h), CUDA 12.8, and the technical
# specifications per compute capability in NVIDIA's CUDA C++ Programming Guide.
ARCHITECTURES: Final[Mapping[tuple[int, int], _Architecture]] = {
    (6, 0): _architecture(2048, 32, 64, 48),
    (6, 1): _architecture(2048, 32, 96, 48),
    (7, 0): _architecture(2048, 32, 96, 96),
    (7, 5): _architecture(1024, 16, 64, 64),
    (8, 0): _architecture(2048, 32, 164, 163),
    (8, 6): _architecture(1536, 16, 100, 99),
    (8, 7): _architecture(1536, 16, 164, 163),
    (8, 9): _architecture(1536, 24, 100, 99),
    (9, 0): _architecture(2048, 32, 228, 227),
    (10, 0): _architecture(2048, 32, 228, 227),
    (10, 1): _Architecture(None, 24, None, None),
    (10, 3): _architecture(2048, 32, 228, 227),
    (11, 0): _Architecture(None, 24, None, None),
    (12, 0): _architecture(1536, 24, 100, 99),
    (12, 1): _architecture(1536, 24, 100, 99),
}
"""NVIDIA limits by compute capability; ``None`` where no public figure was at hand."""

# The same for every architecture above (same sources).
_THREADS_PER_BLOCK: Final = 1024
_REGISTERS: Final = 65536
_SHARED_MEMORY_PER_BLOCK: Final = 48 * KIB
_WARP_SIZE: Final = 32

_THREADS_PER_SM: Final = frozenset({1024, 1536, 2048})
_WARP_SIZES: Final = frozenset({8, 16, 32, 64})
_SM_RANGE: Final = (1, 1023)  # below every thread limit, so the two cannot be confused
_REGISTER_RANGE: Final = (8 * KIB, 1024 * KIB)
_SHARED_MEMORY_RANGE: Final = (16 * KIB, 1024 * KIB)

_VENDOR_WORDS: Final = {
    "amd": re.compile(r"\bamd\b|advanced micro devices|radeon|instinct|\bgfx\d", re.IGNORECASE),
    "intel": re.compile(r"\bintel\b", re.IGNORECASE),
    "nvidia": re.compile(r"nvidia|tesla|geforce|quadro|\b[gr]tx\b|\btitan\b", re.IGNORECASE),
}
_CUDA_KEYS: Final = frozenset({"sharedMemPerBlockOptin", "sharedMemPerMultiprocessor"})
_XPU_KEYS: Final = frozenset({"maxComputeUnits", "maxWorkGroupSize"})


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """What one device can hold. Shared memory is in bytes, registers count 32-bit registers.

    ``vendor`` is ``nvidia``, ``amd``, ``intel``, ``other`` or ``None`` (unknown).
    ``compute_capability`` is (major, minor) as the profiler reports it, on AMD the leading digits
    of the gfx number. "SM" stands for streaming multiprocessor, compute unit or the vendor's
    equivalent. ``None`` is unknown.
    """

    name: str
    compute_capability: tuple[int, int] | None
    vendor: str | None
    sm_count: int | None
    max_threads_per_sm: int | None
    max_threads_per_block: int | None
    max_blocks_per_sm: int | None
    registers_per_sm: int | None
    registers_per_block: int | None
    shared_memory_per_sm: int | None
    shared_memory_per_block: int | None
    shared_memory_per_block_optin: int | None
    warp_size: int | None

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> DeviceLimits:
        """Read one entry of Kineto's ``deviceProperties`` (CUDA, ROCm or XPU).

        A value that is missing or implausible (another type, a bool, zero, negative, out of range)
        comes from the table of NVIDIA architectures if the device is one, and is ``None`` if not.
        """
        name = properties.get("name")
        name = name.strip() if isinstance(name, str) else ""
        capability = _compute_capability(properties)
        vendor = _vendor(name, properties, capability)
        read = cls(
            name=name,
            compute_capability=capability,
            vendor=vendor,
            sm_count=_sm_count(properties),
            max_threads_per_sm=_threads_per_sm(properties),
            max_threads_per_block=_number(
                properties, ("maxThreadsPerBlock", "maxWorkGroupSize"), (32, 4 * KIB)
            ),
            max_blocks_per_sm=None,
            registers_per_sm=_number(properties, ("regsPerMultiprocessor",), _REGISTER_RANGE),
            registers_per_block=_number(properties, ("regsPerBlock",), _REGISTER_RANGE),
            shared_memory_per_sm=_number(
                properties,
                ("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"),
                _SHARED_MEMORY_RANGE,
            ),
            shared_memory_per_block=_number(
                properties, ("sharedMemPerBlock", "localMemSize"), _SHARED_MEMORY_RANGE
            ),
            shared_memory_per_block_optin=_number(
                properties, ("sharedMemPerBlockOptin",), _SHARED_MEMORY_RANGE
            ),
            warp_size=_warp_size(properties),
        )
        return _filled(read) if vendor == "nvidia" else read


def _filled(read: DeviceLimits) -> DeviceLimits:
    """Fill the gaps of an NVIDIA device from its architecture, where that is in the table."""
    table = ARCHITECTURES.get(read.compute_capability or (0, 0))
    if table is None:
        return read
    return DeviceLimits(
        name=read.name,
        compute_capability=read.compute_capability,
        vendor=read.vendor,
        sm_count=read.sm_count,
        max_threads_per_sm=read.max_threads_per_sm or table.max_threads_per_sm,
        max_threads_per_block=read.max_threads_per_block or _THREADS_PER_BLOCK,
        max_blocks_per_sm=table.max_blocks_per_sm,
        registers_per_sm=read.registers_per_sm or _REGISTERS,
        registers_per_block=read.registers_per_block or _REGISTERS,
        shared_memory_per_sm=read.shared_memory_per_sm or table.shared_memory_per_sm,
        shared_memory_per_block=read.shared_memory_per_block or _SHARED_MEMORY_PER_BLOCK,
        shared_memory_per_block_optin=(
            read.shared_memory_per_block_optin or table.shared_memory_per_block_optin
        ),
        warp_size=read.warp_size or _WARP_SIZE,
    )


def _vendor(
    name: str, properties: Mapping[str, object], capability: tuple[int, int] | None
) -> str | None:
    maker = properties.get("vendor")
    words = f"{name} {maker}" if isinstance(maker, str) else name
    for vendor, pattern in _VENDOR_WORDS.items():
        if pattern.search(words):
            return vendor
    # The name can be empty; then the keys tell which runtime wrote the entry.
    if "maxSharedMemoryPerMultiProcessor" in properties or _warp_size(properties) == 64:
        return "amd"
    if properties.keys() >= _CUDA_KEYS and capability in ARCHITECTURES:
        return "nvidia"
    if properties.keys() >= _XPU_KEYS:
        return "intel"
    return "other" if name and capability is None else None


def _compute_capability(properties: Mapping[str, object]) -> tuple[int, int] | None:
    major = _number(properties, ("computeMajor", "major"), (1, 99))
    minor = _number(properties, ("computeMinor", "minor"), (0, 9))
    return None if major is None or minor is None else (major, minor)


def _sm_count(properties: Mapping[str, object]) -> int | None:
    count = _number(properties, ("numSms", "multiProcessorCount", "maxComputeUnits"), _SM_RANGE)
    if count is not None or not _from_python_exporter(properties):
        return count
    return _number(properties, ("maxThreadsPerMultiprocessor",), _SM_RANGE)


def _from_python_exporter(properties: Mapping[str, object]) -> bool:
    """Recognise torch 2.13's pure-Python exporter, whose thread limit is really the SM count."""
    absent = {"numSms", "regsPerBlock", "sharedMemPerBlock"}
    return absent.isdisjoint(properties) and "regsPerMultiprocessor" in properties


def _threads_per_sm(properties: Mapping[str, object]) -> int | None:
    threads = _number(properties, ("maxThreadsPerMultiprocessor",), (1024, 2048))
    return threads if threads in _THREADS_PER_SM else None


def _warp_size(properties: Mapping[str, object]) -> int | None:
    size = _number(properties, ("warpSize",), (8, 64))
    return size if size in _WARP_SIZES else None


def _number(
    properties: Mapping[str, object], keys: tuple[str, ...], allowed: tuple[int, int]
) -> int | None:
    """Return the first value that is an int in the allowed range, ends included."""
    low, high = allowed
    for key in keys:
        value = properties.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
    return None
