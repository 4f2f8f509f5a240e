"""GPU work is of the call with its correlation id; two processes in one file may share ids.

Where there is no correlation id, it is of the call with its External id, if that leaves no choice.
"""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.report.coverage_text import quality_sentences
from analyze.tables.build import Trace
from analyze.tables.correlation import calls_of
from analyze.tables.coverage import coverage, quality
from analyze.words import counted
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, host, kernel, launch, op, owners


def frame(*rows: tuple[int | None, int | None]) -> pl.DataFrame:
    schema = {"correlation": pl.Int64, "start_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_row_index("row")


def test_ids_that_are_missing_or_zero_name_no_call() -> None:
    found = calls_of(frame((0, 5), (None, 5), (9, 5), (1, None)), frame((0, 1), (1, 2)))
    assert found["row"].to_list() == [None, None, None, 1]
    assert not found["ambiguous"].any()


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 30)), max_size=12), st.data())
def test_of_several_calls_it_is_the_last_before(calls: list[tuple[int, int]], data: Any) -> None:
    work = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), max_size=12))
    found = calls_of(frame(*work), frame(*calls))
    for (correlation, start), row in zip(work, found["row"], strict=True):
        same = [(at, n) for n, (id_, at) in enumerate(calls) if id_ == correlation]
        if not same:
            assert row is None
            continue
        before = [at for at, _ in same if at <= start]
        if len(same) > 1 and before:
            assert calls[row] == (correlation, max(before))
        else:
            assert row == min(n for _, n in same)


def of_process(pid: int, start: int) -> list[Event]:
    events = [op("aten::mm", start, 20), launch(7, start + 5)]
    return [{**event, "pid": pid} for event in events] + [kernel(7, start + 40, 10)]


def test_two_processes_in_one_file_keep_their_work(make_trace: MakeTrace) -> None:
    trace = make_trace([*of_process(1, 100), *of_process(2, 1000)])
    assert trace.table("ops").sort("start_us")["gpu_ops"].to_list() == [1, 1]
    assert quality(trace)["ambiguous_links"] == 2
    alone = make_trace(of_process(1, 100))
    assert quality(alone)["ambiguous_links"] == 0


def with_external_id(event: Event, external_id: int) -> Event:
    return {**event, "args": {**event["args"], "External id": external_id}}


def call_with(external_id: int, start: float, name: str = "hipExtModuleLaunchKernel") -> Event:
    return with_external_id(host("cuda_runtime", name, start, 2), external_id)


def work_with(external_id: int, start: float, name: str = "k") -> Event:
    return with_external_id(kernel(None, start, 10, name), external_id)


def linked(trace: Trace) -> list[bool]:
    flags: list[bool] = trace.table("gpu_ops").sort("start_us")["linked"].to_list()
    return flags


def notes(trace: Trace) -> list[str]:
    sentences = quality_sentences(coverage(trace), quality(trace))
    return [sentence for sentence in sentences if "External id" in sentence]


def test_without_correlation_ids_work_is_of_the_launch_with_its_external_id(
    make_trace: MakeTrace,
) -> None:
    trace = make_trace([
        op("aten::mm", 0, 50, **{"External id": 513}), call_with(25, 10), call_with(26, 20),
        op("aten::add", 60, 20, **{"External id": 25}), call_with(27, 65),
        call_with(28, 90, "hipDeviceSynchronize"),
        work_with(25, 100), work_with(26, 120), work_with(27, 140), work_with(28, 160),
    ])  # fmt: skip
    assert owners(trace) == ["aten::mm", "aten::mm", "aten::add", None]
    assert trace.table("ops").sort("start_us")["device_us"].to_list() == [20, 10]
    assert trace.table("launches")["gpu_ops"].to_list() == [1, 1, 1]
    assert coverage(trace)["gpu_ops_unlinked"] == 1
    assert quality(trace)["external_id_is"] == "launch"
    assert notes(trace) == [
        "3 GPU ops without a correlation id: linked to the one launch with the same External id"
    ]


def test_copies_and_graphs_have_their_call_by_external_id_too(make_trace: MakeTrace) -> None:
    copy = {**work_with(1, 100, "Memcpy HtoD (Host -> Device)"), "cat": "gpu_memcpy"}
    trace = make_trace([
        call_with(1, 10, "hipMemcpyAsync"), call_with(2, 20, "hipGraphLaunch"),
        copy, *(work_with(2, 200 + 20 * n) for n in range(3)),
    ])  # fmt: skip
    assert linked(trace) == [True] * 4
    assert trace.table("launches")["gpu_ops"].to_list() == [3]


@pytest.mark.parametrize(
    "events",
    [
        [call_with(7, 10), call_with(7, 20), work_with(7, 100)],
        [call_with(7, 10), call_with(7, 20, "hipMemcpyAsync"), work_with(7, 100)],
        [call_with(7, 10), work_with(7, 100), work_with(7, 120)],
        [call_with(7, 110), work_with(7, 100)],
        [with_external_id(launch(3, 10), 7), work_with(7, 100)],
    ],
    ids=[
        "two launches bear it", "a copy bears it too", "other work bears it too",
        "the launch begins later", "the launch has a correlation id",
    ],
)  # fmt: skip
def test_an_external_id_that_leaves_a_choice_links_nothing(
    make_trace: MakeTrace, events: list[Event]
) -> None:
    trace = make_trace([op("aten::mm", 0, 50, **{"External id": 7}), *events])
    assert not any(linked(trace))
    work = trace.table("gpu_ops").height
    assert quality(trace)["undecided_links"] == work
    assert notes(trace) == [
        f"{counted(work, 'GPU op')} without a correlation id: launches bear the same External id,"
        " but none is surely the one, so none is linked"
    ]


def test_work_with_a_correlation_id_is_never_linked_by_external_id(make_trace: MakeTrace) -> None:
    ids = {"External id": 7}
    trace = make_trace([
        op("by id", 0, 50, **ids), call_with(7, 10),
        kernel(3, 100, 10, **ids), work_with(8, 120),
    ])  # fmt: skip
    assert linked(trace) == [False, False]
    assert owners(trace) == ["by id", None]
    assert quality(trace)["external_id_is"] == "op"
    assert not notes(trace)


def test_where_ids_are_those_of_ops_work_without_a_correlation_id_has_an_op_and_no_launch(
    make_trace: MakeTrace,
) -> None:
    ids = {"External id": 7}
    trace = make_trace([
        op("by id", 0, 50, **ids),
        with_external_id(launch(1, 10), 7), with_external_id(launch(2, 20), 7),
        kernel(1, 100, 10, **ids), work_with(7, 120),
    ])  # fmt: skip
    assert linked(trace) == [True, False]
    assert owners(trace) == ["by id", "by id"]
    assert quality(trace)["external_id_is"] == "op"
    assert quality(trace)["undecided_links"] == 1
