"""Waits of the host for the GPU: which calls they are, and what they cost the GPU."""

from pathlib import Path

import polars as pl
import pytest

from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, host, kernel, launch, mark, op

SYNC, COPY = "cudaStreamSynchronize", "cudaMemcpyAsync"
FIRST = [op("aten::mm", 0, 400), launch(1, 1), kernel(1, 10, 30)]
"""A kernel until 40."""


def waiting(start: float, length: float, name: str = SYNC) -> Event:
    return host("cuda_runtime", name, start, length, correlation=90)


def copying(start: float, length: float, how: str) -> list[Event]:
    """Return a copy and its call; it runs in the last two microseconds of the call."""
    copy = {**kernel(91, start + length - 2, 2, f"Memcpy {how}"), "cat": "gpu_memcpy"}
    return [host("cuda_runtime", COPY, start, length, correlation=91), copy]


def of_calls(trace: Trace, column: str, *names: str) -> list[object]:
    calls = trace.table("api_calls").sort("start_us")
    return calls.filter(pl.col("name").is_in(names))[column].to_list()


def test_idle_time_is_of_the_wait_in_which_it_began(make_trace: MakeTrace) -> None:
    trace = make_trace([
        *FIRST, waiting(5, 40), launch(2, 60), kernel(2, 70, 50),
        waiting(80, 10), launch(3, 92), kernel(3, 120, 5),
    ])  # fmt: skip
    assert of_calls(trace, "idle_us", SYNC) == [30.0, 0.0]
    assert set(of_calls(trace, "idle_us", "cudaLaunchKernel")) == {None}


@pytest.mark.parametrize(
    "others",
    [
        [launch(2, 3), kernel(2, 70, 5)],
        [launch(2, 46), kernel(2, 250, 5)],
        [launch(2, 60, tid=77), kernel(2, 70, 5)],
        [launch(2, 60), kernel(2, 70, 5), host("overhead", "Buffer Flush", 45, 20)],
        [launch(2, 60), kernel(2, 70, 5), mark("enumerate(DataLoader)#_Iter.__next__", 46, 16)],
    ],
    ids=["launched before", "not begun at once", "another thread's", "the profiler's", "input"],
)
def test_idle_time_that_has_another_cause_is_not_of_the_wait(
    make_trace: MakeTrace, others: list[Event]
) -> None:
    trace = make_trace([*FIRST, waiting(5, 40), *others])
    assert of_calls(trace, "idle_us", SYNC) == [0.0]


def test_idle_time_between_forwards_is_of_the_wait_too(make_trace: MakeTrace) -> None:
    marks = [mark("attn_fwd", 0, 50), mark("attn_fwd", 55, 50)]
    trace = make_trace([*FIRST, *marks, waiting(5, 40), launch(2, 60), kernel(2, 70, 50)])
    assert trace.table("gpu_ops")["gap_cause"].to_list() == ["outside", "outside"]
    assert of_calls(trace, "idle_us", SYNC) == [30.0]


@pytest.mark.parametrize(
    ("calls", "waits"),
    [
        ([waiting(5, 40)], [True]),
        (copying(5, 40, "DtoH (Device -> Pageable)"), [True]),
        (copying(5, 40, "DtoH (Device -> Pinned)"), [False]),
        (copying(5, 40, "HtoD (Pageable -> Device)"), [False]),
        ([*copying(5, 40, "HtoD (Pageable -> Device)"), waiting(46, 3)], [False, True]),
        ([*copying(5, 40, "DtoH (Device -> Pageable)"), waiting(46, 3)], [True, True]),
    ],
)
def test_what_waits_for_the_gpu(
    make_trace: MakeTrace, calls: list[Event], waits: list[bool]
) -> None:
    trace = make_trace([*FIRST, *calls, op("aten::add", 500, 5)])
    assert of_calls(trace, "waits_for_gpu", SYNC, COPY) == waits
    assert set(of_calls(trace, "waits_for_gpu", "cudaLaunchKernel")) == {False}


def test_a_wait_inside_another_is_part_of_it(make_trace: MakeTrace) -> None:
    inner = host("cuda_driver", "cuStreamSynchronize", 7, 36, correlation=92)
    trace = make_trace([*FIRST, waiting(5, 40), inner, launch(2, 60), kernel(2, 70, 50)])
    assert of_calls(trace, "waits_for_gpu", SYNC, "cuStreamSynchronize") == [True, False]
    assert of_calls(trace, "idle_us", SYNC, "cuStreamSynchronize") == [30.0, 0.0]
    assert trace.table("syncs").height == 2


def test_the_profiler_waits_for_itself(make_trace: MakeTrace) -> None:
    trace = make_trace([*FIRST, waiting(500, 40, "cudaDeviceSynchronize")])
    assert of_calls(trace, "waits_for_gpu", "cudaDeviceSynchronize") == [False]


def test_of_a_wait_only_the_time_without_any_gpu_work_is_dry(make_trace: MakeTrace) -> None:
    elsewhere = kernel(None, 30, 20, "k", device=1)
    trace = make_trace([*FIRST, elsewhere, waiting(5, 60)])
    assert of_calls(trace, "dry_us", SYNC, "cudaLaunchKernel") == [None, 20.0]


def test_without_gpu_work_in_the_file_nobody_knows_what_a_wait_was_for(
    make_trace: MakeTrace,
) -> None:
    trace = make_trace([op("aten::mm", 0, 400), launch(1, 1), waiting(5, 60)])
    assert of_calls(trace, "dry_us", SYNC) == [None]


@pytest.mark.parametrize(
    ("name", "idle_us"),
    [
        ("switch-a100", 4570),
        ("tl-h100-owl", 6832.419),
        ("hta-diff-control", 6496),
        ("tl-sgl-decode", 150.665),
        ("hta-ns", 0),
    ],
)
def test_waits_cost_what_the_gaps_call_sync(name: str, idle_us: float, real_traces: Path) -> None:
    (path,) = (real_traces / name).glob("*.json.gz")
    trace = load_trace(path)
    gaps = trace.table("gaps").filter(pl.col("cause") == "sync")
    assert trace.table("api_calls")["idle_us"].sum() == pytest.approx(idle_us)
    assert gaps["dur_us"].sum() == pytest.approx(idle_us)
