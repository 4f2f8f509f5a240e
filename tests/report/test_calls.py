"""``analyze calls``: what ran of each attention call, how fast, and what kept it off flash."""

import json
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML

from analyze.api import check
from analyze.kernels.attention import IMPLEMENTATIONS, attention_implementation, is_unfused
from analyze.kernels.classify import classify
from analyze.kernels.device import DeviceLimits
from analyze.kernels.peaks import published_peak
from analyze.report import console
from analyze.report.calls import calls_report
from analyze.report.calls_text import render_calls
from analyze.tables.build import Trace, load_trace
from analyze.tables.flash_obstacles import OBSTACLES
from tests.conftest import MakeTrace, RunAnalyze
from tests.report.test_golden_text import compare
from tests.report.test_kernels import A100, events_of
from tests.tables.test_attribution import Event, kernel, launch, mark, op

SDPA = "aten::scaled_dot_product_attention"
MATH = "aten::_scaled_dot_product_attention_math"
EFFICIENT = "aten::_scaled_dot_product_efficient_attention"
FLASH = "aten::_scaled_dot_product_flash_attention"
SQUARE = [[2, 4, 100, 64]] * 3
SCORES, OUTPUT = [[6, 10, 64], [6, 64, 30]], [[6, 10, 30], [6, 30, 32]]


def asked(
    shapes: list[list[int]] = SQUARE,
    mask: list[int] | None = None,
    dtype: str = "c10::BFloat16",
    dropout: str = "0.",
    causal: bool = False,
    grouped: bool = False,
) -> Event:
    """Arguments of an SDPA op as Kineto writes them."""
    return {
        "Input Dims": [*shapes, mask or [], [], [], [], []],
        "Input type": [*[dtype] * 3, "float" if mask else "", "Scalar", "Scalar", "", "Scalar"],
        "Concrete Inputs": ["", "", "", "", dropout, str(causal), "", str(grouped)],
    }


def lying(*last_strides: int, head: int = 64) -> Event:
    """Arguments of an SDPA op whose query, key and value lie in memory with these last strides."""
    shape = [2, 4, 100, head]
    strides = [[400 * head, 100 * head, head, last] for last in last_strides]
    return {**asked([shape] * 3), "Input Strides": [*strides, [], [], [], [], []]}


def traced(
    make_trace: MakeTrace,
    args: Event,
    inside: str = MATH,
    device: Event | None = None,
    gpu: bool = True,
) -> Trace:
    """Return a trace with one SDPA call, and a kernel of 100 us that it launches."""
    events = [op(SDPA, 0, 50, **args), op(inside, 5, 40)]
    events += [launch(1, 20), kernel(1, 60, 100)] if gpu else []
    return make_trace(events, deviceProperties=[device or A100])


def group(trace: Trace) -> dict[str, Any]:
    (only,) = calls_report(trace)["groups"]
    return dict(only)


def test_capture_says_that_it_pinned_a_backend(samples: Path) -> None:
    found = {
        name: group(load_trace(samples / f"{name}.json.gz"))["pinned_by_capture"]
        for name in ("cpu-sdpa-math", "cpu-sdpa-auto", "synthetic-sdpa-math")
    }
    assert found == {"cpu-sdpa-math": True, "cpu-sdpa-auto": False, "synthetic-sdpa-math": False}


@pytest.mark.parametrize("name", ["cpu-sdpa-math", "synthetic-naive", "synthetic-sdpa-math"])
def test_the_text(name: str, samples: Path) -> None:
    report = calls_report(load_trace(samples / f"{name}.json.gz"))
    compare(render_calls(report), f"{name}.calls", samples)


def test_80_columns_are_enough(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "DEFAULT_WIDTH", 80)
    report = calls_report(load_trace(samples / "synthetic-sdpa-math.json.gz"))
    assert max(len(line) for line in render_calls(report).splitlines()[1:]) <= 80


