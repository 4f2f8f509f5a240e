"""What a wait costs the GPU: the idle time that begins in it, until the next work."""

from pathlib import Path

import pytest

from analyze.tables.build import load_trace
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, host, kernel, launch, op


def waiting(start: float, length: float) -> Event:
    return host("cuda_runtime", "cudaStreamSynchronize", start, length, correlation=90)


def test_idle_time_is_of_the_wait_in_which_it_began(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("aten::mm", 0, 200), launch(1, 1), kernel(1, 10, 30), waiting(5, 40),
        launch(2, 60), kernel(2, 70, 50), waiting(80, 10), launch(3, 92), kernel(3, 120, 5),
    ])  # fmt: skip
    calls = trace.table("api_calls").sort("start_us").select("name", "idle_us").rows()
    assert [idle for name, idle in calls if name == "cudaStreamSynchronize"] == [30.0, 0.0]
    assert {idle for name, idle in calls if name == "cudaLaunchKernel"} == {None}


@pytest.mark.parametrize("name", ["switch-a100", "tl-h100-owl", "hta-ns"])
def test_no_more_idle_time_than_there_is(name: str, real_traces: Path) -> None:
    (path,) = (real_traces / name).glob("*.json.gz")
    trace = load_trace(path)
    of_waits = trace.table("api_calls")["idle_us"].sum()
    assert 0 < of_waits <= trace.table("gaps")["dur_us"].sum()
