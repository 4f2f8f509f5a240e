"""GPU work belongs to what launched it."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyze.tables.build import load_trace
from analyze.tables.sources import user_line
from tests.conftest import MakeTrace

Event = dict[str, Any]
MAIN, AUTOGRAD = 1, 2


def host(
    category: str, name: str, start: float, length: float, tid: int = MAIN, **args: Any
) -> Event:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 9, "tid": tid, "ts": start, "dur": length,
        "args": args,
    }  # fmt: skip


def op(name: str, start: float, length: float, tid: int = MAIN, /, **args: Any) -> Event:
    return host("cpu_op", name, start, length, tid, **args)


def mark(name: str, start: float, length: float) -> Event:
    return host("user_annotation", name, start, length)


def launch(
    correlation: int, start: float, tid: int = MAIN, name: str = "cudaLaunchKernel", **args: Any
) -> Event:
    return host("cuda_runtime", name, start, 2, tid, correlation=correlation, **args)


def kernel(
    correlation: int | None, start: float, length: float, name: str = "k", /, **args: Any
) -> Event:
    linked = {} if correlation is None else {"correlation": correlation}
    return {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": length,
        "args": {"device": 0, "stream": 7, **linked, **args},
    }  # fmt: skip


def owners(trace: Any) -> list[str | None]:
    ops: list[str | None] = trace.table("gpu_ops").sort("start_us")["op"].to_list()
    return ops


def test_the_innermost_op_around_the_launch_owns_the_kernel(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("outer", 0, 100), op("inner", 10, 20), launch(1, 15), launch(2, 50), launch(3, 200),
        kernel(1, 500, 10), kernel(2, 520, 10), kernel(3, 540, 10),
    ])  # fmt: skip
    assert owners(trace) == ["inner", "outer", None]
    kernels = trace.table("kernels").sort("start_us")
    assert kernels["op_chain"].to_list() == ["outer > inner", "outer", None]
    assert kernels["linked"].to_list() == [True, True, True]
    ops = trace.table("ops")
    assert ops["own_device_us"].to_list() == [10, 10]
    assert ops["device_us"].to_list() == [20, 10]


def test_one_graph_launch_has_many_kernels(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("replay", 0, 50), launch(5, 10, name="cudaGraphLaunch"),
        *(kernel(5, 100 + i * 10, 5) for i in range(8)),
    ])  # fmt: skip
    assert owners(trace) == ["replay"] * 8
    assert trace.table("launches")["gpu_ops"].to_list() == [8]


def test_unlinked_work_is_kept_and_counted(make_trace: MakeTrace) -> None:
    trace = make_trace(
        [op("a", 0, 50), launch(1, 10), kernel(1, 60, 10), kernel(99, 20, 30), kernel(None, 80, 5)]
    )
    row = trace.table("trace").row(0, named=True)
    assert row["linked_share"] == pytest.approx(1 / 3)
    assert row["unlinked_gpu_us"] == 35
    assert row["gpu_busy_us"] == 45
    assert trace.table("gpu_ops").filter(~pl.col("linked"))["op"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("external", "expected"),
    [
        ({1: 7, 2: 7, 3: 7}, ["by id", "by id", "by id"]),
        ({1: 1, 2: 2, 3: 3}, [None, None, None]),
    ],
    ids=["names the op", "repeats the correlation"],
)
def test_external_id_serves_only_where_it_can_be_trusted(
    make_trace: MakeTrace, external: dict[int, int], expected: list[str | None]
) -> None:
    ids = {"External id": 7}
    decoys = [op(f"decoy {i}", 1000 + 10 * i, 5, **{"External id": i}) for i in (1, 2, 3)]
    trace = make_trace([
        op("by id", 0, 50, **ids), *decoys,
        *(kernel(c, 100 * c, 10, **{"External id": e}) for c, e in external.items()),
    ])  # fmt: skip
    assert owners(trace) == expected


def test_a_mixed_external_id_needs_the_launch_inside_the_op(make_trace: MakeTrace) -> None:
    repeated = [kernel(c, 1000 + c, 1, **{"External id": c}) for c in range(10, 20)]
    trace = make_trace([
        op("far away", 5000, 10, **{"External id": 10}),
        op("own thread", 15, 20, 77, **{"External id": 4}),
        launch(10, 0), launch(30, 20, 77),
        *repeated, kernel(30, 2000, 10, **{"External id": 4}),
    ])  # fmt: skip
    assert set(owners(trace)[:10]) == {None}
    assert owners(trace)[10] == "own thread"


def test_work_belongs_to_the_step_that_launched_it_not_the_one_it_overlaps(
    make_trace: MakeTrace,
) -> None:
    trace = make_trace([
        *(mark(f"ProfilerStep#{n}", 100 * (n - 3), 100) for n in (3, 4, 5)),
        op("a", 10, 20), launch(1, 15), op("a", 110, 20), launch(2, 115),
        kernel(1, 150, 100), kernel(2, 250, 10),
    ])  # fmt: skip
    assert trace.table("kernels").sort("start_us")["step"].to_list() == [3, 4]
    steps = trace.table("steps")
    assert steps["gpu_ops"].to_list() == [1, 1, 0]
    assert steps["gpu_busy_us"].to_list() == [100, 10, 0]
    assert steps["period_us"].to_list() == [100, 100, None]
    assert steps["first"].to_list() == [True, False, False]


def repeated_steps(second_pid: int) -> list[Event]:
    """Steps 3 and 4 with one kernel each, and once more with two each, by any process."""
    first = [
        *(mark(f"ProfilerStep#{n}", 100 * (n - 3), 50) for n in (3, 4)),
        *(launch(n, 100 * (n - 3) + 5) for n in (3, 4)),
    ]
    second = [
        *(mark(f"ProfilerStep#{n}", 1000 + 100 * (n - 3), 50) for n in (3, 4)),
        *(launch(10 * n + m, 1005 + 100 * (n - 3) + 5 * m) for n in (3, 4) for m in (0, 1)),
    ]
    correlations = (3, 4, 30, 31, 40, 41)
    return [
        *first,
        *({**event, "pid": second_pid} for event in second),
        *(kernel(correlation, 2000 + 10 * correlation, 5) for correlation in correlations),
    ]


@pytest.mark.parametrize("second_pid", [9, 10], ids=["recorded twice", "two processes"])
def test_steps_of_one_number_have_each_their_own_work(
    make_trace: MakeTrace, second_pid: int
) -> None:
    trace = make_trace(repeated_steps(second_pid))
    steps = trace.table("steps")
    assert steps["index"].to_list() == [3, 4, 3, 4]
    assert steps["pid"].to_list() == ["9", "9", str(second_pid), str(second_pid)]
    assert steps["gpu_ops"].to_list() == [1, 1, 2, 2]
    assert steps["launches"].to_list() == [1, 1, 2, 2]
    assert steps["first"].to_list() == [True, False, True, False]
    assert trace.table("kernels")["step"].to_list() == [3, 4, 3, 3, 4, 4]
    assert trace.table("trace")["steps"].item() == 4
    forwards = trace.table("forwards")
    assert forwards["index"].to_list() == [0, 1, 2, 3]
    assert forwards["gpu_ops"].to_list() == [1, 1, 2, 2]


def test_the_next_step_of_another_process_ends_no_period(make_trace: MakeTrace) -> None:
    trace = make_trace(repeated_steps(second_pid=10))
    assert trace.table("steps")["period_us"].to_list() == [100, None, 100, None]


def test_backward_on_another_thread_belongs_to_the_forward_that_waits_for_it(
    make_trace: MakeTrace,
) -> None:
    node = "autograd::engine::evaluate_function: MmBackward0"
    trace = make_trace([
        mark("attn_fwd", 0, 100), op("aten::mm", 5, 10), launch(1, 8),
        op(node, 40, 30, AUTOGRAD, **{"Fwd thread id": 1}), op("aten::mm", 45, 20, AUTOGRAD),
        launch(2, 50, AUTOGRAD), op("aten::rand", 60, 5, 33), launch(3, 62, 33),
        kernel(1, 200, 10), kernel(2, 220, 10), kernel(3, 240, 10),
    ])  # fmt: skip
    kernels = trace.table("kernels").sort("start_us")
    assert kernels["forward"].to_list() == [0, 0, None]
    assert kernels["phase"].to_list() == ["forward", "backward", "forward"]
    region = trace.table("regions").row(0, named=True)
    assert (region["kernels"], region["backward_kernels"]) == (1, 1)


def test_a_forward_can_be_named(make_trace: MakeTrace) -> None:
    events = [mark("mine", 0, 10), mark("mine", 20, 10), mark("attn_fwd", 40, 10), op("a", 2, 3)]
    assert make_trace(events).forward_source == "attn_fwd"
    named = make_trace(events, forward="mine")
    assert named.table("forwards").height == 2
    assert named.table("ops")["forward"].to_list() == [0]


def test_a_forward_inside_one_of_its_name_is_a_part_of_it(make_trace: MakeTrace) -> None:
    """Its parent's work is as well what comes after it; where both begin at once, too."""
    trace = make_trace(
        [
            mark("fwd", 0, 10), mark("fwd", 0, 100), mark("fwd", 30, 10), mark("fwd", 90, 10.5),
            launch(1, 5), launch(2, 55), mark("fwd", 200, 10), launch(3, 205), launch(4, 150),
            *(kernel(number, 300 + 10 * number, 5) for number in range(1, 5)),
        ],
        forward="fwd",
    )  # fmt: skip
    forwards = trace.table("forwards").select("start_us", "gpu_ops").rows()
    assert forwards == [(0, 2), (200, 1)]
    assert trace.table("kernels")["forward"].to_list() == [0, 0, 1, None]


