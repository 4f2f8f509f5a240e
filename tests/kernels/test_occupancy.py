from __future__ import annotations

from dataclasses import replace

import pytest

from analyze.kernels.device import DeviceLimits
from analyze.kernels.occupancy import Occupancy, occupancy


def device(major: int, minor: int, sms: int, name: str = "NVIDIA") -> DeviceLimits:
    return DeviceLimits.from_properties(
        {"name": name, "computeMajor": major, "computeMinor": minor, "numSms": sms}
    )


A100 = device(8, 0, 108)
H100 = device(9, 0, 132)
B200 = device(10, 0, 148)
MANY = 1_000_000


def launch(
    limits: DeviceLimits, threads: int, registers: int, shared: int = 0, blocks: int = MANY
) -> Occupancy:
    found = occupancy(
        limits,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_memory_bytes=shared,
        blocks=blocks,
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("threads", "registers", "blocks", "percent"),
    [(128, 255, 2, 12.5), (256, 240, 1, 12.5), (128, 128, 4, 25.0), (384, 168, 1, 18.75)],
)
def test_register_limited(threads: int, registers: int, blocks: int, percent: float) -> None:
    found = launch(A100, threads, registers)
    assert found.resident_blocks == blocks
    assert found.theoretical == found.achievable == percent
    assert found.limiter == "registers"


def test_registers_are_placed_per_partition() -> None:
    # Dividing the register file by the block's registers would give 3.
    assert launch(A100, 96, 176).resident_blocks == 2
    # Two partitions (P100) leave less unused than four do.
    assert launch(device(6, 0, 56), 32, 200).resident_blocks == 10
    assert launch(device(7, 0, 80), 32, 200).resident_blocks == 8


@pytest.mark.parametrize(
    ("limits", "arguments", "blocks", "percent"),
    [
        (H100, (384, 168, 231_424), 1, 18.75),
        (B200, (256, 168, 213_656), 1, 12.5),
        (A100, (128, 226, 81_920), 2, 12.5),
    ],
)
def test_kernels_that_opt_in_to_more_shared_memory(
    limits: DeviceLimits, arguments: tuple[int, int, int], blocks: int, percent: float
) -> None:
    found = launch(limits, *arguments)
    assert (found.resident_blocks, found.theoretical) == (blocks, percent)


def test_grid_limited() -> None:
    # 140 of the 148 SMs get the only block they could hold.
    found = launch(B200, 256, 168, 213_656, blocks=140)
    assert found.limiter == "grid"
    assert found.theoretical == 12.5
    assert found.achievable == pytest.approx(11.82, abs=0.01)
    assert found.waves == pytest.approx(140 / 148)


def test_a_grid_that_fills_the_device_exactly_is_not_grid_limited() -> None:
    found = launch(A100, 128, 255, blocks=2 * 108)
    assert (found.limiter, found.waves) == ("registers", 1.0)
    assert launch(A100, 128, 255, blocks=2 * 108 + 54).waves == 1.25


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "limiter"),
    [
        (1024, 32, 0, "registers|warps"),
        (1024, 16, 0, "warps"),
        (32, 16, 0, "blocks"),
        (64, 32, 0, "registers|warps|blocks"),
        (64, 16, 0, "warps|blocks"),
        (128, 16, 81_920, "shared_memory"),
        (128, 255, 81_920, "registers|shared_memory"),
    ],
)
def test_limiters_tie_in_a_fixed_order(
    threads: int, registers: int, shared: int, limiter: str
) -> None:
    assert launch(A100, threads, registers, shared).limiter == limiter


def test_a_partly_filled_warp_counts_as_a_warp_but_not_as_threads() -> None:
    found = launch(A100, 33, 16)
    assert found.theoretical == 100 * 32 * 2 / 64
    assert found.achievable == 100 * 32 * 33 / 2048


def test_before_ampere_no_shared_memory_is_reserved() -> None:
    v100 = device(7, 0, 80)
    assert launch(v100, 1024, 16, 49_152).resident_blocks == 2
    assert launch(v100, 64, 16, 32 * 1024).resident_blocks == 3
    assert launch(H100, 64, 16, 32 * 1024).resident_blocks == 6
    assert launch(H100, 64, 16, 227 * 1024).resident_blocks == 1


def test_shared_memory_is_given_in_units() -> None:
    assert launch(device(7, 0, 80), 32, 16, 85 * 128).resident_blocks == 8  # 43 units of 256
    assert launch(A100, 32, 16, 137 * 128).resident_blocks == 9  # with the reserve, 145 of 128


@pytest.mark.parametrize(
    ("major", "minor", "blocks"),
    [
        (7, 0, 32),
        (7, 5, 16),
        (8, 0, 32),
        (8, 6, 16),
        (8, 9, 24),
        (9, 0, 32),
        (10, 3, 32),
        (12, 0, 24),
    ],
)
def test_block_slots(major: int, minor: int, blocks: int) -> None:
    found = launch(device(major, minor, 100), 32, 16)
    assert (found.resident_blocks, found.limiter) == (blocks, "blocks")


@pytest.mark.parametrize(
    "change",
    [
        {"threads_per_block": None},
        {"threads_per_block": 0},
        {"threads_per_block": -1},
        {"threads_per_block": 1025},
        {"registers_per_thread": None},
        {"registers_per_thread": 0},
        {"registers_per_thread": -1},
        {"registers_per_thread": 256},
        {"threads_per_block": 1024, "registers_per_thread": 255},
        {"shared_memory_bytes": None},
        {"shared_memory_bytes": -1},
        {"shared_memory_bytes": 163 * 1024 + 1},
        {"blocks": None},
        {"blocks": 0},
        {"blocks": -1},
    ],
)
def test_launches_that_are_unknown_or_do_not_fit(change: dict[str, int | None]) -> None:
    arguments: dict[str, int | None] = {
        "threads_per_block": 128,
        "registers_per_thread": 32,
        "shared_memory_bytes": 0,
        "blocks": 1000,
    }
    assert occupancy(A100, **arguments) is not None
    assert occupancy(A100, **{**arguments, **change}) is None


@pytest.mark.parametrize(
    "limits",
    [
        device(9, 4, 304, name="AMD Instinct MI300X"),
        device(11, 0, 20),
        device(17, 0, 100),
        replace(A100, vendor=None),
        replace(A100, compute_capability=None),
        replace(A100, sm_count=None),
        replace(A100, sm_count=0),
        DeviceLimits.from_properties({}),
    ],
)
def test_devices_not_known_well_enough(limits: DeviceLimits) -> None:
    found = occupancy(
        limits, threads_per_block=128, registers_per_thread=32, shared_memory_bytes=0, blocks=1000
    )
    assert found is None
