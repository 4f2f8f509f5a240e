"""Attention calls: which ops they are, what computed them, and what belongs to them."""

from pathlib import Path
from typing import Any

import pytest

from analyze.engine.data import TraceTables
from analyze.engine.per import Per
from analyze.tables.build import Trace, load_trace
from analyze.tables.calls import build_calls
from analyze.tables.catalogue import BACKENDS, CALLS, TABLES
from tests.conftest import MakeTrace
from tests.tables.test_attribution import AUTOGRAD, Event, kernel, launch, mark, op

SDPA = "aten::scaled_dot_product_attention"
FLASH = "aten::_scaled_dot_product_flash_attention"
MATH = "aten::_scaled_dot_product_attention_math"


def shapes(*inputs: list[int], causal: bool | None = False) -> dict[str, Any]:
    """Arguments of an SDPA op: query, key, value, and whether the mask is causal."""
    recorded: dict[str, Any] = {
        "Input Dims": [*inputs, [], [], [], [], []],
        "Input type": [*["c10::BFloat16"] * 3, "", "Scalar", "Scalar", "", "Scalar"],
    }
    if causal is not None:
        recorded["Concrete Inputs"] = ["", "", "", "", "0.", str(causal), "", "False"]
    return recorded


def one_call(make_trace: MakeTrace, *inside: Event, name: str = SDPA, **args: Any) -> Any:
    """Return the row of a call that launches one kernel of 100 us."""
    events = [op(name, 0, 50, **args), *inside, launch(1, 40), kernel(1, 60, 100)]
    calls = make_trace(events).table("calls")
    assert calls.height == 1
    return calls.row(0, named=True)


@pytest.mark.parametrize(
    ("sample", "backend"),
    [
        ("synthetic-sdpa-flash", "flash"),
        ("synthetic-sdpa-efficient", "efficient"),
        ("synthetic-sdpa-cudnn", "cudnn"),
        ("synthetic-sdpa-math", "math"),
        ("cpu-sdpa-auto", "flash"),
        ("cpu-sdpa-flash", "flash"),
        ("cpu-sdpa-math", "math"),
        ("cpu-decode-cat", "flash"),
        ("cpu-decode-preallocated", "flash"),
    ],
)
def test_samples_have_one_call_a_forward(samples: Path, sample: str, backend: str) -> None:
    calls = load_trace(samples / f"{sample}.json.gz").table("calls")
    assert calls["forward"].to_list() == [0, 1, 2]
    assert calls["backend"].to_list() == [backend] * 3
    assert calls["name"].to_list() == [SDPA] * 3
    assert calls["dtype"].to_list() == ["bf16"] * 3
    assert calls["causal"].to_list() == ["decode" not in sample] * 3


@pytest.mark.parametrize(
    "sample", ["synthetic-naive", "synthetic-naive-inplace", "cpu-naive", "cpu-naive-inplace"]
)
def test_attention_by_hand_is_no_call(samples: Path, sample: str) -> None:
    assert load_trace(samples / f"{sample}.json.gz").table("calls").is_empty()


def test_speed_of_a_sample(samples: Path) -> None:
    calls = load_trace(samples / "synthetic-sdpa-flash.json.gz").table("calls")
    # 8 batches of 16 heads, 1024 queries and keys, 64 features; half of it under a causal mask.
    flop = 4 * 8 * 16 * 1024 * 1024 * 64 / 2
    assert flop == 17_179_869_184
    assert calls["gpu_busy_us"][0] == 145.478
    assert calls["tflops"][0] == pytest.approx(flop / 145.478e-6 / 1e12)
    assert calls["tflops"][0] == pytest.approx(118.09, abs=0.01)


def test_on_a_cpu_there_is_no_speed(samples: Path) -> None:
    calls = load_trace(samples / "cpu-sdpa-flash.json.gz").table("calls")
    assert calls["tflops"].null_count() == calls.height


