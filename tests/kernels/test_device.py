from __future__ import annotations

from typing import Any

import pytest

from analyze.kernels.device import DeviceLimits

A100: dict[str, Any] = {
    "id": 0,
    "name": "NVIDIA A100 80GB PCIe",
    "totalGlobalMem": 85_000_000_000,
    "computeMajor": 8,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "regsPerMultiprocessor": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "sharedMemPerBlockOptin": 166912,
    "sharedMemPerMultiprocessor": 167936,
    "numSms": 108,
}
MI300: dict[str, Any] = {
    "name": "AMD Instinct MI300X",
    "computeMajor": 9,
    "computeMinor": 4,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 131072,
    "warpSize": 64,
    "sharedMemPerBlock": 65536,
    "numSms": 304,
    "maxSharedMemoryPerMultiProcessor": 65536,
}
XPU: dict[str, Any] = {
    "name": "Intel(R) Data Center GPU Max 1550",
    "vendor": "Intel(R) Corporation",
    "maxComputeUnits": 512,
    "maxWorkGroupSize": 1024,
    "localMemSize": 131072,
}
KEY_OF_FIELD = {
    "max_threads_per_sm": "maxThreadsPerMultiprocessor",
    "max_threads_per_block": "maxThreadsPerBlock",
    "registers_per_sm": "regsPerMultiprocessor",
    "registers_per_block": "regsPerBlock",
    "shared_memory_per_sm": "sharedMemPerMultiprocessor",
    "shared_memory_per_block": "sharedMemPerBlock",
    "shared_memory_per_block_optin": "sharedMemPerBlockOptin",
    "warp_size": "warpSize",
}
IMPLAUSIBLE: list[object] = [None, True, 0, -1, 1, 3, 2**40, 2048.0, "2048", "inf", [], {}]


def test_cuda() -> None:
    assert DeviceLimits.from_properties(A100) == DeviceLimits(
        name="NVIDIA A100 80GB PCIe",
        compute_capability=(8, 0),
        vendor="nvidia",
        sm_count=108,
        max_threads_per_sm=2048,
        max_threads_per_block=1024,
        max_blocks_per_sm=32,
        registers_per_sm=65536,
        registers_per_block=65536,
        shared_memory_per_sm=167936,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=166912,
        warp_size=32,
    )


def test_rocm_gets_nothing_from_the_nvidia_table() -> None:
    limits = DeviceLimits.from_properties(MI300)
    assert (limits.vendor, limits.compute_capability) == ("amd", (9, 4))
    assert (limits.sm_count, limits.warp_size) == (304, 64)
    assert limits.registers_per_block == 131072
    assert limits.shared_memory_per_sm == 65536
    assert limits.registers_per_sm is None
    assert limits.max_blocks_per_sm is None
    assert limits.shared_memory_per_block_optin is None


def test_xpu() -> None:
    limits = DeviceLimits.from_properties(XPU)
    assert (limits.vendor, limits.compute_capability) == ("intel", None)
    assert (limits.sm_count, limits.max_threads_per_block) == (512, 1024)
    assert limits.shared_memory_per_block == 131072


@pytest.mark.parametrize("value", IMPLAUSIBLE)
@pytest.mark.parametrize("field", KEY_OF_FIELD)
def test_implausible_values_come_from_the_table(field: str, value: object) -> None:
    broken = {**A100, KEY_OF_FIELD[field]: value}
    assert DeviceLimits.from_properties(broken) == DeviceLimits.from_properties(A100)


@pytest.mark.parametrize("value", [1023, 1025, 2047])
def test_odd_thread_limits_come_from_the_table(value: int) -> None:
    limits = DeviceLimits.from_properties({**A100, "maxThreadsPerMultiprocessor": value})
    assert (limits.max_threads_per_sm, limits.sm_count) == (2048, 108)


@pytest.mark.parametrize("value", [None, True, 0, -1, 2**40, 108.0, "108"])
def test_sm_count_has_no_fallback(value: object) -> None:
    assert DeviceLimits.from_properties({**A100, "numSms": value}).sm_count is None


@pytest.mark.parametrize("value", [None, True, -1, 100, 8.0, "8"])
def test_implausible_capability_is_unknown(value: object) -> None:
    limits = DeviceLimits.from_properties({**A100, "computeMajor": value})
    assert limits.compute_capability is None
    assert limits.max_blocks_per_sm is None


def test_python_exporter_writes_the_sm_count_as_threads() -> None:
    properties = {
        "id": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85_000_000_000,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 132,
        "regsPerMultiprocessor": 65536,
        "warpSize": 32,
    }
    limits = DeviceLimits.from_properties(properties)
    assert limits.sm_count == 132
    assert limits.max_threads_per_sm == 2048
    assert limits.shared_memory_per_block_optin == 227 * 1024


def test_capability_outside_the_table_keeps_what_was_read() -> None:
    limits = DeviceLimits.from_properties({**A100, "computeMajor": 17})
    assert limits.vendor == "nvidia"
    assert limits.max_threads_per_sm == 2048
    assert limits.max_blocks_per_sm is None


@pytest.mark.parametrize(
    ("properties", "vendor"),
    [
        ({}, None),
        ({"name": None}, None),
        ({"name": ""}, None),
        ({**A100, "name": ""}, "nvidia"),
        ({**MI300, "name": ""}, "amd"),
        ({**XPU, "name": "", "vendor": ""}, "intel"),
        ({"name": "AMD Radeon Graphics", "computeMajor": 9, "computeMinor": 0}, "amd"),
        ({"name": "Tesla V100-SXM2-32GB", "computeMajor": 7, "computeMinor": 0}, "nvidia"),
        ({"name": "ARTEMIS", "maxGridHeight": 8}, "other"),
        ({"name": "mystery", "computeMajor": 9, "computeMinor": 0}, None),
    ],
)
def test_vendor(properties: dict[str, object], vendor: str | None) -> None:
    assert DeviceLimits.from_properties(properties).vendor == vendor
