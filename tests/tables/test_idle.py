"""Why the GPU had nothing to do, what crosses what on a stream, and attention written as ops."""

import pytest

from analyze.tables.coverage import quality
from tests.conftest import MakeTrace
from tests.tables.test_attribution import MAIN, Event, host, kernel, launch, mark, op


@pytest.mark.parametrize(
    ("before", "cause"),
    [
        ([launch(2, 100)], "host"),
        ([launch(2, 12)], "device"),
        ([host("cuda_runtime", "cudaStreamSynchronize", 15, 20), launch(2, 100)], "sync"),
        ([host("cuda_runtime", "cudaStreamSynchronize", 40, 20), launch(2, 100)], "host"),
        ([host("cuda_runtime", "cudaStreamSynchronize", 15, 20, 77), launch(2, 100)], "host"),
        ([host("overhead", "Buffer Flush", 25, 70), launch(2, 100)], "profiler"),
        ([host("overhead", "Buffer Flush", 25, 10), launch(2, 100)], "host"),
        ([], None),
    ],
)
def test_the_cause_of_a_gap(make_trace: MakeTrace, before: list, cause: str | None) -> None:  # type: ignore[type-arg]
    trace = make_trace([launch(1, 10), *before, kernel(1, 15, 5), kernel(2, 110, 5)])
    gpu_ops = trace.table("gpu_ops")
    assert gpu_ops["gap_before_us"].to_list() == [None, 90]
    assert gpu_ops["gap_cause"].to_list() == ["outside", cause]


def test_gaps_between_forwards_are_no_ones(make_trace: MakeTrace) -> None:
    trace = make_trace([
        mark("attn_fwd", 0, 50), mark("attn_fwd", 100, 50),
        launch(1, 10), launch(2, 30), launch(3, 70), launch(4, 110), launch(5, 111),
        kernel(1, 20, 5), kernel(2, 40, 5), kernel(3, 80, 5), kernel(4, 120, 5), kernel(5, 125, 5),
    ])  # fmt: skip
    causes = trace.table("gpu_ops")["gap_cause"].to_list()
    assert causes == ["outside", "host", "outside", "outside", "none"]


def test_overlapping_overhead_counts_once(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 10), launch(2, 100), kernel(1, 15, 5), kernel(2, 110, 5),
        host("overhead", "a", 20, 30), host("overhead", "b", 25, 20), host("overhead", "c", 30, 25),
    ])  # fmt: skip
    assert trace.table("gpu_ops")["gap_cause"].to_list() == ["outside", "host"]


def test_what_crosses_earlier_work_of_its_stream(make_trace: MakeTrace) -> None:
    trace = make_trace([
        kernel(1, 0, 10, "outer"), kernel(2, 2, 5, "inside"), kernel(3, 8, 5, "crosses"),
        kernel(4, 13, 5, "touches"), kernel(5, 17, 5, "other stream", stream=9),
    ])  # fmt: skip
    crossing = trace.table("gpu_ops").filter("crosses_earlier")
    assert crossing["name"].to_list() == ["crosses"]


def queued(tid: object, start: float) -> Event:
    """A kernel of an Intel GPU: its arguments name no stream, its row is the queue's."""
    return {**kernel(None, start, 10), "tid": tid, "args": {"device": 0}}


@pytest.mark.parametrize(
    ("rows", "streams", "crosses", "overlaps"),
    [
        ((1, 2), [1, 2], [False, False], 0),
        (("stream 7", "stream 7 "), [7, 7], [False, True], 1),
        ((None, None), [None, None], [None, None], 0),
    ],
)
def test_without_an_argument_the_stream_is_that_of_the_row(
    make_trace: MakeTrace,
    rows: tuple[object, object],
    streams: list[int | None],
    crosses: list[bool | None],
    overlaps: int,
) -> None:
    trace = make_trace([queued(rows[0], 0), queued(rows[1], 5)])
    gpu_ops = trace.table("gpu_ops")
    assert gpu_ops["stream"].to_list() == streams
    assert gpu_ops["crosses_earlier"].to_list() == crosses
    assert quality(trace)["stream_overlaps"] == overlaps


def test_attention_written_as_ops(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("aten::mm", 0, 5), op("aten::bmm", 10, 5), op("aten::mul", 20, 5),
        op("aten::softmax", 30, 8), op("aten::_softmax", 31, 5), op("aten::bmm", 40, 5),
        op("aten::mm", 50, 5), op("aten::_softmax", 60, 5, MAIN), op("aten::bmm", 70, 5),
        op("aten::_softmax", 12, 1, 2), op("aten::bmm", 80, 5, 2),
    ])  # fmt: skip
    ops = trace.table("ops").filter(tid=str(MAIN)).sort("start_us")
    assert ops["by_hand"].to_list() == [None, 0, 0, 0, 0, 0, None, None, None]
    assert trace.table("ops").filter(tid="2")["by_hand"].null_count() == 2


def test_the_math_backend_is_not_written_by_hand(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("aten::scaled_dot_product_attention", 0, 100), op("aten::bmm", 10, 5),
        op("aten::_softmax", 20, 5), op("aten::bmm", 30, 5),
    ])  # fmt: skip
    assert trace.table("ops")["by_hand"].null_count() == 4