@pytest.mark.parametrize(
    ("args", "obstacles"),
    [
        (asked(), []),
        (asked(causal=True), []),
        (asked(dropout="0.1"), []),
        (asked(dtype="c10::Half"), []),
        (asked(dtype="float"), ["dtype"]),
        (asked(dtype="double"), ["dtype"]),
        (asked(mask=[100, 100]), ["mask"]),
        (asked([[2, 4, 100, 264]] * 3), ["head_size"]),
        (asked([[2, 4, 100, 256]] * 3), []),
        (asked([[2, 4, 100, 64], [2, 4, 100, 64], [2, 4, 100, 32]]), ["head_size"]),
        (asked([[2, 4, 1, 64], [2, 4, 100, 64], [2, 4, 100, 64]]), []),
        (asked([[2, 4, 1, 64], [2, 4, 100, 64], [2, 4, 100, 64]], causal=True), ["causal"]),
        (asked([[4, 100, 64]] * 3), ["dimensions"]),
        (asked([[2, 4, 9, 64], [2, 1, 9, 64], [2, 1, 9, 64]]), ["heads"]),
        (asked([[2, 4, 9, 64], [2, 1, 9, 64], [2, 1, 9, 64]], grouped=True), []),
        (asked([[2, 4, 9, 64], [1, 4, 9, 64], [1, 4, 9, 64]], grouped=True), ["heads"]),
        (asked([[2, 4, 0, 64], [2, 4, 9, 64], [2, 4, 9, 64]]), ["empty"]),
        (asked([[2, 4, 9, 64]] * 3, [9, 9], "float", causal=True), ["dtype", "mask"]),
        ({}, []),
        (lying(1, 1, 1), []),
        (lying(1, 100, 1), ["layout"]),
        (lying(1, 1, 0), ["layout"]),
        ({"Input Strides": lying(3, 1, 1)["Input Strides"]}, ["layout"]),
        (lying(100, 100, 100, head=1), []),
        ({**asked(), "Input Strides": [[], ["2"], [2, True]]}, []),
        ({**asked(), "Input Strides": 7}, []),
        # Nothing is said of what is no shape, and nothing breaks.
        (asked([[["x"], {}], "y", None]), []),  # type: ignore[list-item]
        ({"Input Dims": [7, 7, 7], "Concrete Inputs": [None, 1, {}, [], "many", "?"]}, []),
    ],
)
@pytest.mark.parametrize("backend", [MATH, EFFICIENT])
def test_what_flash_attention_on_a_gpu_does_not_take(
    make_trace: MakeTrace, args: Event, obstacles: list[str], backend: str
) -> None:
    found = group(traced(make_trace, args, backend))
    assert found["flash_obstacles"] == obstacles
    assert set(obstacles) <= set(OBSTACLES)


@pytest.mark.parametrize(
    ("capability", "head", "dropout", "trained", "obstacles"),
    [
        ((8, 6), 224, "0.", True, ["requires_grad"]),
        ((8, 9), 193, "0.", True, ["requires_grad"]),
        ((12, 0), 200, "0.", True, ["requires_grad"]),
        ((8, 6), 224, "0.", False, []),
        ((8, 6), 192, "0.1", True, []),
        ((8, 6), 256, "0.", True, []),
        ((8, 6), 256, "0.1", True, ["requires_grad"]),
        ((8, 0), 224, "0.", True, []),
        ((9, 0), 224, "0.1", True, []),
    ],
)
def test_smaller_chips_cannot_train_every_head(
    make_trace: MakeTrace,
    capability: tuple[int, int],
    head: int,
    dropout: str,
    trained: bool,
    obstacles: list[str],
) -> None:
    major, minor = capability
    device = {**A100, "name": "some GPU", "computeMajor": major, "computeMinor": minor}
    args = asked([[2, 4, 100, head]] * 3, dropout=dropout)
    events = [op(SDPA, 0, 50, **args), op(MATH, 5, 40), launch(1, 20), kernel(1, 60, 100)]
    events += [op("autograd::engine::evaluate_function: MulBackward0", 200, 20)] if trained else []
    assert group(make_trace(events, deviceProperties=[device]))["flash_obstacles"] == obstacles


def test_old_gpus_have_no_flash_attention(make_trace: MakeTrace) -> None:
    t4 = {**A100, "name": "Tesla T4", "computeMajor": 7, "computeMinor": 5, "numSms": 40}
    assert group(traced(make_trace, asked(), device=t4))["flash_obstacles"] == [
        "compute_capability"
    ]


