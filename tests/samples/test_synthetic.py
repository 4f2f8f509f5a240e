"""The synthetic samples: reproducible, true to the published figures, and structurally sound."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

SAMPLES = Path(__file__).parents[2] / "sample_traces"
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
HOST_CATEGORIES = ("cpu_op", "user_annotation")
CALL_CATEGORIES = ("cuda_runtime", "cuda_driver")

Event = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """What a file must show per forward; None where nothing was published."""

    annotation: str
    gpu_ops: int
    gpu_us: float | None
    cpu_us: float | None


FACTS = {
    "synthetic-naive": Facts("attn_fwd", 6, None, None),
    "synthetic-naive-inplace": Facts("attn_fwd", 5, 1955.0, None),
    "synthetic-sdpa-math": Facts("sdpa_fwd", 20, 7239.0, None),
    "synthetic-sdpa-efficient": Facts("sdpa_fwd", 1, 277.9, 117.0),
    "synthetic-sdpa-flash": Facts("sdpa_fwd", 1, 146.8, 138.0),
    "synthetic-sdpa-cudnn": Facts("sdpa_fwd", 1, 186.3, 214.0),
}
NAMES = tuple(FACTS)
every_file = pytest.mark.parametrize("name", NAMES)


@cache
def load(name: str) -> dict[str, Any]:
    """Decode a committed file."""
    trace: dict[str, Any] = orjson.loads(
        gzip.decompress((SAMPLES / f"{name}.json.gz").read_bytes())
    )
    return trace


def events(name: str, *categories: str) -> list[Event]:
    return [item for item in load(name)["traceEvents"] if item.get("cat") in categories]


def start(item: Event) -> int:
    return round(float(item["ts"]) * 1000)


def duration(item: Event) -> int:
    return round(float(item["dur"]) * 1000)


def end(item: Event) -> int:
    return start(item) + duration(item)


def encloses(outer: Event, inner: Event) -> bool:
    return start(outer) <= start(inner) and end(inner) <= end(outer)


def parents(name: str) -> list[tuple[Event, Event | None]]:
    """Pair each host event with the one around it; fail on any partial overlap."""
    pairs: list[tuple[Event, Event | None]] = []
    stack: list[Event] = []
    for item in sorted(events(name, *HOST_CATEGORIES), key=lambda item: item["args"]["Ev Idx"]):
        while stack and end(stack[-1]) <= start(item):
            stack.pop()
        parent = stack[-1] if stack else None
        assert parent is None or encloses(parent, item)
        pairs.append((item, parent))
        stack.append(item)
    return pairs


def self_times(name: str) -> Counter[str]:
    """Sum own host time by name, calls included, as the profiler's table does."""
    times: Counter[str] = Counter()
    for item, parent in parents(name):
        times[item["name"]] += duration(item)
        if parent is not None:
            times[parent["name"]] -= duration(item)
    return times


def chain(name: str, identifier: int) -> list[str]:
    """Return operator names from the leaf with this id up to the root."""
    by_id = {item["args"]["External id"]: (item, parent) for item, parent in parents(name)}
    names: list[str] = []
    item, parent = by_id[identifier]
    while item["cat"] == "cpu_op":
        names.append(item["name"])
        assert parent is not None
        item, parent = by_id[parent["args"]["External id"]]
    return names


def forwards(name: str) -> list[tuple[Event, list[Event]]]:
    """Pair each annotation with the GPU work launched inside it."""
    calls = {item["args"]["correlation"]: item for item in events(name, *CALL_CATEGORIES)}
    work = events(name, *GPU_CATEGORIES)
    return [
        (outer, [item for item in work if encloses(outer, calls[item["args"]["correlation"]])])
        for outer in events(name, "user_annotation")
        if outer["name"] == FACTS[name].annotation
    ]


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("synthetic")
    script = SAMPLES / "make_synthetic.py"
    subprocess.run([sys.executable, str(script), "--out", str(out)], check=True)
    return out