def test_forwards_that_overlap_are_two(make_trace: MakeTrace) -> None:
    marks = [mark("fwd", 0, 100), mark("fwd", 50, 100)]
    ops = [op("a", 10, 5), op("b", 60, 5), op("c", 120, 5)]
    trace = make_trace([*marks, *ops], forward="fwd")
    assert trace.table("ops")["forward"].to_list() == [0, 1, 1]


def test_without_annotations_the_trace_is_one_forward(make_trace: MakeTrace) -> None:
    trace = make_trace([op("a", 0, 50), launch(1, 10), kernel(1, 60, 10), kernel(9, 80, 10)])
    assert trace.forward_source == "trace"
    forward = trace.table("forwards").row(0, named=True)
    assert (forward["gpu_ops"], forward["gpu_busy_us"], forward["cpu_us"]) == (2, 20, 90)


def test_the_profilers_own_synchronisation_is_nobodys(make_trace: MakeTrace) -> None:
    tail = launch(90, 300, name="cudaDeviceSynchronize")
    trace = make_trace([op("a", 0, 50), launch(1, 10), kernel(1, 60, 10), tail])
    assert trace.table("syncs").is_empty()
    assert trace.table("api_calls")["profiler_own"].to_list() == [False, True]
    users = make_trace([op("a", 0, 50), launch(1, 10), kernel(1, 60, 10), tail, op("b", 400, 5)])
    assert users.table("syncs").height == 1


