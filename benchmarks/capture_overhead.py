"""What each profiler option costs the host: step time under the profiler against none.

    python benchmarks/capture_overhead.py [--device auto] [--rounds 5]

Every option is measured in turn, round after round, on the same step: attention by hand, forward
and backward. Printed is the median step time as a multiple of the time without a profiler. On a
busy CPU set OMP_NUM_THREADS=1: threads that wait for each other drown everything else.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from capture.devices import Device, find_device
from capture.options import CPU_SHAPE, GPU_SHAPE, Protocol
from capture.phases import Step, make_step
from capture.profiling import make_profiler, warm_up_profiler
from capture.variants import find_variant
from capture.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 50
PLAIN = Protocol(record_shapes=False)
OPTIONS = {
    "no option": PLAIN,
    "record_shapes": replace(PLAIN, record_shapes=True),
    "profile_memory": replace(PLAIN, profile_memory=True),
    "with_modules": replace(PLAIN, with_modules=True),
    "with_flops": replace(PLAIN, with_flops=True),
    "with_stack": replace(PLAIN, with_stack=True),
    "cuda_sync_events": replace(PLAIN, cuda_sync_events=True),
}


def workload(device: Device) -> Workload:
    """Return the default workload of a device, forward and backward."""
    shape = GPU_SHAPE if device.is_gpu else CPU_SHAPE
    return Workload(
        batch=shape.batch,
        heads=shape.heads,
        kv_heads=shape.heads,
        seq=shape.seq,
        seq_kv=shape.seq,
        head_dim=shape.head_dim,
        dtype="bf16",
        causal=True,
        layout="bhsd",
        phase="backward",
        compile=False,
        seed=0,
        device=device.name,
    )


def median_step_us(step: Step, device: Device) -> float:
    """Return the median host time of a step, in microseconds."""
    times = []
    for _ in range(STEPS):
        started = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - started)
    device.synchronize()
    return statistics.median(times) / 1e3


def profiled(step: Step, device: Device, protocol: Protocol) -> float:
    """Return the same under the profiler."""
    with make_profiler(device, protocol):
        step()
        return median_step_us(step, device)


def main() -> None:
    """Measure all options."""
    parser = argparse.ArgumentParser(description="Measure the overhead of profiler options.")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    work = workload(device)
    step = make_step(find_variant("naive").attention, work, work.inputs())
    warm_up_profiler(device)
    ways: dict[str, Callable[[], float]] = {"no profiler": lambda: median_step_us(step, device)}
    ways |= {
        name: lambda protocol=protocol: profiled(step, device, protocol)  # type: ignore[misc]
        for name, protocol in OPTIONS.items()
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.rounds):
        for name, way in ways.items():
            times[name].append(way())
    base = statistics.median(times["no profiler"])
    print(f"{work.label} on {device.name}")
    for name, found in times.items():
        median = statistics.median(found)
        print(f"{name:18} {median:8.0f} us  {median / base:5.2f} x")


if __name__ == "__main__":
    main()