@pytest.mark.parametrize(
    ("args", "obstacles"),
    [
        (asked(), []),
        (asked(dropout="0.1"), ["dropout"]),
        (asked(dtype="float", mask=[100, 100]), []),
        (asked([[2, 4, 100, 264]] * 3), []),
        (asked([[2, 4, 100, 64], [2, 4, 100, 64], [2, 4, 100, 32]]), ["head_size"]),
        (lying(1, 1, 100), ["layout"]),
        (lying(100, 100, 100, head=1), ["layout"]),
    ],
)
def test_a_cpu_has_other_limits(make_trace: MakeTrace, args: Event, obstacles: list[str]) -> None:
    found = group(traced(make_trace, args, gpu=False))
    assert found["flash_obstacles"] == obstacles
    assert (found["gpu_busy_us"], found["kernels_per_call"], found["tflops"]) == (None, None, None)


def transposed(*shape: int) -> torch.Tensor:
    return torch.randn(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("contiguous", [torch.randn(2, 2, 32, 16)] * 3),
        ("heads beside features", [torch.randn(2, 32, 2, 16).transpose(1, 2)] * 3),
        ("key transposed", [torch.randn(2, 2, 32, 16), transposed(2, 2, 32, 16)] * 2),
        ("value transposed", [*[torch.randn(2, 2, 32, 16)] * 2, transposed(2, 2, 32, 16)]),
        ("interleaved", list(torch.randn(2, 2, 32, 16, 3).unbind(-1))),
        ("expanded", [torch.randn(2, 2, 32, 1).expand(2, 2, 32, 16)] * 3),
        ("heads of one feature", [transposed(2, 2, 32, 1)] * 3),
    ],
)
def test_torch_takes_the_math_backend_where_and_only_where_the_layout_is_named(
    name: str, inputs: list[torch.Tensor], tmp_path: Path
) -> None:
    """Record what torch does with inputs that lie in memory in different ways."""
    with torch.profiler.profile(record_shapes=True) as profiler:
        torch.nn.functional.scaled_dot_product_attention(*inputs[:3])
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    found = group(load_trace(tmp_path / "trace.json"))
    fits = all(tensor.stride(-1) == 1 for tensor in inputs[:3])
    expected = ("flash", []) if fits else ("math", ["layout"])
    assert (found["backend"], found["flash_obstacles"]) == expected, name


def test_the_rule_advises_what_calls_says(tmp_path: Path) -> None:
    query = torch.randn(2, 2, 32, 16)
    with torch.profiler.profile(record_shapes=True) as profiler:
        torch.nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    assert group(load_trace(tmp_path / "trace.json"))["flash_obstacles"] == ["dropout"]
    (found,) = check(tmp_path / "trace.json", select=["ATTN101"]).findings
    assert found.fix is not None
    assert "does not take this call: dropout" in found.fix
    assert (found.savings_of, found.savings_us) == ("cpu", found.measures["cpu"])


def test_nothing_is_said_where_it_is_not_known_where_a_call_ran(make_trace: MakeTrace) -> None:
    trace = make_trace(
        [op(SDPA, 0, 50, **asked(dtype="float")), op(MATH, 5, 40), kernel(None, 9, 1)]
    )
    assert group(trace)["flash_obstacles"] == []
    assert "no GPU work of it is in the file" in render_calls(calls_report(trace))


def test_only_the_op_that_chooses_is_asked_why(make_trace: MakeTrace) -> None:
    args = asked(dtype="float")
    assert group(traced(make_trace, args, FLASH))["flash_obstacles"] == []
    trace = make_trace([op(MATH, 0, 50, **args), launch(1, 20), kernel(1, 60, 100)])
    assert group(trace)["flash_obstacles"] == []
    assert f"{MATH} was called by its own name" in render_calls(calls_report(trace))


def test_the_reason_is_a_sentence(make_trace: MakeTrace) -> None:
    text = render_calls(calls_report(traced(make_trace, asked(mask=[100, 100], dtype="float"))))
    assert "it takes fp16 and bf16, not fp32; it takes no mask tensor, and one is given" in text
    apart = render_calls(calls_report(traced(make_trace, lying(1, 100, 1))))
    assert "last dimension of query, key and value must be contiguous" in apart
    unexplained = render_calls(calls_report(traced(make_trace, asked())))
    assert "the trace does not show why: what is recorded of shapes" in unexplained
    nothing_recorded = render_calls(calls_report(traced(make_trace, {})))
    assert "does not show why: input shapes and dtypes were not recorded" in nothing_recorded