@every_file
def test_remaking_gives_the_committed_content(name: str, remade: Path) -> None:
    file = f"{name}.json.gz"
    again = gzip.decompress((remade / file).read_bytes())
    assert again == gzip.decompress((SAMPLES / file).read_bytes())


def test_every_synthetic_file_is_covered() -> None:
    assert {path.name.removesuffix(".json.gz") for path in SAMPLES.glob("synthetic*.gz")} == {
        *NAMES
    }


@every_file
def test_file_says_that_it_is_synthetic(name: str) -> None:
    trace = load(name)
    assert "synthetic" in trace["traceName"]
    assert trace["synthetic"] is True
    assert "A100-SXM4-80GB" in trace["synthetic_source"]
    assert "invented" in trace["synthetic_source"]


@every_file
def test_three_forwards_with_the_published_number_of_gpu_operations(name: str) -> None:
    found = forwards(name)
    assert len(found) == 3
    assert [len(work) for _, work in found] == [FACTS[name].gpu_ops] * 3
    assert len(events(name, *GPU_CATEGORIES)) == 3 * FACTS[name].gpu_ops


@every_file
def test_mean_gpu_time(name: str) -> None:
    totals = [sum(map(duration, work)) / 1000 for _, work in forwards(name)]
    mean = sum(totals) / 3
    published = FACTS[name].gpu_us
    if published is not None:
        assert mean == pytest.approx(published, abs=0.1)
    assert len(set(totals)) == 3
    assert totals == pytest.approx([mean] * 3, rel=0.02)


@every_file
def test_mean_cpu_time(name: str) -> None:
    totals = [duration(outer) / 1000 for outer, _ in forwards(name)]
    mean = sum(totals) / 3
    published = FACTS[name].cpu_us
    if published is not None:
        assert mean == pytest.approx(published, abs=0.1)
    assert len(set(totals)) == 3
    assert totals == pytest.approx([mean] * 3, rel=0.02)


@every_file
def test_every_gpu_operation_has_one_launch_and_one_arrow(name: str) -> None:
    calls = events(name, *CALL_CATEGORIES)
    by_correlation = {item["args"]["correlation"]: item for item in calls}
    assert len(by_correlation) == len(calls)
    arrows = Counter(
        (item["ph"], item["id"], item["pid"], item["tid"], start(item))
        for item in events(name, "ac2g")
    )
    work = events(name, *GPU_CATEGORIES)
    assert len({item["args"]["correlation"] for item in work}) == len(work)
    for item in work:
        correlation = item["args"]["correlation"]
        call = by_correlation[correlation]
        assert arrows["s", correlation, call["pid"], call["tid"], start(call)] == 1
        assert arrows["f", correlation, item["pid"], item["tid"], start(item)] == 1
    # Every other call has exactly one end of an arrow, on its own row.
    assert arrows.total() == len(calls) + len(work)
    assert {identifier for _, identifier, *_ in arrows} == set(by_correlation)


@every_file
def test_host_events_nest_and_are_numbered_without_gaps(name: str) -> None:
    pairs = parents(name)
    assert [item["args"]["Ev Idx"] for item, _ in pairs] == list(range(len(pairs)))
    starts = [start(item) for item, _ in pairs]
    assert starts == sorted(starts)
    assert len({item["args"]["External id"] for item, _ in pairs}) == len(pairs)
    for item, parent in pairs:
        assert (parent is None) == item["name"].startswith("ProfilerStep#")


@every_file
def test_external_ids_name_the_innermost_operator(name: str) -> None:
    operators = events(name, "cpu_op")
    by_id = {item["args"]["External id"]: item for item in operators}
    calls = {item["args"]["correlation"]: item for item in events(name, *CALL_CATEGORIES)}
    for call in calls.values():
        around = [item for item in operators if encloses(item, call)]
        if call["name"] == "cudaDeviceSynchronize":
            assert not around
            assert "External id" not in call["args"]
            continue
        innermost = min(around, key=duration)
        assert by_id[call["args"]["External id"]] is innermost
    for item in events(name, *GPU_CATEGORIES):
        call = calls[item["args"]["correlation"]]
        assert item["args"]["External id"] == call["args"]["External id"]


