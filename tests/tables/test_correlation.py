"""GPU work is of the call with its correlation id; two processes in one file may share ids."""

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyze.tables.correlation import calls_of
from analyze.tables.coverage import quality
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, kernel, launch, op


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