@pytest.mark.parametrize(
    ("args", "flop"),
    [
        (shapes([2, 4, 100, 50], [2, 4, 100, 50], [2, 4, 100, 50]), 4 * 8 * 100 * 100 * 50),
        (shapes([2, 4, 100, 50], [2, 4, 100, 50], [2, 4, 100, 50], causal=True), 8e6),
        # A decoding step; fewer heads of keys; another size of the values; no heads.
        (shapes([2, 4, 1, 50], [2, 4, 100, 50], [2, 4, 100, 50]), 4 * 8 * 100 * 50),
        (shapes([2, 4, 1, 50], [2, 1, 100, 50], [2, 1, 100, 50]), 4 * 8 * 100 * 50),
        (shapes([2, 4, 1, 50], [2, 4, 100, 50], [2, 4, 100, 10]), 2 * 8 * 100 * 60),
        (shapes([6, 1, 50], [6, 100, 50], [6, 100, 50]), 4 * 6 * 100 * 50),
        # How a causal mask is aligned is not known where queries and keys differ in number.
        (shapes([2, 4, 1, 50], [2, 4, 100, 50], [2, 4, 100, 50], causal=True), None),
        (shapes([2, 4, 1, 50], [2, 4, 100, 50], [2, 4, 100, 50], causal=None), None),
        (shapes([2, 4, 1, 50], [2, 4, 100, 49], [2, 4, 100, 50]), None),
        (shapes([], [], []), None),
        ({}, None),
    ],
)
def test_speed(make_trace: MakeTrace, args: dict[str, Any], flop: float | None) -> None:
    speed = one_call(make_trace, **args)["tflops"]
    assert speed == (None if flop is None else pytest.approx(flop / 100e-6 / 1e12))


def test_packed_sequences_have_no_known_size(make_trace: MakeTrace) -> None:
    name = "aten::_efficient_attention_forward"
    concrete = ["", "", "", "", "", "", "", "", "0.", "1", "False", "", "", ""]
    dims: list[list[int]] = [[1, 8, 4, 64]] * 3 + [[]] * 11
    args = {"Input Dims": dims, "Concrete Inputs": concrete}
    dense = one_call(make_trace, name=name, **args)
    assert (dense["backend"], dense["causal"]) == ("efficient", True)
    assert dense["tflops"] == pytest.approx(4 * 4 * 8 * 8 * 64 / 2 / 100e-6 / 1e12)
    packed = one_call(make_trace, name=name, **{**args, "Input Dims": [*dims[:4], [3], *dims[5:]]})
    assert packed["shapes"] == dense["shapes"] == "[[1,8,4,64],[1,8,4,64],[1,8,4,64]]"
    assert packed["tflops"] is None


@pytest.mark.parametrize(
    ("name", "inside", "backend"),
    [
        (SDPA, None, None),
        (SDPA, "aten::_fused_sdp_choice", None),
        (SDPA, MATH, "math"),
        (SDPA, FLASH, "flash"),
        (SDPA, "aten::_scaled_dot_product_flash_attention_for_cpu", "flash"),
        (SDPA, "aten::_scaled_dot_product_efficient_attention", "efficient"),
        (SDPA, "aten::_scaled_dot_product_cudnn_attention", "cudnn"),
        (SDPA, "aten::_scaled_dot_product_fused_attention_overrideable", "overrideable"),
        (SDPA, "aten::_scaled_dot_product_new_attention", "other"),
        ("aten::_flash_attention_forward", None, "flash"),
        ("flash_attn::_flash_attn_forward", None, "flash_attn"),
        ("flash_attn_3::fwd", None, "flash_attn"),
        ("FlashAttnFunc", "flash_attn::_flash_attn_forward", "flash_attn"),
        ("FlashAttnVarlenQKVPackedFunc", None, "flash_attn"),
        ("vllm::unified_attention_with_output", None, None),
        ("vllm::unified_attention_with_output", "_vllm_fa2_C::varlen_fwd", "flash_attn"),
        ("xformers::efficient_attention_forward_cutlass", None, "xformers"),
        ("flex_attention", None, "flex"),
        ("triton_tem_fused_flex_attention_0", None, "flex"),
    ],
)
def test_backends(
    make_trace: MakeTrace, name: str, inside: str | None, backend: str | None
) -> None:
    inner = [] if inside is None else [op(inside, 5, 40)]
    call = one_call(make_trace, *inner, name=name)
    assert (call["name"], call["backend"], call["op_chain"]) == (name, backend, name)
    assert backend is None or backend in BACKENDS