def test_a_dtype_that_was_not_recorded_is_that_of_the_fused_kernel(make_trace: MakeTrace) -> None:
    fused = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)"
    events = [op(SDPA, 0, 50), op(EFFICIENT, 5, 40), launch(1, 20), kernel(1, 60, 100, fused)]
    found = group(make_trace(events, deviceProperties=[A100]))
    assert (found["dtype"], found["kernel_precision"]) == (None, "fp32")
    assert found["flash_obstacles"] == ["dtype"]


@pytest.mark.parametrize(
    ("name", "implementation"),
    [
        ("void pytorch_flash::flash_fwd_kernel<T<64, 128, cutlass::bfloat16_t>>(P)", "flash2"),
        ("void flash::flash_fwd_splitkv_kernel<T<128>>(Flash_fwd_params)", "flash2"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<M<2>>>(x)", "flash3"),
        ("kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttention", "flash4"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(AttentionKernel<x>::Params)", "efficient"),
        ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64x64", "cudnn"),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128", "trtllm"),
        ("triton_tem_fused_flex_attention_0", "flex"),
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<T<1>>(x)", "flashinfer"),
        ("kernel_unified_attention_2d", "triton"),
        ("_fwd_grouped_kernel_stage1", "triton"),
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<ck_tile::fp8>(x)", "paged"),
        ("attn_fwd", "aotriton"),
        ("attn_fwd.kd", "aotriton"),
        ("_ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_25BlockFmhaPipelineQRKSVS", "ck"),
        ("aiter::fmha_fwd_hd128_bf16_causal", "aiter"),
        ("sage_fwd_kernel", "sage"),
        ("fmha_fwd_loop_kernel", "flash1"),
        # No forward of attention, or none that is known.
        ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<x>(y)", None),
        ("vllm::reshape_and_cache_flash_kernel", None),
        ("triton_tem_fused_mm_0", None),
        ("ampere_sgemm_128x64_tn", None),
        ("_fwd_kernel", None),
    ],
)  # fmt: skip
def test_implementations_by_kernel_name(name: str, implementation: str | None) -> None:
    assert attention_implementation(name, classify(name).family) == implementation
    assert implementation is None or implementation in IMPLEMENTATIONS


def test_unfused_is_a_product_and_a_softmax_without_a_fused_kernel() -> None:
    assert is_unfused(["gemm", "softmax", "elementwise", None])
    assert not is_unfused(["gemm", "softmax", "attn.fwd"])
    assert not is_unfused(["softmax", "elementwise"])
    assert not is_unfused([None])


@pytest.mark.parametrize(
    ("name", "sms", "peak"),
    [
        ("NVIDIA A100-SXM4-80GB", 108, 312),
        ("NVIDIA A100 80GB PCIe", 108, 312),
        ("NVIDIA H100 80GB HBM3", 132, 989.4),
        ("NVIDIA H200", 132, 989),
        ("NVIDIA B200", 148, 2250),
        ("AMD Instinct MI300X", 304, 1307.4),
        # A slice of a device, a partition, a product of a like name, an unknown one.
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 42, None),
        ("NVIDIA A100-SXM4-80GB", 42, None),
        ("AMD Instinct MI300X", 38, None),
        ("NVIDIA H200 NVL", 132, None),
        ("NVIDIA GeForce RTX 9999", 132, None),
        ("", 304, None),
    ],
)
def test_peaks(name: str, sms: int, peak: float | None) -> None:
    found = published_peak(DeviceLimits.from_properties({**A100, "name": name, "numSms": sms}))
    assert (found.tflops["bf16"] if found else None) == peak
    assert found is None or found.source


def test_every_peak_says_who_confirms_it() -> None:
    text = files("analyze.kernels").joinpath("peaks.yaml").read_text(encoding="utf-8")
    entries = YAML(typ="safe").load(text)["peaks"]
    assert all(entry["checked"] and entry["source"] for entry in entries)