@every_file
def test_device_work_follows_its_launch_in_stream_order(name: str) -> None:
    calls = {item["args"]["correlation"]: item for item in events(name, *CALL_CATEGORIES)}
    work = events(name, *GPU_CATEGORIES)
    launches = [start(calls[item["args"]["correlation"]]) for item in work]
    assert launches == sorted(launches)
    for item, launched in zip(work, launches, strict=True):
        assert start(item) > launched
        assert (item["pid"], item["tid"]) == (0, 7) == (0, item["args"]["stream"])
    for before, after in pairwise(work):
        assert end(before) < start(after)


@every_file
def test_steps_are_contiguous_and_hold_one_forward_each(name: str) -> None:
    steps = [item for item in events(name, "user_annotation") if "#" in item["name"]]
    assert [item["name"] for item in steps] == [f"ProfilerStep#{index}" for index in (2, 3, 4)]
    assert [end(item) for item in steps[:-1]] == [start(item) for item in steps[1:]]
    for step, (outer, _) in zip(steps, forwards(name), strict=True):
        assert encloses(step, outer)


@every_file
def test_recording_ends_with_the_profilers_own_wait(name: str) -> None:
    trace = load(name)["traceEvents"]
    last_call = max(events(name, *CALL_CATEGORIES), key=start)
    last_step = events(name, "user_annotation")[-2]
    assert last_step["name"] == "ProfilerStep#4"
    assert last_call["name"] == "cudaDeviceSynchronize"
    assert start(last_call) > end(last_step)
    assert end(last_call) > max(map(end, events(name, *GPU_CATEGORIES)))
    (span,) = events(name, "Trace")
    assert trace[-1]["name"] == "Record Window End"
    assert start(trace[-1]) == end(span) > end(last_call)
    assert all(encloses(span, item) for item in trace if item["ph"] == "X")


@every_file
def test_gpu_annotations_cover_the_work_of_their_forward(name: str) -> None:
    projected = events(name, "gpu_user_annotation")
    assert len(projected) == 3
    for item, (outer, work) in zip(projected, forwards(name), strict=True):
        assert item["args"]["External id"] == outer["args"]["External id"]
        assert start(item) == start(work[0]) - 1
        assert end(item) == end(work[-1]) + 1


@every_file
def test_operators_carry_their_arguments(name: str) -> None:
    assert load(name)["record_shapes"] == 1
    for item in events(name, "cpu_op"):
        arguments = item["args"]
        lengths = {
            len(arguments[key])
            for key in ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
        }
        assert len(lengths) == 1
        for dims, strides in zip(arguments["Input Dims"], arguments["Input Strides"], strict=True):
            assert len(dims) == len(strides)


@every_file
def test_kernel_arguments_fit_the_device(name: str) -> None:
    (device,) = load(name)["deviceProperties"]
    assert device["name"] == "NVIDIA A100-SXM4-80GB"
    assert (device["computeMajor"], device["computeMinor"], device["numSms"]) == (8, 0, 108)
    for item in events(name, "kernel"):
        arguments = item["args"]
        x, y, z = arguments["grid"]
        assert arguments["blocks per SM"] == pytest.approx(x * y * z / 108, abs=1e-3)
        threads = arguments["block"][0] * arguments["block"][1] * arguments["block"][2]
        warps = x * y * z / 108 * threads / 32
        assert arguments["warps per SM"] == pytest.approx(warps, rel=1e-6, abs=1e-6)
        if arguments["shared memory"] > device["sharedMemPerBlock"]:
            assert arguments["est. achieved occupancy %"] == 0


@pytest.mark.parametrize(
    ("name", "occupancy", "threads", "registers"),
    [
        ("synthetic-sdpa-flash", 13, 128, 255),
        ("synthetic-sdpa-cudnn", 0, 256, 240),
        ("synthetic-sdpa-efficient", 19, 128, 168),
    ],
)
def test_fused_kernels_report_their_occupancy(
    name: str, occupancy: int, threads: int, registers: int
) -> None:
    for item in events(name, "kernel"):
        arguments = item["args"]
        x, y, z = arguments["block"]
        assert x * y * z == threads
        assert arguments["registers per thread"] == registers
        assert arguments["est. achieved occupancy %"] == occupancy


