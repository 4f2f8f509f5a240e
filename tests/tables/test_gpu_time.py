"""Where the GPU's time goes: idle time by cause, and busy time by family."""

from pathlib import Path

import pytest

from analyze.report.gaps import describe_gaps
from analyze.tables.build import load_trace
from analyze.tables.gpu_time import MOST_FAMILIES, gpu_time
from tests.conftest import MakeTrace
from tests.tables.test_attribution import kernel, launch, mark

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


def test_without_gpu_work_of_a_known_time_there_is_no_answer(make_trace: MakeTrace) -> None:
    assert gpu_time(make_trace([mark("start", 0, 1)])) is None


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
