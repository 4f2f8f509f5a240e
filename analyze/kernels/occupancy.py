"""Theoretical and grid-limited occupancy of a kernel launch on an NVIDIA device.

Follows the NVIDIA CUDA occupancy calculator header (``cuda_occupancy.h``, CUDA 12.8) with the
shared-memory limit a kernel may opt in to; Kineto's own number takes the default limit and reads 0
above 48 KiB. Not modelled: thread-block clusters, a shared-memory carve-out, named barriers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from analyze.kernels.device import DeviceLimits

# Source of these constants: cuda_occupancy.h, CUDA 12.8.
_REGISTER_UNIT: Final = 256  # registers are given to a warp in multiples of this
_MAX_REGISTERS_PER_THREAD: Final = 255
_RESERVED_SHARED_MEMORY: Final = 1024  # bytes per block that the driver keeps, from 8.0 on
_AMPERE: Final = (8, 0)

_UNLIMITED: Final = 1 << 30


class Occupancy(NamedTuple):
    """How full a launch can keep the multiprocessors (SMs). Nothing here is measured.

    ``theoretical`` is resident warps over the SM's warp slots, in percent, given enough blocks.
    ``achievable`` is the same in threads and limited by the grid, in percent: the quantity Kineto
    reports, unrounded. ``resident_blocks`` is blocks per SM. ``limiter`` is what bounds it:
    ``registers``, ``shared_memory``, ``warps`` or ``blocks``, in this order and joined by ``|``
    when they tie, or ``grid`` when the grid has fewer blocks than the device could hold. ``waves``
    is how many times the grid fills the device; its fraction is a partly filled wave.
    """

    theoretical: float
    achievable: float
    resident_blocks: int
    limiter: str
    waves: float


class _Limits(NamedTuple):
    """The numbers of a device that the calculator needs, all known."""

    capability: tuple[int, int]
    sm_count: int
    threads_per_sm: int
    threads_per_block: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    shared_per_sm: int
    shared_per_block: int
    shared_per_block_optin: int
    warp_size: int


def occupancy(
    device: DeviceLimits,
    *,
    threads_per_block: int | None,
    registers_per_thread: int | None,
    shared_memory_bytes: int | None,
    blocks: int | None,
) -> Occupancy | None:
    """Return the occupancy of a launch, or ``None`` where device or launch are not known enough.

    ``shared_memory_bytes`` is static plus dynamic shared memory per block, ``blocks`` the whole
    grid. Zero registers means that CUPTI did not know them. The answer is also ``None`` for a
    launch that does not fit the device and for devices of other vendors.
    """
    limits = _limits(device)
    if (
        limits is None
        or not threads_per_block
        or not registers_per_thread
        or shared_memory_bytes is None
        or not blocks
        or min(threads_per_block, registers_per_thread, blocks) < 0
        or shared_memory_bytes < 0
    ):
        return None
    warps = _ceil_div(threads_per_block, limits.warp_size)
    bounds = {
        "registers": _register_bound(limits, warps, registers_per_thread),
        "shared_memory": _shared_memory_bound(limits, shared_memory_bytes),
        "warps": _warp_bound(limits, warps, threads_per_block),
        "blocks": limits.blocks_per_sm,
    }
    resident = min(bounds.values())
    if resident == 0:
        return None
    blocks_per_sm = blocks / limits.sm_count
    tied = "|".join(name for name, bound in bounds.items() if bound == resident)
    return Occupancy(
        theoretical=100 * resident * warps / (limits.threads_per_sm // limits.warp_size),
        achievable=100 * min(resident, blocks_per_sm) * threads_per_block / limits.threads_per_sm,
        resident_blocks=resident,
        limiter="grid" if blocks_per_sm < resident else tied,
        waves=blocks_per_sm / resident,
    )


def _warp_bound(limits: _Limits, warps: int, threads_per_block: int) -> int:
    if threads_per_block > limits.threads_per_block:
        return 0
    return (limits.threads_per_sm // limits.warp_size) // warps


def _register_bound(limits: _Limits, warps: int, registers_per_thread: int) -> int:
    """Resident blocks by registers, which each SM partition gives to whole warps."""
    partitions = 2 if limits.capability == (6, 0) else 4
    per_warp = _round_up(registers_per_thread * limits.warp_size, _REGISTER_UNIT)
    per_block = per_warp * _round_up(warps, partitions)
    if registers_per_thread > _MAX_REGISTERS_PER_THREAD or per_block > limits.registers_per_block:
        return 0
    warps_per_partition = limits.registers_per_sm // partitions // per_warp
    return warps_per_partition * partitions // warps


def _shared_memory_bound(limits: _Limits, requested: int) -> int:
    modern = limits.capability >= _AMPERE
    reserved = _RESERVED_SHARED_MEMORY if modern else 0
    allocated = _round_up(requested + reserved, 128 if modern else 256)
    largest = (
        limits.shared_per_block_optin
        if requested > limits.shared_per_block
        else limits.shared_per_block
    )
    if allocated == 0:
        return _UNLIMITED
    return 0 if allocated > largest + reserved else limits.shared_per_sm // allocated


def _limits(device: DeviceLimits) -> _Limits | None:
    if device.vendor != "nvidia" or device.compute_capability is None:
        return None
    numbers = (
        device.sm_count,
        device.max_threads_per_sm,
        device.max_threads_per_block,
        device.max_blocks_per_sm,
        device.registers_per_sm,
        device.registers_per_block,
        device.shared_memory_per_sm,
        device.shared_memory_per_block,
        device.shared_memory_per_block_optin,
        device.warp_size,
    )
    known = tuple(number for number in numbers if number is not None and number > 0)
    return _Limits(device.compute_capability, *known) if len(known) == len(numbers) else None


def _ceil_div(value: int, unit: int) -> int:
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    return _ceil_div(value, unit) * unit