def test_speed_as_a_share_of_the_peak(make_trace: MakeTrace) -> None:
    shapes = [[8, 16, 1024, 64]] * 3
    found = group(traced(make_trace, asked(shapes), FLASH))
    flop = 4 * 8 * 16 * 1024 * 1024 * 64
    assert found["tflops"] == pytest.approx(flop / 100e-6 / 1e12, abs=0.001)
    assert found["peak_share"] == pytest.approx(flop / 100e-6 / 1e12 / 312)
    fp32 = group(traced(make_trace, asked(shapes, dtype="float")))
    assert fp32["tflops"] == found["tflops"]
    assert (fp32["peak_tflops"], fp32["peak_share"]) == (None, None)


def test_alike_calls_are_one_kind_whatever_their_step(make_trace: MakeTrace) -> None:
    events = []
    for number in range(3):
        at = 1000 * number
        name = "layer" if number == 2 else f"ProfilerStep#{number}"
        events += [mark(name, at, 900), op(SDPA, at + 10, 50, **asked()), op(FLASH, at + 15, 40)]
        events += [launch(number + 1, at + 20), kernel(number + 1, at + 70, 100 + number)]
    report = calls_report(make_trace(events))
    kinds = [(kind["region"], kind["calls"], kind["gpu_busy_us"]) for kind in report["groups"]]
    assert kinds == [(None, 2, 201), ("layer", 1, 102)]
    assert report["groups"][0]["gpu_busy_per_call_us"] == 100.5
    (of_group,) = report["groups"][0]["kernels"]
    assert (of_group["count"], of_group["total_us"]) == (2, 201)
    assert "time" not in of_group


@pytest.mark.parametrize(
    ("gpu", "cpu", "said"),
    [
        ([100, 199, 110], [50, 99, 60], None),
        ([100, 126, 250], [50, 55, 60], "GPU busy 100 us to 250 us (shortest to longest call)"),
        ([100, 101, 102], [50, 500, 60], "CPU 50 us to 500 us (shortest to longest call)"),
        ([9, 9, 20], [40, 80, 90], "GPU busy 9 us to 20 us; CPU 40 us to 90 us (shortest to"),
    ],
)
def test_calls_that_differ_are_told_beside_their_median(
    make_trace: MakeTrace, gpu: list[int], cpu: list[int], said: str | None
) -> None:
    events = []
    for number, (busy, length) in enumerate(zip(gpu, cpu, strict=True)):
        at = 1000 * number
        events += [op(SDPA, at, length, **asked()), op(FLASH, at + 5, 30)]
        events += [launch(number + 1, at + 20), kernel(number + 1, at + 600, busy)]
    report = calls_report(make_trace(events))
    (found,) = report["groups"]
    assert (found["gpu_busy_min_us"], found["gpu_busy_max_us"]) == (min(gpu), max(gpu))
    assert (found["cpu_min_us"], found["cpu_max_us"]) == (min(cpu), max(cpu))
    text = " ".join(render_calls(report).split())
    assert said in text if said is not None else "varies" not in text


def test_where_no_gpu_work_was_recorded_nothing_is_said_of_its_spread(
    make_trace: MakeTrace,
) -> None:
    events = [op(SDPA, 0, 20, **asked()), op(SDPA, 100, 60, **asked())]
    report = calls_report(make_trace(events))
    (found,) = report["groups"]
    assert (found["gpu_busy_min_us"], found["gpu_busy_max_us"]) == (None, None)
    assert "varies CPU 20 us to 60 us (shortest" in " ".join(render_calls(report).split())


def test_calls_without_gpu_work_do_not_vary_by_it(make_trace: MakeTrace) -> None:
    events = [op(SDPA, 0, 20, **asked()), op(SDPA, 100, 20, **asked()), kernel(None, 300, 5)]
    assert "varies" not in render_calls(calls_report(make_trace(events)))


