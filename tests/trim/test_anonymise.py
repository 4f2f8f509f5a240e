"""No text of whoever recorded a trace survives; what the analysis reads from it does."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.engine.loading import load_sound_rules
from analyze.engine.run import run_rules
from analyze.kernels.classify import classify
from analyze.tables.build import Trace, load_trace
from analyze.trace.raw import raw_events
from analyze.trim.anonymise import Anonymiser
from analyze.trim.known import is_library_kernel, is_listed, keys
from analyze.trim.names import Names
from analyze.trim.trimming import trim

WORD = "zebrafish"
Event = dict[str, Any]


def anonymised(event: Event, *keep: str) -> Event:
    rewritten: Event = json.loads(Anonymiser(frozenset(keep)).event(json.dumps(event).encode()))
    return rewritten


def named(category: str, *names: str, keep: tuple[str, ...] = ()) -> list[str]:
    """Return what the names of events of a category become."""
    anonymiser = Anonymiser(frozenset(keep))
    events = [{"ph": "X", "cat": category, "name": name, "ts": 1, "dur": 1} for name in names]
    return [json.loads(anonymiser.event(json.dumps(event).encode()))["name"] for event in events]


NAMES = (
    WORD, f"aten::{WORD} x", f"{WORD}::gemm", f"{WORD}Backward", f"torch.{WORD}",
    f"autograd::engine::evaluate_function: {WORD}Backward", f"ProfilerStep#{WORD}",
    f"torch::autograd::CppNode<{WORD}>", f"Optimizer.step#{WORD}.step", f"nccl:{WORD}",
    f"enumerate(DataLoader)#_{WORD}.__next__", f"## Call CompiledFxGraph {WORD} ##",
    f"triton_poi_fused_add_{WORD}_0", f"void {WORD}<float>(float*)", f"_Z9{WORD}v",
    f"void at::native::elementwise_kernel<4, {WORD}::Functor>(int)", f"ampere_{WORD}_gemm",
    f"void (anonymous namespace)::{WORD}(float*)", f"void ::{WORD}()", f"flash_{WORD}_fwd",
    f"at::native::x {WORD}", f"Memcpy HtoD ({WORD} -> Device)", f"cuda{WORD}",
    f"/home/{WORD}/train.py(3): main", f"/srv/train.py(3): {WORD}", f"{WORD}.py(3): f",
    f"/home/{WORD}/lib/python3.10/site-packages/torch/nn/modules/linear.py(3): forward",
    f"/x/lib/python3.10/site-packages/{WORD}/a.py(3): f", f"torch/{WORD}/a.py(1): f",
    f"C:\\Users\\{WORD}\\train.py(3): main", f"<built-in method {WORD} of X object at 0x7f>",
    f"<built-in function {WORD}>", f"<built-in method get of {WORD} object at 0x7f>",
    f"nn.Module: {WORD}_0", f"<frozen {WORD}>(3): f", f"[memory] {WORD}",
    f"a.py(1): __{WORD}__",
    f"10.1.2.3 {WORD}", "10.1.2.3",
    f"{WORD}\n\"<b>&amp;</b>\x1b[2J\u202e", WORD * 1000,
)  # fmt: skip

CATEGORIES = (
    "cpu_op", "user_annotation", "gpu_user_annotation", "python_function", "cuda_runtime",
    "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "cuda_event", "overhead",
    "Trace", "ac2g", "fwdbwd", "cpu_instant_event", "cuda_profiler_range", "collective_comm",
    "Operator", "Kernel", "Runtime", "kinetolint", "mtia_runtime", WORD, None,
)  # fmt: skip


def secret_events() -> list[Event]:
    """Return events with a secret in every place that can hold a text."""
    base: Event = {"ph": "X", "ts": 5, "dur": 2, "pid": 1, "tid": 1}
    events = [{**base, "cat": category, "name": name} for category in CATEGORIES for name in NAMES]
    arguments = {
        **dict.fromkeys(keys("arguments"), WORD),
        f"{WORD} key": {WORD: [WORD, {WORD: WORD}], "n": 1},
        f"10.0.0.7{WORD}": 1,
    }
    nested = {key: [[WORD], {WORD: WORD}] for key in keys("arguments")}
    known_values = (f"['{WORD}']", f"/a/{WORD}/b.py", f"cuda:{WORD}", f"1{WORD}")
    for phase in ("X", "M", "i", "C", "s", "f", WORD):
        given = (arguments, nested, *(dict.fromkeys(arguments, v) for v in known_values))
        op = {**base, "ph": phase, "cat": "cpu_op", "name": "aten::mm"}
        events += [{**op, "args": args} for args in given]
    for name in ("process_name", "thread_name", "process_labels"):
        for value in (WORD, f"thread 5 ({WORD})", f"python {WORD}", f"stream 7 {WORD}"):
            args = {"name": value, "labels": value}
            events.append({**base, "ph": "M", "name": name, "args": args})
    places = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp", "s", "args", WORD)
    values: list[Any] = [WORD, [WORD], {WORD: WORD}, f"stream {WORD}"]
    op = {**base, "cat": "cpu_op", "name": "aten::mm"}
    events += [{**op, place: value} for place in places for value in values]
    return events


def secret_metadata() -> Event:
    def filled(known: Any) -> Any:
        if isinstance(known, dict):
            return {**{key: filled(value) for key, value in known.items()}, WORD: WORD}
        devices = [f"NVIDIA {WORD}_1", f"NVIDIA {WORD}", f"A100-{WORD}"]
        return [WORD, *devices, f"2.13.0+{WORD}", f"nccl,{WORD}"]

    metadata: Event = filled(dict(keys("metadata")))
    metadata |= {"kinetolint_trim_2": filled(keys("metadata")["kinetolint_trim"])}
    metadata |= {"user": WORD, f"{WORD}_key": {"a": [WORD]}, "deviceProperties": [
        {"id": 0, "name": WORD, WORD: WORD}
    ]}  # fmt: skip
    return metadata


def test_no_secret_is_in_the_output(tmp_path: Path) -> None:
    path, output = tmp_path / f"{WORD}.json", tmp_path / "shown.json"
    events = secret_events()
    path.write_text(json.dumps({**secret_metadata(), "traceEvents": events}))
    report = trim(load_trace(path), output, None, Anonymiser())
    written = output.read_text()
    assert len(json.loads(written)["traceEvents"]) == len(events) == report.events > 1000
    assert WORD in path.read_text()
    assert WORD not in written.lower()
    assert "10.1.2.3" not in written
    assert "10.0.0.7" not in written
    assert report.replaced is not None
    assert sum(report.replaced.values()) > len(NAMES)


def test_a_second_value_under_one_key_does_not_slip_through() -> None:
    text = f'{{"ph":"X","cat":"cpu_op","name":"{WORD}","name":"aten::mm","ts":1,"dur":1}}'
    assert WORD.encode() not in Anonymiser().event(text.encode())


def test_a_trimmed_trace_does_not_name_its_source(tmp_path: Path, samples: Path) -> None:
    from analyze.trim.selection import select_forwards  # noqa: PLC0415

    path, output = tmp_path / f"{WORD}.json.gz", tmp_path / "shown.json"
    path.write_bytes((samples / "synthetic-naive.json.gz").read_bytes())
    trace = load_trace(path)
    trim(trace, output, select_forwards(trace, [(1, 1)]), Anonymiser())
    document = json.loads(output.read_text())
    assert document["kinetolint_trim"]["source"] is None
    assert document["kinetolint_trim"]["kept"] == "forward 1"
    assert WORD not in output.read_text()


def test_numbers_and_known_texts_stay() -> None:
    text = (
        '{"ph":"X","cat":"kernel","name":"ampere_sgemm_128x64_nn","pid":0,"tid":7,'
        '"ts":1712195495984501.250,"dur":1.10,"args":{"correlation":12345678901234567890123,'
        '"grid":[1,2,3],"blocks per SM":"inf","dtype":"BFloat16","stream":7}}'
    )
    assert Anonymiser().event(text.encode()).decode() == text


@pytest.mark.parametrize(
    ("category", "name", "expected"),
    [
        ("cpu_op", "aten::mm", "aten::mm"),
        ("cpu_op", "mylib::attend", "op_1"),
        ("cpu_op", "MyFunctionBackward", "op_1Backward"),
        ("cpu_op", "AddmmBackward0", "AddmmBackward0"),
        ("cpu_op", "autograd::engine::evaluate_function: MyFunctionBackward",
         "autograd::engine::evaluate_function: op_1Backward"),
        ("user_annotation", "ProfilerStep#12", "ProfilerStep#12"),
        ("user_annotation", "attn_fwd", "attn_fwd"),
        ("user_annotation", "my region", "annotation_1"),
        ("user_annotation", "my dataloader", "annotation_1_dataloader"),
        ("user_annotation", "Optimizer.step#AdamW.step", "Optimizer.step#AdamW.step"),
        ("user_annotation", "Optimizer.step#Mine.step", "Optimizer.step#class_1.step"),
        ("kernel", "my_kernel", "kernel_1"),
        ("kernel", "triton_poi_fused_mine_0", "triton_poi_kernel_1"),
        ("kernel", "my_gemm_bf16", "kernel_1_gemm<bf16>"),
        ("python_function", "/srv/me/run/train.py(12): step", "/path_1/file_1.py(12): function_1"),
        ("python_function", "train.py(12): forward", "file_1.py(12): forward"),
        ("python_function", "torch/nn/modules/linear.py(9): forward",
         "torch/nn/modules/linear.py(9): forward"),
        ("python_function", "/venv/site-packages/torch/nn/modules/linear.py(9): forward",
         "/path_1/site-packages/torch/nn/modules/linear.py(9): forward"),
        ("python_function", "nn.Module: Linear_3", "nn.Module: Linear_3"),
        ("python_function", "nn.Module: MyNet_3", "nn.Module: class_1_3"),
        ("python_function", "<built-in function len>", "<built-in function len>"),
        ("python_function", "<built-in method append of list object at 0x7fabc>",
         "<built-in method append of list object at 0x1>"),
        ("cuda_runtime", "cudaLaunchKernel", "cudaLaunchKernel"),
        ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", "Memcpy DtoD (Device -> Device)"),
    ],
)  # fmt: skip
def test_what_a_name_becomes(category: str, name: str, expected: str) -> None:
    assert named(category, name) == [expected]


def test_the_same_name_becomes_the_same_and_others_do_not() -> None:
    given = ["a/x.py(1): f", "a/y.py(1): f", "b/x.py(1): f", "a/x.py(1): f", "a/x.py(2): g"]
    names = named("python_function", *given)
    assert names[0] == names[3]
    assert len(set(names)) == len(set(given))
    kernels = named("kernel", "mine<int>()", "mine<float>()", "yours<int>()", "mine<int>()")
    assert kernels[0] == kernels[3]
    assert len(set(kernels)) == 3


def test_kept_names_stay_and_stand_for_nothing_else() -> None:
    names = named("user_annotation", "other", "mine", "third", keep=("mine", "annotation_1"))
    assert names == ["annotation_2", "mine", "annotation_3"]


def test_the_annotation_that_capture_noted_is_still_found(samples: Path, tmp_path: Path) -> None:
    path, output = samples / "cpu-decode-cat.json.gz", tmp_path / "shown.json"
    whole = load_trace(path)
    trim(whole, output, None, Anonymiser())
    shown = load_trace(output)
    assert whole.forward_source == "decode"
    assert shown.forward_source == "annotation_1"
    assert shown.table("forwards").height == 3
    assert shown.header.captured.torch_version == whole.header.captured.torch_version


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>)",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(long)",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_nn_align8>"
        "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_nn_align8::Params)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<"
        "cutlass::bfloat16_t, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 8>>(int)",
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64_kernel0_0",
        "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>()",
        "Memset (Device)",
    ],
)  # fmt: skip
def test_kernels_of_libraries_stay(name: str) -> None:
    if name.startswith("ncclDev"):
        name = name.partition("(")[0]
    assert is_library_kernel(name)


@pytest.mark.parametrize(
    "name",
    [
        "mine_flash_fwd_kernel_bf16", "mine_gemm_bf16_tensorop", "my_softmax", "my_layer_norm",
        "void mine::conv2d_fprop<float>(float*)", "triton_red_fused_mine_2", "mine",
        "my_sgemm_simt",
        "_ZN2ck4mineE", "fmhaSm100aKernel_QkvE4m3OBfloat16H64", "mine::unified_attention<half>",
    ],
)  # fmt: skip
def test_what_a_kernels_name_tells_stays(name: str) -> None:
    (shown,) = named("kernel", name)
    assert shown != name
    assert "mine" not in shown
    before, after = classify(name), classify(shown)
    assert (before.family, before.precision, before.tensor_core) == (
        after.family,
        after.precision,
        after.tensor_core,
    )


@pytest.mark.parametrize(
    "name",
    [
        f"gemv_{WORD}_router", f"void internal::{WORD.title()}Kernel(float*)", f"cudnn_{WORD}",
        f"cudnn_{WORD}_kernel", f"cublas{WORD.title()}", f"Cijk_{WORD.title()}",
        f"void flash::{WORD}_bwd<int>", f"void cutlass::{WORD}()", f"cub::{WORD.title()}",
        f"at::native::{WORD}", f"void std::{WORD}<int>()", f"thrust::{WORD}<float>()",
        f"at::native::k<4{WORD}>", f"ncclKernel_{WORD}", f"nvjet_tst_64x8_{WORD}",
        f"cutlass_80_tensorop_{WORD}", f"ampere_sgemm_{WORD}", f"sm90_xmma_gemm_{WORD}",
        f"fmha_cutlassF_f16_aligned_64x64_{WORD}", f"cudnn_generated_fort_native_{WORD}",
        f"void (anonymous namespace)::softmax_warp_forward::{WORD}()",
    ],
)  # fmt: skip
def test_a_kernel_named_as_a_librarys_is_not_one(name: str) -> None:
    assert WORD not in named("kernel", name)[0].lower()


@pytest.mark.parametrize(
    "name",
    [
        *(f"{namespace}::{WORD}" for namespace in ("aten", "quantized", "inductor", "symm_mem")),
        f"{WORD.title()}Backward0", f"aten::add.{WORD}", f"torch::autograd::{WORD}",
        f"autograd::engine::evaluate_function: {WORD.title()}Backward0",
        f"xformers::efficient_attention_forward{WORD}",
    ],
)  # fmt: skip
def test_an_op_named_as_torchs_is_not_one(name: str) -> None:
    assert WORD not in named("cpu_op", name)[0].lower()


@pytest.mark.parametrize(
    "name",
    [
        f"torch/utils/../../home/{WORD}/a.py(1): f", f"torch/nn//{WORD}.x/../a.py(1): f",
        f"/x/site-packages/torch/nn/../../../../{WORD}/a.py(1): f",
        f"torch/nn/modules/module.py(1): secret of {WORD}", f"threading.py(1): <lambda {WORD}>",
        f"/x/site-packages/torch/nn/functional.py(1): <{WORD}>",
        f"<built-in method a {WORD} of Tensor object at 0x7f>",
        f"<built-in method x of torch._C.{WORD} object at 0x7f>",
    ],
)  # fmt: skip
def test_a_frame_named_as_torchs_is_not_one(name: str) -> None:
    assert WORD not in named("python_function", name)[0]
    path = {"ph": "X", "name": "aten::mm", "args": {"kernel_file": name.partition("(")[0]}}
    assert WORD not in json.dumps(anonymised(path))


@pytest.mark.parametrize("name", [f"cuda{WORD.title()}", f"hip{WORD.title()}", f"cuLaunch{WORD}"])
def test_a_call_named_as_cudas_is_not_one(name: str) -> None:
    assert named("cuda_runtime", name) == ["api_call_1"]


@pytest.mark.parametrize(
    "name",
    [
        "cudaLaunchKernelExC_v11060", "cudaLaunchCooperativeKernelMultiDevice_v9000",
        "cudaGraphInstantiateWithFlags_v11040", "cudaMemcpy2DToArrayAsync_ptsz_v7000",
        "cudaStreamGetCaptureInfo_v2_v11030", "cudaOccupancyMaxPotentialClusterSize_v11080",
        "cudaMallocFromPoolAsync_v11020", "cuLaunchKernelEx", "cuMemcpyHtoDAsync_v2",
        "hipExtModuleLaunchKernel", "hipGetDevicePropertiesR0600", "hipMemcpyWithStream",
    ],
)  # fmt: skip
def test_calls_of_cuda_and_hip_stay(name: str) -> None:
    assert named("cuda_runtime", name) == [name]


def test_the_autograd_nodes_are_those_that_torch_generates() -> None:
    assert named("cpu_op", "AddmmBackward0", "MulBackward1", "NativeLayerNormBackward0") == [
        "AddmmBackward0",
        "MulBackward1",
        "NativeLayerNormBackward0",
    ]
    assert named("cpu_op", "MineBackward0", "MineBackward1") == ["op_1Backward0", "op_1Backward1"]


def findings(trace: Trace) -> list[tuple[object, ...]]:
    rules, _ = load_sound_rules([], installed=False, tests=False)
    report = run_rules(trace, rules)
    assert not report.errors
    found = [
        (
            *(f.code, f.state, f.severity, f.units_mismatching, f.units_total, f.confidence),
            *(f.savings_us, len(f.evidence), len(f.group)),
            sorted((k, v) for k, v in f.measures.items() if not isinstance(v, str)),
        )
        for f in report.findings
    ]
    unanswered = [(rule.code, rule.reason) for rule in report.not_applicable]
    return sorted([*found, *unanswered, *((rule.code,) for rule in report.passed)], key=repr)


def assert_same_after_anonymising(path: Path, folder: Path) -> None:
    once, twice = folder / "once.json", folder / "twice.json"
    whole = load_trace(path)
    trim(whole, once, None, Anonymiser())
    shown = load_trace(once)
    assert findings(shown) == findings(whole)
    trim(shown, twice, None, Anonymiser())
    assert once.read_bytes() == twice.read_bytes()


@pytest.mark.parametrize(
    "name", ["cpu-decode-cat", "cpu-sdpa-math", "synthetic-naive", "synthetic-sdpa-cudnn"]
)
def test_the_findings_stay(name: str, samples: Path, tmp_path: Path) -> None:
    assert_same_after_anonymising(samples / f"{name}.json.gz", tmp_path)


@pytest.mark.parametrize(
    "name",
    ["par-dlrm-w0", "switch-a100", "tl-b200", "tl-mi300-triton", "tl-sgl-decode", "tl-vllm-dec"],
)  # fmt: skip
def test_the_findings_of_real_traces_stay(name: str, real_traces: Path, tmp_path: Path) -> None:
    assert_same_after_anonymising(next((real_traces / name).glob("*.json*")), tmp_path)


def test_a_real_trace_names_nobody(real_traces: Path, tmp_path: Path) -> None:
    path = next((real_traces / "hta-mtia-inf").glob("*.json*"))
    text = gzip.decompress(path.read_bytes()).decode()
    identifying = {"username", "host_name", "tw_job"}
    secrets = {
        found[2] for found in re.finditer(r'"(\w+)": "([^"]{4,})"', text) if found[1] in identifying
    }
    assert secrets
    output = tmp_path / "shown.json"
    trim(load_trace(path), output, None, Anonymiser())
    written = output.read_text()
    assert not [secret for secret in secrets if secret in written]


def test_every_word_of_torch_that_is_kept_is_torchs() -> None:
    import torch  # noqa: PLC0415

    modules = [name for name in dir(torch.nn) if is_listed("module", name)]
    assert {"Linear", "Conv2d", "LayerNorm", "TransformerEncoderLayer"} <= set(modules)
    assert not is_listed("module", WORD)
    assert is_listed("optimizer", "AdamW")


def test_deep_nesting_is_bounded() -> None:
    deep: Any = WORD
    for _ in range(200):
        deep = [deep]
    shown = anonymised({"ph": "X", "name": "aten::mm", "args": {"Input Dims": deep}})
    assert WORD not in json.dumps(shown)


@pytest.mark.parametrize(
    "name", ["autograd::engine::evaluate_function: " * 2000 + WORD, WORD + "Backward" * 2000]
)
def test_long_chains_of_known_parts_are_no_trouble(name: str) -> None:
    (shown,) = named("cpu_op", name)
    assert WORD not in shown


def test_the_events_of_a_damaged_file_are_rewritten_too(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    event = f'{{"ph":"X","cat":"cpu_op","name":"{WORD} \\q","pid":1,"tid":1,"ts":1,"dur":1}}'
    path.write_text(f'{{"schemaVersion":1,"traceEvents":[{event},{event},{{"ph":"X","na')
    anonymiser = Anonymiser()
    with raw_events(path) as raw:
        shown = [json.loads(anonymiser.event(text)) for text, _ in raw]
    assert [event["name"] for event in shown] == ["op_1", "op_1"]


def test_names_are_numbered_in_the_order_in_which_they_appear() -> None:
    names = Names(frozenset())
    assert [names.of("annotation", text) for text in ("zz", "aa", "zz")] == [
        "annotation_1",
        "annotation_2",
        "annotation_1",
    ]


PIECES = st.sampled_from(
    ["mine", "yours", "::", "Backward", "Backward0", "aten", "/", "a.py", "(3): ", "torch", "<",
     ">",
     "triton_", "gemm", "_0", "nn.Module: ", "Linear", "thread 3 (", ")", ";", " ", "\\", "op_1",
     "kernel_1", "site-packages/", "torch/nn/a.py", "autograd::engine::evaluate_function: ", "é",
     "Optimizer.step#", ".step", "<built-in method ", " of list object at 0x1f>", "dataloader"]
)  # fmt: skip
TEXTS = st.lists(st.lists(PIECES, min_size=1, max_size=5).map("".join), min_size=2, max_size=8)


@given(kind=st.sampled_from(["op", "annotation", "kernel", "frame", "path", "thread", "text"]),
       texts=TEXTS)  # fmt: skip
def test_different_texts_stay_different(kind: str, texts: list[str]) -> None:
    names = Names(frozenset())
    shown = [names.of(kind, text) for text in texts]
    assert len(set(shown)) == len(set(texts))


DEVICES = (
    "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-PG509-200", "T4",
    "Tesla V100-DGXS-32GB", "NVIDIA H100 80GB HBM3", "NVIDIA GH200 480GB", "NVIDIA B300 SXM6 AC",
    "NVIDIA H100 NVL", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA GB10",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition", "Quadro RTX 8000 with Max-Q Design",
    "NVIDIA RTX 6000 Ada Generation", "NVIDIA L40S", "AMD Instinct MI300X VF",
    "AMD Radeon Graphics", "AMD Radeon RX 7900 XTX", "Intel(R) Data Center GPU Max 1100",
    "Intel(R) Xeon(R) Platinum 8480+",
)  # fmt: skip


@pytest.mark.parametrize("name", DEVICES)
def test_names_of_devices_stay(name: str) -> None:
    assert Names(frozenset()).of("device", name) == name


@pytest.mark.parametrize(
    "name", ["NVIDIA Acme", "NVIDIA A100-acme-7", "Tesla of Bob", "A100-acme", "AMD Instinct acme"]
)
def test_a_name_that_somebody_gave_a_machine_does_not(name: str) -> None:
    assert Names(frozenset()).of("device", name) == "device_1"
