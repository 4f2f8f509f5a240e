"""GPU work belongs to what launched it."""

from typing import Any

import polars as pl
import pytest

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


def test_no_cuda_core_claim_on_other_vendors(make_trace: MakeTrace) -> None:
    events = [launch(1, 0, name="hipLaunchKernel"), kernel(1, 10, 5, "magma_sgemm_kernel")]
    assert make_trace(events).table("kernels")["tensor_core"].to_list() == [None]