def by_hand(first: tuple[str, list[list[int]]], last: list[list[int]]) -> list[Event]:
    name, factors = first
    bf16: Event = {"Input type": ["c10::BFloat16"] * 3}
    return [
        op(name, 0, 10, **{"Input Dims": factors, **bf16}), launch(1, 2),
        kernel(1, 100, 40, "ampere_sgemm_128x64_tn"),
        op("aten::_softmax", 20, 10), launch(2, 22), kernel(2, 140, 20, "softmax_warp_forward"),
        op("aten::bmm", 40, 10, **{"Input Dims": last, **bf16}), launch(3, 42),
        kernel(3, 160, 40, "ampere_sgemm_128x64_nn"),
        op("aten::add", 60, 10), launch(4, 62), kernel(4, 300, 7),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "last", "shapes"),
    [
        (("aten::bmm", SCORES), OUTPUT, [[6, 10, 64], [6, 30, 64], [6, 30, 32]]),
        (("aten::baddbmm", [[1, 1, 1], *SCORES]), OUTPUT, [[6, 10, 64], [6, 30, 64], [6, 30, 32]]),
        (("aten::bmm", SCORES), [[6, 10, 31], [6, 31, 32]], None),
        (("aten::bmm", []), [], None),
    ],
)  # fmt: skip
def test_attention_by_hand_is_listed(
    make_trace: MakeTrace,
    first: tuple[str, list[list[int]]],
    last: list[list[int]],
    shapes: list[list[int]] | None,
) -> None:
    trace = make_trace(by_hand(first, last), deviceProperties=[A100])
    report = calls_report(trace)
    assert (report["calls"], report["calls_by_hand"]) == (0, 1)
    found = group(trace)
    assert (found["by_hand"], found["implementation"], found["shapes"]) == (True, "unfused", shapes)
    assert (found["kernels_per_call"], found["gpu_busy_us"], found["cpu_us"]) == (3, 100, 50)
    flop = 2 * 6 * 10 * 30 * (64 + 32)
    assert found["tflops"] == (
        None if shapes is None else pytest.approx(flop / 100e-6 / 1e12, abs=0.001)
    )
    assert "written out as ops; no attention op was called" in render_calls(report)


def test_attention_kernels_outside_calls_are_not_lost(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 0, name="cudaGraphLaunch"), launch(2, 9), launch(3, 12),
        kernel(1, 100, 5, "kernel_unified_attention_2d"),
        kernel(1, 110, 5, "kernel_unified_attention_2d"),
        kernel(None, 120, 4, "flash_fwd_kernel"), kernel(2, 130, 3, "flash_bwd_kernel"),
        kernel(3, 140, 9, "ampere_sgemm_128x64_tn"),
    ])  # fmt: skip
    report = calls_report(trace)
    assert report["groups"] == []
    outside = [
        (k["short_name"], k["implementation"], k["count"], k["from_graphs"], k["unlinked"])
        for k in report["kernels_outside_calls"]
    ]
    assert [k["total_us"] for k in report["kernels_outside_calls"]] == [10, 4, 3]
    assert not any(key.startswith("time") for k in report["kernels_outside_calls"] for key in k)
    assert outside == [
        ("kernel_unified_attention_2d", "triton", 2, 2, 0),
        ("flash_fwd_kernel", "flash2", 1, 0, 1),
        ("flash_bwd_kernel", None, 1, 0, 0),
    ]


def test_names_are_data(make_trace: MakeTrace) -> None:
    events = [mark("[red]\x1b[31m", 0, 100), op(SDPA, 10, 50, **asked()), op(FLASH, 15, 40)]
    text = render_calls(calls_report(make_trace(events)))
    assert "in [red]\\x1b[31m" in text
    assert "\x1b" not in text


def test_the_command(run_analyze: RunAnalyze, samples: Path) -> None:
    names = ("synthetic-sdpa-math", "synthetic-naive")
    done = run_analyze("calls", *(samples / f"{n}.json.gz" for n in names), "--format", "json")
    assert done.returncode == 0, done.stderr
    math, naive = json.loads(done.stdout)
    assert (math["schema_version"], math["calls"], math["calls_by_hand"]) == (1, 3, 0)
    assert (naive["calls"], naive["calls_by_hand"]) == (0, 3)
    assert math["groups"][0].keys() == naive["groups"][0].keys() == {
        "by_hand", "name", "backend", "implementation", "dtype", "kernel_precision", "causal",
        "region", "root_op", "shapes", "calls", "kernels_per_call", "gpu_ops", "gpu_busy_us",
        "gpu_busy_per_call_us", "gpu_busy_min_us", "gpu_busy_max_us", "gpu_sum_us", "cpu_us",
        "cpu_per_call_us", "cpu_min_us", "cpu_max_us", "tflops", "peak_tflops",
        "peak_share", "pinned_by_capture", "flash_obstacles", "kernels", "sources",
    }  # fmt: skip
    assert math["groups"][0]["kernels_per_call"] == 20
    one = run_analyze("calls", samples / "synthetic-sdpa-flash.json.gz", "--limit", 1)
    assert "FlashAttention 2 (backend flash); bf16, causal" in one.stdout


