"""Latency by a clock that the test turns, and peak memory of real steps."""

import types
from collections.abc import Callable, Iterator
from itertools import count, repeat

import pytest
import torch

from capture import measurement
from capture.devices import Device
from capture.measurement import Latency, LatencyMeasurement, Memory, MemoryMeasurement
from capture.phases import make_step
from capture.steps import drive
from capture.variants import find_variant
from capture.workload import Workload
from tests.capture.problems import problem

CPU, GPU = Device("cpu"), Device("cuda:0")
WARM_UPS = 5
MILLISECOND_NS = 1_000_000


class Clock:
    """A host clock and a GPU that are as fast as the test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        own = types.SimpleNamespace(perf_counter_ns=lambda: self.now_ns)
        monkeypatch.setattr(measurement, "time", own)

    def step(self, durations_us: Iterator[float]) -> Callable[[], None]:
        def run() -> None:
            self.now_ns += round(1000 * next(durations_us))

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def measured(step: Callable[[], None], device: Device = CPU, flops: float | None = None) -> Latency:
    latency = LatencyMeasurement(device, flops)
    drive(latency.steps(), step)
    assert latency.result is not None
    return latency.result


def durations(first_us: float, others: Iterator[float]) -> Iterator[float]:
    """Yield what the warm-ups, the step that sizes the measurement, and the repeats take."""
    yield from repeat(1e6, WARM_UPS)
    yield first_us
    yield from others


def test_percentiles_of_known_times(clock: Clock) -> None:
    found = measured(clock.step(durations(10_000, map(float, count(1)))), flops=5e6)
    assert found.repeats == 100  # a second of 10 ms
    assert found.median_us == 50.5
    assert (found.p10_us, found.p90_us) == pytest.approx((10.9, 90.1))
    assert found.min_us == 1
    assert found.tflops == pytest.approx(5e6 / 50.5e-6 / 1e12)
    assert found.clock == "host"
    assert found.warm_ups == WARM_UPS + 1


@pytest.mark.parametrize(
    ("first_us", "others_us", "repeats"),
    [
        (0, 0, 1000),
        (1, 1, 1000),
        (2_000, 2_000, 500),
        (5e6, 5e6, 20),
        (1, 10_000, 101),
        (1, 5e6, 20),
    ],
    ids=["no time", "fast", "medium", "slow", "slower later", "much slower later"],
)
def test_repeats_fill_a_second_within_bounds(
    clock: Clock, first_us: float, others_us: float, repeats: int
) -> None:
    found = measured(clock.step(durations(first_us, repeat(others_us))))
    assert found.repeats == repeats


def test_no_throughput_without_known_operations(clock: Clock) -> None:
    assert measured(clock.step(repeat(1.0))).tflops is None


class StandInEvent:
    """A CUDA event whose times are known once the GPU was waited for."""

    now_ms = 0.0
    is_synchronized = False

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: str) -> None:
        assert stream == f"stream of {GPU.name}"
        self.at = StandInEvent.now_ms

    def elapsed_time(self, end: "StandInEvent") -> float:
        assert StandInEvent.is_synchronized
        return end.at - self.at


def test_gpu_latency_with_stand_in_for_cuda_events(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def synchronize(_device: object = None) -> None:
        StandInEvent.is_synchronized = True
        clock.now_ns += 100 * MILLISECOND_NS  # what the GPU needed for the step that was launched

    def launch() -> None:
        StandInEvent.is_synchronized = False
        StandInEvent.now_ms += 2
        clock.now_ns += 1  # launching takes the host no time

    monkeypatch.setattr(torch.cuda, "Event", StandInEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda name: f"stream of {name}")
    found = measured(launch, GPU, flops=4e9)
    assert found.repeats == 20
    assert found.median_us == found.min_us == pytest.approx(2000)
    assert found.clock == "cuda_event"
    assert found.tflops == pytest.approx(2.0)


def test_gpu_memory_with_stand_in_for_the_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def told(name: str, value: int | None = None) -> Callable[..., int | None]:
        def call(*_device: object) -> int | None:
            events.append(name)
            return value

        return call

    answers = {
        "empty_cache": None,
        "reset_peak_memory_stats": None,
        "memory_allocated": 100,
        "synchronize": None,
        "max_memory_allocated": 350,
        "max_memory_reserved": 400,
    }
    for name, value in answers.items():
        monkeypatch.setattr(torch.cuda, name, told(name, value))
    memory = MemoryMeasurement(GPU)
    drive(memory.steps(), lambda: events.append("step"))
    assert memory.result == Memory(100, 350, 400, "allocator")
    assert events == [*list(answers)[:3], "step", *list(answers)[3:]]


def memory_of(name: str, workload: Workload) -> Memory:
    inputs = workload.inputs()
    size = sum(tensor.numel() * tensor.element_size() for tensor in inputs.tensors)
    memory = MemoryMeasurement(CPU, size)
    step = make_step(find_variant(name).attention, workload, inputs)
    step()
    drive(memory.steps(), step)
    assert memory.result is not None
    return memory.result


def test_peak_memory_shows_the_scores() -> None:
    workload = problem(batch=2, heads=4, seq=256, head_dim=32)
    scores = 2 * 4 * 256 * 256 * 4
    naive, flash = memory_of("naive", workload), memory_of("sdpa-flash", workload)
    assert naive.before_bytes == flash.before_bytes == 3 * 2 * 4 * 256 * 32 * 4
    assert naive.peak_bytes - naive.before_bytes >= 2 * scores  # before and after the mask
    assert flash.peak_bytes - flash.before_bytes < scores
    assert naive.source == "memory_events"
    assert naive.reserved_bytes is None


def test_peak_memory_is_the_most_at_one_time() -> None:
    def step() -> None:
        for _ in range(10):
            torch.empty(1 << 20, dtype=torch.uint8)

    memory = MemoryMeasurement(CPU, 7)
    drive(memory.steps(), step)
    assert memory.result is not None
    assert memory.result.before_bytes == 7
    assert 1 << 20 <= memory.result.peak_bytes - 7 < 2 << 20
