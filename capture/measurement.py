"""How long a step takes and how much memory it needs, both with the profiler off.

Written as generators that yield where one step is to be run (see ``profiling``).
"""

import gc
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from capture.devices import Device
from capture.steps import Steps
from capture.trace_events import EventReader

WARM_UPS = 5
MIN_REPEATS, MAX_REPEATS = 20, 1_000
BUDGET_NS = 1_000_000_000
"""Time spent on the repeats of one measurement, within the bounds of their number."""


@dataclass(frozen=True)
class Latency:
    """Time of one step, in microseconds.

    Attributes:
        median_us, p10_us, p90_us, min_us: of the repeats.
        repeats: how many were timed.
        warm_ups: how many ran before.
        clock: ``cuda_event`` (between two events on the stream) or ``host``.
        tflops: arithmetic throughput at the median in 10^12 operations a second, where the
            operations are known.
    """

    median_us: float
    p10_us: float
    p90_us: float
    min_us: float
    repeats: int
    warm_ups: int
    clock: str
    tflops: float | None

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Memory:
    """What one step needs, in bytes.

    Attributes:
        before_bytes: allocated when the step begins: the inputs, above all.
        peak_bytes: the most that was allocated during the step.
        reserved_bytes: the most that torch's allocator held of the GPU; null on a CPU.
        source: ``allocator`` (the GPU allocator's statistics) or ``memory_events`` (of one step
            under a profiler of its own, since the CPU allocator keeps none).
    """

    before_bytes: int
    peak_bytes: int
    reserved_bytes: int | None
    source: str

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)


class LatencyMeasurement:
    """Times steps.

    Attributes:
        result: what was measured, once :meth:`steps` has ended.
    """

    def __init__(self, device: Device, flops: float | None = None) -> None:
        self._device = device
        self._flops = flops
        self.result: Latency | None = None

    def steps(self) -> Steps:
        """Yield once for every step that is to be run."""
        for _ in range(WARM_UPS):
            yield
        self._device.synchronize()
        started = time.perf_counter_ns()
        yield
        self._device.synchronize()
        repeats = _repeats(time.perf_counter_ns() - started)
        times: list[float] = []
        if self._device.is_gpu:
            yield from _gpu_times_us(self._device, repeats, times)
        else:
            yield from _host_times_us(repeats, times)
        self.result = self._latency(times)

    def _latency(self, times: list[float]) -> Latency:
        deciles = statistics.quantiles(times, n=10, method="inclusive")
        median = statistics.median(times)
        return Latency(
            median_us=median,
            p10_us=deciles[0],
            p90_us=deciles[-1],
            min_us=min(times),
            repeats=len(times),
            warm_ups=WARM_UPS + 1,
            clock="cuda_event" if self._device.is_gpu else "host",
            tflops=self._flops / median / 1e6 if self._flops and median else None,
        )


def _repeats(one_ns: int) -> int:
    return max(MIN_REPEATS, min(MAX_REPEATS, BUDGET_NS // max(one_ns, 1)))


def _host_times_us(repeats: int, times: list[float]) -> Steps:
    """Time on the host; where steps turn out slower than the first, the budget ends it."""
    deadline = time.perf_counter_ns() + BUDGET_NS
    while len(times) < repeats:
        if len(times) >= MIN_REPEATS and time.perf_counter_ns() > deadline:
            return
        started = time.perf_counter_ns()
        yield
        times.append((time.perf_counter_ns() - started) / 1e3)


def _gpu_times_us(device: Device, repeats: int, times: list[float]) -> Steps:
    """Time on the stream: what the GPU waits for the host within a step is part of it."""
    stream = torch.cuda.current_stream(device.name)
    pairs = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(stream)
        yield
        end.record(stream)
        pairs.append((start, end))
    device.synchronize()
    times += [start.elapsed_time(end) * 1e3 for start, end in pairs]


class MemoryMeasurement:
    """Finds the peak of one step.

    Attributes:
        result: what was measured, once :meth:`steps` has ended.
    """

    def __init__(self, device: Device, input_bytes: int = 0) -> None:
        self._device = device
        self._input_bytes = input_bytes
        self.result: Memory | None = None

    def steps(self) -> Steps:
        """Yield once for the step that is to be run."""
        return self._gpu_step() if self._device.is_gpu else self._cpu_step()

    def _gpu_step(self) -> Steps:
        release_memory(self._device)
        device = self._device.name
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield
        self._device.synchronize()
        self.result = Memory(
            before_bytes=before,
            peak_bytes=torch.cuda.max_memory_allocated(device),
            reserved_bytes=torch.cuda.max_memory_reserved(device),
            source="allocator",
        )

    def _cpu_step(self) -> Steps:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            yield
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.json"
            profiler.export_chrome_trace(str(path))
            peak = _peak_of_memory_events(path)
        self.result = Memory(
            before_bytes=self._input_bytes,
            peak_bytes=self._input_bytes + peak,
            reserved_bytes=None,
            source="memory_events",
        )


def _peak_of_memory_events(path: Path) -> int:
    """Return the most that was allocated at once, in bytes above the beginning."""
    allocated = peak = 0
    for event in EventReader(path):
        if event.get("name") == "[memory]":
            allocated += event.get("args", {}).get("Bytes", 0)
            peak = max(peak, allocated)
    return peak


def release_memory(device: Device) -> None:
    """Give back what nothing refers to any more, so that the next measurement starts clean."""
    gc.collect()
    if device.is_gpu:
        torch.cuda.empty_cache()
