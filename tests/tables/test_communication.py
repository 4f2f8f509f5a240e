"""How much of communication between GPUs nothing else hides."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.tables.build import load_trace
from analyze.tables.communication import exposed_ns
from analyze.tables.gpu_time import gpu_time
from analyze.tables.intervals import covered_ns
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, kernel, launch

REDUCE, GATHER = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_AllGather_RING_LL"
GEMM = "ampere_sgemm_128x64_tn"

DEVICES, FAMILIES = st.sampled_from(["0", "1", None]), st.sampled_from(["comm", "gemm", None])
WORK = st.lists(st.tuples(DEVICES, FAMILIES, st.integers(0, 60), st.integers(0, 20)))
SCHEMA = {"device_label": pl.String, "family": pl.String, "start_ns": pl.Int64, "dur_ns": pl.Int64}


@given(WORK)
def test_exposed_time_equals_the_count_of_exposed_nanoseconds(
    rows: list[tuple[str | None, str | None, int, int]],
) -> None:
    work = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("start_ns", maintain_order=True)
    hidden = {device: set[int]() for device in ("0", "1", None)}
    for device, family, start, length in rows:
        if family != "comm":
            hidden[device] |= set(range(start, start + length))
    expected: list[int | None] = []
    for device, family, start, length in work.iter_rows():
        new = set(range(start, start + length)) - hidden[device]
        expected.append(len(new) if family == "comm" else None)
        if family == "comm":
            hidden[device] |= new
    assert exposed_ns(work).to_list() == expected


@given(WORK)
def test_the_sum_is_the_busy_time_that_is_nothing_else(
    rows: list[tuple[str | None, str | None, int, int]],
) -> None:
    work = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("start_ns", maintain_order=True)
    others = work.filter(pl.col("family").ne_missing("comm"))
    busy, busy_with_others = (
        int(covered_ns(part, ["device_label"])["busy_ns"].sum()) for part in (work, others)
    )
    assert exposed_ns(work).sum() == busy - busy_with_others


def columns(make_trace: MakeTrace, events: list[Event]) -> list[tuple[str | None, float | None]]:
    found = make_trace(events).table("kernels").sort("start_us")
    return list(found.select("collective", "exposed_us").iter_rows())


def test_what_communication_does_and_how_long_it_is_alone(make_trace: MakeTrace) -> None:
    found = columns(make_trace, [
        kernel(1, 0, 50, GEMM), kernel(2, 20, 60, REDUCE, stream=20),
        kernel(3, 70, 30, GATHER, stream=21), kernel(4, 90, 100, GEMM),
        kernel(5, 300, 10, "nvshmem_wait", stream=20),
    ])  # fmt: skip
    assert found == [
        (None, None), ("AllReduce", 30), ("AllGather", 10), (None, None), (None, 10)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "beside",
    [
        kernel(2, 0, 100, "of_no_known_family"),
        {**kernel(2, 0, 100, "Memcpy HtoD (Pinned -> Device)"), "cat": "gpu_memcpy"},
        {**kernel(2, 0, 100, "Memset (Device)"), "cat": "gpu_memset"},
    ],
)
def test_all_other_work_of_the_device_hides_it(beside: Event, make_trace: MakeTrace) -> None:
    assert columns(make_trace, [beside, kernel(1, 10, 50, REDUCE, stream=20)])[-1][1] == 0
    elsewhere = {**beside, "args": {**beside["args"], "device": 1}}
    assert columns(make_trace, [elsewhere, kernel(1, 10, 50, REDUCE, stream=20)])[-1][1] == 50


def test_without_communication_nothing_is_exposed(make_trace: MakeTrace) -> None:
    assert columns(make_trace, [launch(1, 0), kernel(1, 5, 10, GEMM)]) == [(None, None)]


@pytest.mark.parametrize("name", ["hta-diff-control", "hta-nccl", "par-dlrm-w7", "toke-llama0"])
def test_kernels_add_up_to_what_the_report_says(name: str, real_traces: Path) -> None:
    (path,) = (path for path in (real_traces / name).iterdir() if ".json" in path.name)
    trace = load_trace(path)
    found = gpu_time(trace)
    assert found is not None
    kernels = trace.table("kernels")
    communication = kernels.filter(pl.col("family") == "comm")
    assert communication["exposed_us"].sum() == pytest.approx(found["communication"]["alone_us"])
    assert (communication["exposed_us"] <= communication["dur_us"]).all()
    assert communication["collective"].null_count() == 0
    assert kernels.filter(pl.col("family") != "comm")["exposed_us"].is_null().all()
