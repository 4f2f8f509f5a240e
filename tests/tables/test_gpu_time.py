"""Where the GPU's time goes: idle time by cause, and busy time by family."""

from pathlib import Path

import pytest

from analyze.report.coverage_text import coverage_in_short, coverage_lines
from analyze.report.gaps import describe_gaps
from analyze.tables.build import load_trace
from analyze.tables.coverage import coverage, quality
from analyze.tables.gpu_time import MOST_FAMILIES, gpu_time
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, kernel, launch, mark

LOADING = mark("enumerate(DataLoader)#_Iter.__next__", 35, 70)


def test_idle_time_by_cause_and_busy_time_by_family(make_trace: MakeTrace) -> None:
    trace = make_trace([
        mark("start", 0, 1), LOADING,
        launch(1, 10), launch(2, 110), launch(3, 190),
        kernel(1, 20, 10, "ampere_sgemm_128x64_tn"), kernel(2, 120, 50, "softmax_warp_forward"),
        kernel(3, 200, 20, "ampere_sgemm_128x64_tn"),
    ])  # fmt: skip
    found = gpu_time(trace)
    assert found is not None
    assert found["idle_us"] == 120
    assert found["idle_share"] == 0.6
    assert found["idle_causes"] == [
        {"cause": "input", "time_us": 90, "share": 0.75},
        {"cause": "host", "time_us": 30, "share": 0.25},
    ]
    assert found["families"] == [
        {"kind": "kernel", "family": "softmax", "time_us": 50, "share": 0.625},
        {"kind": "kernel", "family": "gemm", "time_us": 30, "share": 0.375},
    ]


def test_idle_time_between_forwards(make_trace: MakeTrace) -> None:
    events = [
        launch(1, 10), launch(2, 20), launch(3, 60),
        kernel(1, 30, 10), kernel(2, 50, 10), kernel(3, 90, 10),
    ]  # fmt: skip
    marked = gpu_time(make_trace([mark("attn_fwd", 0, 45), mark("attn_fwd", 55, 30), *events]))
    unmarked = gpu_time(make_trace(events))
    assert marked is not None
    assert unmarked is not None
    assert marked["idle_between_share"] == 0.75  # 30 of 40 us
    assert marked["idle_outside_share"] == 0
    assert unmarked["idle_between_share"] is None
    assert unmarked["idle_outside_share"] is None


def test_idle_time_before_and_after_the_only_forward(make_trace: MakeTrace) -> None:
    found = gpu_time(make_trace([
        launch(1, 10), mark("attn_fwd", 20, 50), launch(2, 30), launch(3, 40), launch(4, 80),
        kernel(1, 20, 10), kernel(2, 60, 10), kernel(3, 90, 10), kernel(4, 110, 10),
    ]))  # fmt: skip
    assert found is not None
    assert found["idle_between_share"] == 0
    assert found["idle_outside_share"] == pytest.approx(40 / 60)


def test_without_gpu_work_of_a_known_time_there_is_no_answer(make_trace: MakeTrace) -> None:
    assert gpu_time(make_trace([mark("start", 0, 1)])) is None


def test_what_comes_before_the_first_work(make_trace: MakeTrace) -> None:
    loading = mark("enumerate(DataLoader)#_Iter.__next__", 10, 40)
    events = [mark("start", 0, 1), loading, launch(1, 60), kernel(1, 80, 20)]
    trace = make_trace(events)
    found = gpu_time(trace)
    assert found is not None
    assert found["lead"] == {"time_us": 80, "share": 0.8, "loading_us": 40}
    assert trace.table("trace")["loading_before_us"].item() == 40


@pytest.mark.parametrize(
    ("first", "words"),
    [(20, ""), (40, "; the first work comes 40 us (40 %) into the trace, after loading data")],
)
def test_a_late_start_is_told_where_it_is_considerable(
    first: int, words: str, make_trace: MakeTrace
) -> None:
    loading = mark("enumerate(DataLoader)#_Iter.__next__", 0, 30)
    trace = make_trace([loading, launch(1, 1), kernel(1, first, 100 - first)])
    lines = dict(coverage_lines(coverage(trace), quality(trace)))
    busy = f"{100 - first} us"
    assert lines["GPU time"] == f"{busy} busy of {busy} from first to last work (100 %){words}"


def test_communication_is_told_beside_busy(make_trace: MakeTrace) -> None:
    reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    trace = make_trace(
        [launch(1, 0), launch(2, 1), kernel(1, 3, 30, "gemm"), kernel(2, 13, 40, reduce, stream=20)]
    )
    lines = dict(coverage_in_short(coverage(trace), quality(trace)))
    assert lines["GPU work"].endswith("; 80 % of busy is communication, 40 % with no other work")
    alone = make_trace([launch(1, 0), kernel(1, 3, 30, reduce)])
    lines = dict(coverage_in_short(coverage(alone), quality(alone)))
    assert lines["GPU work"].endswith("; 100 % of busy is communication")


@pytest.mark.parametrize("events", [[kernel(1, 80, 20)], [launch(1, 90), kernel(1, 80, 20)]])
def test_where_gpu_work_comes_first_nothing_is_before_it(
    events: list[Event], make_trace: MakeTrace
) -> None:
    trace = make_trace(events)
    found = gpu_time(trace)
    assert found is not None
    assert found["lead"] is None
    assert trace.table("trace")["loading_before_us"].item() is None


def test_communication_counts_as_busy_and_is_told(make_trace: MakeTrace) -> None:
    reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    trace = make_trace([
        mark("start", 0, 1), launch(1, 1), launch(2, 2), launch(3, 3),
        kernel(1, 10, 60, "ampere_sgemm_128x64_tn"), kernel(2, 50, 60, reduce, stream=20),
        kernel(3, 200, 10, "of_no_known_family"),
    ])  # fmt: skip
    found = gpu_time(trace)
    assert found is not None
    share = pytest.approx(60 / 110), pytest.approx(40 / 110)
    assert found["communication"] == {
        "time_us": 60, "share": share[0], "alone_us": 40, "alone_share": share[1]
    }  # fmt: skip
    alone = gpu_time(make_trace([launch(1, 1), kernel(1, 10, 60, "ampere_sgemm_128x64_tn")]))
    assert alone is not None
    assert alone["communication"] is None


def test_work_without_a_length_has_no_shares(make_trace: MakeTrace) -> None:
    found = gpu_time(make_trace([launch(1, 10), kernel(1, 20, 0, "k")]))
    assert found is not None
    assert found["idle_share"] is None
    assert found["families"][0]["share"] is None


@pytest.mark.parametrize("name", ["kin-r50-w0-v19", "tl-h100-owl", "swin-a4000", "hta-nccl"])
def test_the_causes_are_those_of_the_gaps(name: str, real_traces: Path) -> None:
    (path,) = (path for path in (real_traces / name).iterdir() if ".json" in path.name)
    trace = load_trace(path)
    found, gaps = gpu_time(trace), describe_gaps(trace)
    assert found is not None
    assert len(found["families"]) <= MOST_FAMILIES
    assert found["idle_us"] == pytest.approx(gaps["gap_time_us"])
    assert [(row["cause"], row["time_us"]) for row in found["idle_causes"]] == [
        (row["cause"], row["time_us"]) for row in gaps["causes"]
    ]