def test_a_copy_of_pageable_memory_blocks(make_trace: MakeTrace) -> None:
    copy = {
        **kernel(1, 50, 10, "Memcpy HtoD (Pageable -> Device)", bytes=2_000),
        "cat": "gpu_memcpy",
    }
    trace = make_trace([op("aten::copy_", 0, 40), launch(1, 10, name="cudaMemcpyAsync"), copy])
    assert trace.table("api_calls")["blocking"].to_list() == [True]
    row = trace.table("copies").row(0, named=True)
    assert (row["copy_kind"], row["src_memory"], row["dst_memory"]) == (
        "HtoD",
        "pageable",
        "device",
    )
    assert row["bandwidth_gbps"] == pytest.approx(0.2)
    assert trace.table("ops")["waiting_us"].to_list() == [2]


def test_the_users_line_is_the_innermost_frame_that_is_not_a_librarys(
    make_trace: MakeTrace,
) -> None:
    trace = make_trace([
        host("python_function", "train.py(12): main", 0, 100),
        host("python_function", "model.py(40): forward", 5, 80),
        host("python_function", "torch/nn/modules/module.py(1751): _call_impl", 6, 70),
        host("python_function", "<built-in method matmul of type object>", 7, 60),
        op("aten::matmul", 10, 30), launch(1, 15), kernel(1, 200, 10),
        op("aten::later", 90, 5),
    ])  # fmt: skip
    assert trace.table("kernels")["source"].to_list() == ["model.py:40"]
    assert trace.table("ops")["source"].to_list() == ["model.py:40", "train.py:12"]