@pytest.mark.parametrize(
    ("name", "fragment", "call"),
    [
        (
            "synthetic-sdpa-efficient",
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
            "cudaLaunchKernel",
        ),
        ("synthetic-sdpa-flash", "pytorch_flash::flash_fwd_kernel", "cudaLaunchKernel"),
        (
            "synthetic-sdpa-cudnn",
            "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64x64_4x1x1_"
            "cga1x1x1_kernel0_0",
            "cuLaunchKernelEx",
        ),
    ],
)
def test_fused_kernels_and_how_they_are_launched(name: str, fragment: str, call: str) -> None:
    assert all(fragment in item["name"] for item in events(name, "kernel"))
    launches = [item for item in events(name, *CALL_CATEGORIES) if "Launch" in item["name"]]
    assert {item["name"] for item in launches} == {call}
    driver = call.startswith("cuL")
    assert {item["cat"] for item in launches} == {"cuda_driver" if driver else "cuda_runtime"}
    assert {item["args"]["cbid"] for item in launches} == {652 if driver else 211}


def test_naive_copies_the_score_matrix_inside_masked_fill() -> None:
    name = "synthetic-naive"
    copies = events(name, "gpu_memcpy")
    assert len(copies) == 3
    for item in copies:
        assert item["name"] == "Memcpy DtoD (Device -> Device)"
        assert item["args"]["bytes"] == 8 * 16 * 1024 * 1024 * 2
        assert item["args"]["memory bandwidth (GB/s)"] == pytest.approx(
            item["args"]["bytes"] / duration(item)
        )
        assert chain(name, item["args"]["External id"]) == [
            "aten::copy_",
            "aten::clone",
            "aten::masked_fill",
        ]
    assert not events("synthetic-naive-inplace", "gpu_memcpy")


def test_math_computes_bf16_inputs_in_fp32() -> None:
    name = "synthetic-sdpa-math"
    kernels = events(name, "kernel")
    products = [item for item in kernels if item["name"].startswith("ampere_sgemm_128x64_")]
    assert sum(map(duration, products)) >= sum(map(duration, kernels)) / 2
    by_id = {item["args"]["External id"]: item for item in events(name, "cpu_op")}
    for item in products:
        owner = by_id[item["args"]["External id"]]
        assert owner["name"] == "aten::bmm"
        assert owner["args"]["Input type"] == ["float", "float"]
        assert chain(name, item["args"]["External id"])[-1] == "aten::scaled_dot_product_attention"
    for item in by_id.values():
        if item["name"] == "aten::scaled_dot_product_attention":
            assert item["args"]["Input type"][:3] == ["c10::BFloat16"] * 3
    names = {item["name"].removeprefix("aten::") for item in by_id.values()}
    assert {"ones", "tril", "scalar_tensor", "where", "add_", "_safe_softmax"} <= names


def test_cudnn_plan_selection_is_the_one_fat_operator() -> None:
    name = "synthetic-sdpa-cudnn"
    times = self_times(name)
    operators = {item["name"] for item in events(name, "cpu_op")}
    fat = "aten::_scaled_dot_product_cudnn_attention"
    assert times[fat] / times.total() == pytest.approx(0.26, abs=0.001)
    assert max(times[other] for other in operators - {fat}) < times[fat] / 4
    assert "aten::transpose" not in operators


@pytest.mark.parametrize("name", ["synthetic-sdpa-efficient", "synthetic-sdpa-flash"])
def test_other_fused_backends_have_transposes_and_no_fat_operator(name: str) -> None:
    times = self_times(name)
    counts = Counter(item["name"] for item in events(name, "cpu_op"))
    assert counts["aten::transpose"] == 3 * 4
    assert max(times[operator] / counts[operator] for operator in counts) / 1000 <= 12.1