@pytest.mark.parametrize(
    "name",
    [
        "aten::_scaled_dot_product_flash_attention_backward",
        "aten::_flash_attention_backward",
        "ScaledDotProductFlashAttentionBackward0",
        "autograd::engine::evaluate_function: FlashAttnFuncBackward",
        "FlashAttnFuncBackward",
        "flash_attn::_flash_attn_backward",
        "flash_attn_3::bwd",
        "xformers::efficient_attention_backward_cutlass",
        "triton_tem_fused_flex_attention_backward_1",
        "triton_poi_fused_flex_attention_2",
        "_C_cache_ops::reshape_and_cache_flash",
        "aten::_fused_sdp_choice",
        "aten::bmm",
    ],
)
def test_no_calls(make_trace: MakeTrace, name: str) -> None:
    assert make_trace([op(name, 0, 50)]).table("calls").is_empty()


def test_work_belongs_to_the_call_that_launches_it(make_trace: MakeTrace) -> None:
    backward = {"Fwd thread id": 1, "Sequence number": 3}
    trace = make_trace([
        mark("attn_fwd", 0, 200),
        op(SDPA, 10, 40), op(FLASH, 15, 30), launch(1, 20), launch(2, 30),
        op("aten::add", 60, 10), launch(3, 62),
        op(SDPA, 100, 40), op(MATH, 105, 30), launch(4, 110),
        # Another thread's backward is no part of the call that is open meanwhile.
        op("autograd::engine::evaluate_function: X", 112, 9, AUTOGRAD, **backward),
        launch(5, 115, AUTOGRAD),
        kernel(1, 300, 10), kernel(2, 305, 10), kernel(3, 330, 5), kernel(4, 340, 5),
        kernel(5, 350, 5), kernel(None, 360, 5),
    ])  # fmt: skip
    calls = trace.table("calls")
    assert calls["gpu_busy_us"].to_list() == [15, 5]
    assert calls["gpu_sum_us"].to_list() == [20, 5]
    assert calls["launches"].to_list() == [2, 1]
    assert calls["period_us"].to_list() == [90, None]
    assert calls["cpu_us"].to_list() == [40, 40]
    assert calls["backend"].to_list() == ["flash", "math"]
    assert calls["region"].to_list() == ["attn_fwd"] * 2
    assert calls["forward"].to_list() == [0, 0]
    tables, per = TraceTables(trace), Per("call")
    assert tables.unit_index(TABLES["kernels"], per).to_list() == [0, 0, None, 1, None, None]
    assert tables.unit_index(TABLES["launches"], per).to_list() == [0, 0, None, 1, None]
    assert tables.unit_index(TABLES["ops"], per).to_list() == [0, 0, None, 1, 1, None]
    assert tables.unit_index(CALLS, per).to_list() == [0, 1]


def test_a_recomputed_call_of_the_backward_is_one(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 0, 100, AUTOGRAD),
        op(SDPA, 10, 40, AUTOGRAD), launch(1, 20, AUTOGRAD), kernel(1, 300, 10),
    ])  # fmt: skip
    assert trace.table("calls")["gpu_busy_us"].to_list() == [10]


def test_the_columns_are_those_of_the_catalogue(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    assert dict(trace.table("calls").schema) == CALLS.schema
    assert build_calls(trace.work_of_calls).is_empty()


def attention_calls(trace: Trace) -> dict[tuple[str, str | None], int]:
    counts = trace.table("calls").group_by("name", "backend").len()
    return {(name, backend): number for name, backend, number in counts.iter_rows()}


VLLM = "vllm::unified_attention_with_output"


@pytest.mark.parametrize(
    ("folder", "calls"),
    [
        ("gen-cpu-train", {(SDPA, "math"): 2}),
        ("gen-cpu-sdpa-flash", {(SDPA, "flash"): 3}),
        ("gen-cpu-math-stack", {(SDPA, "math"): 3}),
        ("tl-b200", {(VLLM, None): 36}),
        ("tl-h100-bert", {(SDPA, "flash"): 4}),
        ("tl-h100-qwen", {(SDPA, "flash"): 24}),
        ("tl-mi300-qwen", {(SDPA, "flash"): 24}),
        ("tl-mi300-triton", {(FLASH, "flash"): 1}),
        ("tl-sdpa01", {(SDPA, "flash"): 10}),
        ("toke-llama0", {(SDPA, "efficient"): 4}),
        ("hta-ns", {}),
    ],
)
def test_real_traces(
    real_traces: Path, folder: str, calls: dict[tuple[str, str | None], int]
) -> None:
    file = next(path for path in (real_traces / folder).iterdir() if ".json" in path.name)
    assert attention_calls(load_trace(file)) == calls