@pytest.mark.parametrize(
    ("file", "is_the_users"),
    [
        ("queue.py", False),
        ("dataclasses.py", False),
        ("_weakrefset.py", False),
        ("json/decoder.py", False),
        ("concurrent/futures/thread.py", False),
        ("/usr/lib/python3.11/enum.py", False),
        ("torch/_ops.py", False),
        ("<frozen runpy>", False),
        ("queues.py", True),
        ("mine/queue.py", True),
        ("test/test_model.py", True),
        ("/srv/me/train.py", True),
    ],
)
def test_a_line_of_the_standard_library_is_not_the_users(file: str, is_the_users: bool) -> None:
    assert user_line(f"{file}(180): get") == (f"{file}:180" if is_the_users else None)


def test_two_trees_an_annotation_may_straddle_python_frames(make_trace: MakeTrace) -> None:
    trace = make_trace([
        host("python_function", "a.py(1): enter", 0, 20), mark("region", 10, 50),
        host("python_function", "a.py(2): body", 20, 60), op("aten::mm", 30, 10), launch(1, 35),
        kernel(1, 100, 5),
    ])  # fmt: skip
    kernels = trace.table("kernels")
    assert kernels["region"].to_list() == ["region"]
    assert kernels["source"].to_list() == ["a.py:2"]


def test_shapes_give_the_dtypes_of_op_and_root(make_trace: MakeTrace) -> None:
    bf16 = {
        "Input type": ["c10::BFloat16", "c10::BFloat16", ""],
        "Input Dims": [[2, 2], [2, 2], []],
    }
    fp32 = {"Input type": ["float", "float"], "Input Dims": [[2, 2], [2, 2]]}
    trace = make_trace([
        op("Torch-Compiled Region", 0, 100), op("aten::sdpa", 5, 90, **bf16),
        op("aten::bmm", 10, 20, **fp32), launch(1, 15), kernel(1, 200, 10),
    ])  # fmt: skip
    row = trace.table("kernels").row(0, named=True)
    assert (row["op_dtype"], row["root_dtype"], row["root_op"]) == (
        "fp32",
        "bf16",
        "Torch-Compiled Region",
    )
    assert row["op_shapes"] == "[[2,2],[2,2]]"


def test_odd_times_are_counted_and_placed_nowhere(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 2_000_000), kernel(1, 2_000_010, 5), kernel(2, 2_000_020, -3),
        kernel(3, 2_000_030, 10**15), kernel(4, 0, 0),
    ])  # fmt: skip
    report = trace.clock.report
    assert (report.negative, report.impossible, report.zero_start) == (1, 1, 1)
    assert trace.table("trace")["gpu_busy_us"].to_list() == [5]
    assert trace.table("kernels").height == 4