def test_that_there_is_no_attention_is_a_result_where_ops_were_recorded(
    run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [op("aten::add", 0, 5)]}))
    done = run_analyze("calls", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no attention was found: no attention op" in done.stdout
    assert json.loads(run_analyze("calls", path, "--format", "json").stdout)["groups"] == []
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 5}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel]}))
    unknown = run_analyze("calls", path)
    assert (unknown.returncode, unknown.stdout, unknown.stderr.count("\n")) == (2, "", 1)
    assert "no attention kernel was found, and" in unknown.stderr


def outermost(events: list[Event], wanted: str) -> int:
    """Count the ops of a name that lie in no other of that name on their thread."""
    found, open_until = 0, defaultdict[tuple[Any, Any], Any](int)
    ops = (e for e in events if e.get("cat") == "cpu_op" and e["name"] == wanted)
    for event in sorted(ops, key=lambda e: (e["ts"], -e["dur"])):
        thread = (event["pid"], event["tid"])
        if event["ts"] >= open_until[thread]:
            found += 1
            open_until[thread] = event["ts"] + event["dur"]
    return found


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("gen-cpu-train", {("math", None): 2}),
        ("gen-cpu-sdpa-flash", {("flash", None): 3}),
        ("tl-h100-bert", {("flash", "flash2"): 4}),
        ("tl-h100-qwen", {("flash", "flash2"): 24}),
        ("tl-mi300-qwen", {("flash", "aotriton"): 24}),
        ("tl-sdpa01", {("flash", "aotriton"): 10}),
        ("toke-llama0", {("efficient", "efficient"): 4}),
    ],
)
def test_real_traces_hold_as_many_calls_as_their_json(
    real_traces: Path, folder: str, expected: dict[tuple[str, str | None], int]
) -> None:
    (path,) = (real_traces / folder).glob("*.json*")
    found: Counter[tuple[str, str | None]] = Counter()
    for kind in calls_report(load_trace(path))["groups"]:
        found[kind["backend"], kind["implementation"]] += kind["calls"]
    assert found == expected
    assert found.total() == outermost(events_of(real_traces / folder), SDPA)


def test_real_hand_written_attention(real_traces: Path) -> None:
    """Count bmm, softmax, bmm on a thread in the file itself."""
    events = [
        event
        for event in events_of(real_traces / "switch-a100")
        if event.get("cat") == "cpu_op"
        and event["name"] in ("aten::bmm", "aten::_softmax", "aten::addmm")
    ]
    names = [event["name"] for event in sorted(events, key=lambda e: e["ts"])]
    pattern = ["aten::bmm", "aten::_softmax", "aten::bmm"]
    written = sum(names[i : i + 3] == pattern for i in range(len(names)))
    (path,) = (real_traces / "switch-a100").glob("*.json*")
    report = calls_report(load_trace(path))
    assert report["calls_by_hand"] == written == 10


@pytest.mark.parametrize(
    ("folder", "kernels", "from_graphs"),
    [("tl-mi300-qwen", 11, 0), ("tl-vllm-dec", 24, 24), ("tl-sgl-decode", 36, 36)],
)
def test_real_attention_kernels_outside_calls(
    real_traces: Path, folder: str, kernels: int, from_graphs: int
) -> None:
    (path,) = (real_traces / folder).glob("*.json*")
    outside = calls_report(load_trace(path))["kernels_outside_calls"]
    assert sum(kernel["count"] for kernel in outside) == kernels
    assert sum(kernel["from_graphs"] for kernel in outside) == from_graphs
