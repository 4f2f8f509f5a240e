"""What a trace lacks is found in the file; GPU traces are made up here."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyze.tables.api import LAUNCH_PATTERN
from capture.verification import LAUNCH, Expectation, Verification, verify

Event = dict[str, Any]

STEPS = 3
LAUNCHES_OF_A_STEP = 50
ON_GPU = Expectation(STEPS, ("attn_fwd",), on_gpu=True)


def gpu_trace() -> list[Event]:
    """Three steps that launch fifty kernels each."""
    events: list[Event] = []
    for step in range(STEPS):
        events.append({"cat": "user_annotation", "name": f"ProfilerStep#{step + 2}"})
        events.append({"cat": "user_annotation", "name": "attn_fwd"})
        events.append({"cat": "gpu_user_annotation", "name": "attn_fwd"})
        events.append({"cat": "cpu_op", "name": "aten::mul", "args": {"Ev Idx": step}})
        for number in range(LAUNCHES_OF_A_STEP):
            link = {"correlation": 1000 * step + number}
            events.append({"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": link})
            events.append({"cat": "kernel", "name": "elementwise", "args": link})
    events.append({"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "args": {}})
    return [{"ph": "X", "ts": n, "dur": 1, **event} for n, event in enumerate(events)]


def verified(folder: Path, events: list[Event], expected: Expectation = ON_GPU) -> Verification:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return verify(path, expected)


def without_kernels(events: list[Event], count: int) -> list[Event]:
    lost = [event for event in events if event["cat"] == "kernel"][:count]
    return [event for event in events if event not in lost]


def test_a_whole_gpu_trace(tmp_path: Path) -> None:
    found = verified(tmp_path, gpu_trace())
    assert found.problems == ()
    assert found.steps == ("ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4")
    assert (found.kernels, found.launches, found.matched_launches) == (150, 150, 150)
    assert (found.cpu_ops, found.damaged_events, found.events) == (3, 0, len(gpu_trace()))


def test_no_kernels(tmp_path: Path) -> None:
    found = verified(tmp_path, without_kernels(gpu_trace(), STEPS * LAUNCHES_OF_A_STEP))
    assert found.problems == (
        "no GPU kernel is in the file",
        "150 of 150 launches have no GPU event in the file",
    )


def test_launches_of_the_first_step_lost(tmp_path: Path) -> None:
    found = verified(tmp_path, without_kernels(gpu_trace(), LAUNCHES_OF_A_STEP))
    assert found.problems == ("50 of 150 launches have no GPU event in the file",)
    assert found.matched_launches == 100


@pytest.mark.parametrize(("lost", "is_fine"), [(1, True), (2, False)])
def test_one_launch_of_a_hundred_may_be_lost(tmp_path: Path, lost: int, is_fine: bool) -> None:
    found = verified(tmp_path, without_kernels(gpu_trace(), lost))
    assert (found.problems == ()) is is_fine


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("ProfilerStep#3", "2 of 3 active steps are in the file"),
        ("attn_fwd", "0 of 3 annotations attn_fwd are in the file"),
        ("aten::mul", "no operator is in the file"),
    ],
)
def test_host_events_missing(tmp_path: Path, name: str, problem: str) -> None:
    events = [event for event in gpu_trace() if event["name"] != name]
    expected = Expectation(STEPS, ("attn_fwd",), on_gpu=name != "aten::mul")
    found = verified(tmp_path, events, expected)
    if name == "aten::mul":
        events = [event for event in events if event["cat"] != "kernel"]
    assert problem in found.problems


def test_a_trace_of_a_cpu_needs_no_kernels(tmp_path: Path) -> None:
    events = [e for e in gpu_trace() if e["cat"] in ("user_annotation", "cpu_op")]
    on_cpu = Expectation(STEPS, ("attn_fwd",), on_gpu=False)
    assert verified(tmp_path, events, on_cpu).problems == ()
    assert verified(tmp_path, events).problems == ("no GPU kernel is in the file",)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    text = json.dumps({"schemaVersion": 1, "traceEvents": gpu_trace()})
    path.write_text(text[:-20])
    found = verify(path, ON_GPU)
    assert found.problems == ("the list of events is cut off",)
    assert found.damaged_events == 1


def test_annotations_of_the_users_own_with_the_same_name_are_no_loss(tmp_path: Path) -> None:
    again = [event for event in gpu_trace() if event["cat"] == "user_annotation"]
    assert verified(tmp_path, gpu_trace() + again).problems == ()


@pytest.mark.parametrize(
    ("name", "starts_a_kernel"),
    [
        ("cudaLaunchKernel", True),
        ("cudaLaunchKernel_ptsz", True),
        ("cudaLaunchKernelExC", True),
        ("cudaLaunchCooperativeKernel", True),
        ("cudaLaunchCooperativeKernelMultiDevice", True),
        ("cuLaunchKernel", True),
        ("cuLaunchKernelEx", True),
        ("cuGraphLaunch", True),
        ("cudaGraphLaunch", True),
        ("hipLaunchKernel", True),
        ("hipLaunchKernelExC", True),
        ("hipLaunchByPtr", True),
        ("hipExtLaunchKernel", True),
        ("hipExtLaunchMultiKernelMultiDevice", True),
        ("hipModuleLaunchKernel", True),
        ("hipModuleLaunchCooperativeKernel", True),
        ("hipExtModuleLaunchKernel", True),
        ("hipHccModuleLaunchKernel", True),
        ("hipDrvLaunchKernelEx", True),
        ("hipGraphLaunch", True),
        ("urEnqueueKernelLaunch", True),
        ("urEnqueueKernelLaunchWithArgsExp", True),
        ("urEnqueueCooperativeKernelLaunchExp", True),
        ("piEnqueueKernelLaunch", True),
        ("piextEnqueueKernelLaunchCustom", True),
        ("zeCommandListAppendLaunchKernel", False),
        ("cudaLaunchHostFunc", False),
        ("hipLaunchHostFunc", False),
        ("cudaMemcpyAsync", False),
        ("cudaStreamSynchronize", False),
        ("cudaGraphInstantiate", False),
    ],
)
def test_calls_that_start_kernels(name: str, starts_a_kernel: bool) -> None:
    """capture and analyze say the same, though neither imports the other."""
    assert bool(LAUNCH.match(name)) is starts_a_kernel
    assert pl.Series([name]).str.contains(LAUNCH_PATTERN).item() is starts_a_kernel