NOW = 1_700_000_000_000_000


def around_a_launch(*events: Event) -> list[Event]:
    """A launch and its kernel on the clock of the day, and what else there is."""
    return [op("aten::mm", NOW, 50), launch(1, NOW + 10), kernel(1, NOW + 20, 5), *events]


@pytest.mark.parametrize(
    "foreign",
    [
        host("cuda_event", "cudaEventRecord", 0, 0.001),
        host("cuda_sync", "Stream Sync", 0, 5),
        host("gpu_user_annotation", "attn_fwd", 0, 5),
        {"ph": "i", "name": "Iteration Start", "pid": "Traces", "ts": 0},
        {"ph": "i", "name": "[memory]", "pid": 9, "tid": MAIN, "ts": 0, "args": {"Bytes": 8}},
        {"ph": "C", "name": "counter", "pid": 0, "ts": 0, "args": {"": 1}},
        kernel(None, 0, 0),
    ],
    ids=lambda event: event.get("cat", event["name"]),
)
def test_an_event_dated_0_does_not_move_the_start_of_the_trace(
    make_trace: MakeTrace, foreign: Event
) -> None:
    trace = make_trace(around_a_launch(foreign))
    assert trace.table("ops")["start_us"].to_list() == [0]
    assert trace.clock.report.zero_start == 1


def test_without_calls_a_kernel_dated_0_is_seen_by_the_ops(make_trace: MakeTrace) -> None:
    trace = make_trace([op("aten::mm", NOW, 50), kernel(1, NOW + 20, 5), kernel(2, 0, 0)])
    assert trace.table("kernels")["start_us"].to_list() == [20, None]


def test_a_trace_may_begin_at_0_long_before_its_first_op(make_trace: MakeTrace) -> None:
    frame = host("python_function", "train.py(1): main", 0, 3_000_000)
    trace = make_trace([frame, op("aten::mm", 2_000_000, 50), kernel(None, 0, 5)])
    assert trace.table("kernels")["start_us"].to_list() == [0]
    assert trace.clock.report.zero_start == 0


SPAN = {**host("Trace", "PyTorch Profiler (0)", NOW, 1000), "pid": "Spans"}
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("start", "is_outside"),
    [
        (5, True),
        (NOW - SECOND - 1, True),
        (NOW - SECOND, False),
        (NOW + 1000 + SECOND, False),
        (NOW + 1000 + SECOND + 1, True),
    ],
)
def test_gpu_work_dated_outside_of_the_recording_is_placed_nowhere(
    make_trace: MakeTrace, start: int, is_outside: bool
) -> None:
    annotation = host("gpu_user_annotation", "attn_fwd", start, 5)
    trace = make_trace(around_a_launch(SPAN, kernel(2, start, 5), annotation))
    assert trace.clock.report.outside == (2 if is_outside else 0)
    assert trace.table("kernels")["start_us"].null_count() == is_outside
    assert trace.table("trace")["gpu_busy_us"].to_list() == [5 if is_outside else 10]


def test_gpu_work_on_another_clock_keeps_its_times(make_trace: MakeTrace) -> None:
    trace = make_trace([op("aten::mm", NOW, 50), SPAN, kernel(1, 9_000, 5), kernel(2, 9_005, 5)])
    assert trace.clock.report.outside == 0
    assert trace.table("trace")["gpu_busy_us"].to_list() == [10]


def test_no_cuda_core_claim_on_other_vendors(make_trace: MakeTrace) -> None:
    events = [launch(1, 0, name="hipLaunchKernel"), kernel(1, 10, 5, "magma_sgemm_kernel")]
    assert make_trace(events).table("kernels")["tensor_core"].to_list() == [None]


def old_op(name: str, start: float, length: float, tid: int = MAIN, /) -> Event:
    """An op as torch 1.8 writes it: without what says which thread its forward ran on."""
    return host("Operator", name, start, length, tid, **{"External id": 1, "Input dims": []})


