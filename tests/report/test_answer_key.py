"""The summary equals an independent answer key (plain json, exact decimals) on real traces."""

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.report.summary import summarise
from analyze.tables.build import load_trace

KEYS = (
    "events",
    "kernels",
    "kernel_time_us",
    "gpu_busy_us",
    "gpu_span_us",
    "streams",
    "memcpy",
    "memset",
    "distinct_kernels",
    "top5_kernels",
    "launches",
    "kernel_launches",
    "graph_launches",
    "occupancy",
    "fp32_sgemm",
    "sync_calls",
    "cpu_ops",
    "profiler_steps",
)
TOLERANCE_US = 0.001
MUTATED = (
    "switch-a100",
    "tl-h100-qwen",
    "tl-sgl-decode",
    "hta-nccl",
    "kin-r50-w0-v19",
    "par-dlrm-w1",
)

Trace = dict[str, Any]


def differences(expected: Any, found: Any, where: str) -> list[str]:
    """Say where two JSON values differ by more than the tolerance.

    The key sums the times that are known, to 0 where none is; the summary says then: unknown.
    """
    if where.endswith("time_us") and expected == 0 and found is None:
        return []
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        return [
            d for key in expected for d in differences(expected[key], found[key], f"{where}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [d for i, (one, two) in pairs for d in differences(one, two, f"{where}[{i}]")]
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return [] if abs(expected - found) <= TOLERANCE_US else [f"{where}: {expected} != {found}"]
    return [] if expected == found else [f"{where}: {expected!r} != {found!r}"]


def check(expected: dict[str, Any], trace: Path) -> None:
    found = json.loads(json.dumps(summarise(load_trace(trace))))
    wrong = [d for key in KEYS for d in differences(expected[key], found[key], key)]
    assert not wrong, f"{trace.parent.name}: {wrong[:5]}"


def test_every_trace_of_the_key(real_traces: Path) -> None:
    answers = json.loads((real_traces / "answers.json").read_text())
    assert len(answers) == 52
    for expected in answers.values():
        check(expected, real_traces / expected["file"])


def test_the_key_covers_all_readable_traces(real_traces: Path) -> None:
    answers = json.loads((real_traces / "answers.json").read_text())
    folders = {path.name for path in real_traces.iterdir() if path.is_dir()}
    others = {name for name in folders - set(answers) if not name.endswith("-neg")}
    assert others == {"gen-names", "gen-badmeta", "gen-legacy-array"}


def on_two_devices(trace: Trace, chance: random.Random) -> None:
    for event in trace["traceEvents"]:
        args = event.get("args")
        if isinstance(args, dict) and "stream" in args and chance.random() < 0.5:
            args["device"] = 1
            event["pid"] = 1


def without_durations(trace: Trace, chance: random.Random) -> None:
    for event in trace["traceEvents"]:
        if chance.random() < 0.2:
            event.pop("dur", None)


def with_text_times(trace: Trace, chance: random.Random) -> None:
    for event in trace["traceEvents"]:
        if "ts" in event and chance.random() < 0.5:
            event["ts"] = str(event["ts"])
        if "dur" in event and chance.random() < 0.5:
            event["dur"] = str(event["dur"])


def with_graph_launches(trace: Trace, chance: random.Random) -> None:
    for event in trace["traceEvents"]:
        if str(event.get("name")).endswith("LaunchKernel") and chance.random() < 0.3:
            event["name"] = chance.choice(["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])


def with_events_shuffled(trace: Trace, chance: random.Random) -> None:
    chance.shuffle(trace["traceEvents"])


MUTATIONS: list[Callable[[Trace, random.Random], None]] = [
    on_two_devices,
    without_durations,
    with_text_times,
    with_graph_launches,
    with_events_shuffled,
]


def answer_key(real_traces: Path, trace: Path) -> dict[str, Any]:
    """Run the program that made the key, kept beside the traces."""
    program = real_traces.parent / "reference" / "checks" / "trace_answers.py"
    done = subprocess.run(
        [sys.executable, program, trace], capture_output=True, text=True, check=True
    )
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("name", MUTATED)
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_mutated_traces(
    real_traces: Path,
    tmp_path: Path,
    name: str,
    mutate: Callable[[Trace, random.Random], None],
) -> None:
    original = next(path for path in (real_traces / name).iterdir() if path.is_file())
    trace: Trace = json.loads(gzip.decompress(original.read_bytes()))
    mutate(trace, random.Random(name))  # noqa: S311 - reproducible, not secret
    path = tmp_path / "mutated.json"
    path.write_text(json.dumps(trace))
    check(answer_key(real_traces, path), path)