def phases(trace: Any) -> dict[str, str]:
    return dict(trace.table("ops").select("name", "phase").iter_rows())


LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_torch_1_8_writes_phases_as_ops(make_trace: MakeTrace) -> None:
    trace = make_trace([
        old_op("ProfilerStep#5", 0, 1000),
        old_op(LOADING, 10, 100), old_op("aten::stack", 20, 10),
        old_op("aten::conv2d", 120, 20),
        old_op("Optimizer.zero_grad#SGD.zero_grad", 150, 20), old_op("aten::zero_", 155, 5),
        old_op("AddmmBackward", 300, 20, AUTOGRAD), old_op("aten::mm", 305, 10, AUTOGRAD),
        old_op("aten::add", 325, 10, AUTOGRAD),
        old_op("torch::autograd::AccumulateGrad", 340, 10, AUTOGRAD),
        old_op("Optimizer.step#SGD.step", 500, 50), old_op("aten::add_", 510, 10),
    ])  # fmt: skip
    assert phases(trace) == {
        LOADING: "other", "aten::stack": "other", "aten::conv2d": "forward",
        "Optimizer.zero_grad#SGD.zero_grad": "optimizer", "aten::zero_": "optimizer",
        "AddmmBackward": "backward", "aten::mm": "backward", "aten::add": "backward",
        "torch::autograd::AccumulateGrad": "backward",
        "Optimizer.step#SGD.step": "optimizer", "aten::add_": "optimizer",
    }  # fmt: skip


def test_what_loads_data_is_no_forward(make_trace: MakeTrace) -> None:
    trace = make_trace([mark(LOADING, 0, 50), op("aten::stack", 10, 5), op("aten::mm", 60, 5)])
    assert phases(trace) == {"aten::stack": "other", "aten::mm": "forward"}


NODE = "autograd::engine::evaluate_function: MmBackward0"


@pytest.mark.parametrize(
    ("first", "hook"),
    [
        ([], "backward"),
        # A thread that runs forwards as well, recorded from the middle of a backward on.
        ([mark("ProfilerStep#3", 0, 500)], "forward"),
        ([op("aten::mm", 200, 5, **{"Fwd thread id": 0, "Sequence number": 7})], "forward"),
        # A thread that calls backward() makes the first gradient itself.
        ([op("aten::ones_like", 1, 2)], "forward"),
    ],
)
def test_an_autograd_thread_runs_nothing_but_the_backward(
    first: list[Event], hook: str, make_trace: MakeTrace
) -> None:
    node = op(NODE, 10, 20, **{"Fwd thread id": 1})
    trace = make_trace([*first, node, op("aten::as_strided", 40, 5)])
    assert phases(trace)["aten::as_strided"] == hook


def test_old_traces_of_a_training_have_all_phases(real_traces: Path) -> None:
    """Six steps of ResNet-50: 161 parameters, 53 convolutions; the copies are of the DataLoader."""
    for name in ("kin-r50-w0-v181", "kin-r50-w0-v19"):
        ops = load_trace(next((real_traces / name).iterdir())).table("ops")
        counts = {
            (phase, op_name): count
            for phase, op_name, count in ops.group_by("phase", "name").len().iter_rows()
        }
        assert counts["backward", "torch::autograd::AccumulateGrad"] == 6 * 161
        assert counts["backward", "CudnnConvolutionBackward"] == 6 * 53
        assert counts["forward", "aten::cudnn_convolution"] == 6 * 53
        assert counts["optimizer", "Optimizer.step#SGD.step"] == 6
        assert counts["optimizer", "aten::mul_"] == 6 * 161
        autograd = ops.filter(pl.col("name") == "CudnnConvolutionBackward")["tid"][0]
        of_thread = ops.filter(pl.col("tid") == autograd)
        assert set(of_thread["phase"]) == {"backward"}
