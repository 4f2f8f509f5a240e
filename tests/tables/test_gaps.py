"""The times a device had nothing to do: exact, each with its cause and what the CPU did in it."""

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.engine.data import TraceTables
from analyze.engine.run import run_rule
from analyze.tables.build import Trace, load_trace
from analyze.tables.catalogue import Need
from analyze.tables.intervals import covered_before, covered_ns
from tests.conftest import MakeTrace
from tests.engine.conftest import LoadText, load_text  # noqa: F401 - a fixture
from tests.tables.test_attribution import Event, host, kernel, launch, mark, op

REFINED = {
    "host": {"host", "input", "launch", "sync"},
    "sync": {"sync", "input"},
    "profiler": {"profiler"},
    "device": {"device", "launch", "stream"},
}
"""What each value of ``gpu_ops.gap_cause`` may be in ``gaps.cause``."""

CALL = "cudaLaunchKernel"
START = mark("start", 0, 1)
FURTHEST = (1 << 63) // 1000
"""In microseconds."""


@pytest.mark.parametrize(
    ("before", "stream", "cause"),
    [
        ([launch(2, 100)], 7, "host"),
        ([launch(2, 12)], 7, "device"),
        ([launch(2, 12)], 8, "stream"),
        ([host("cuda_runtime", CALL, 18, 80, correlation=2)], 7, "launch"),
        ([host("cuda_runtime", CALL, 30, 80, correlation=2)], 7, "launch"),
        ([host("cuda_runtime", CALL, 18, 30, correlation=2)], 7, "device"),
        ([host("cuda_runtime", CALL, 17, 60), launch(2, 100)], 7, "launch"),
        ([host("cuda_runtime", CALL, 17, 40), launch(2, 100)], 7, "host"),
        ([host("cuda_runtime", CALL, 17, 60, 2), launch(2, 100)], 7, "host"),
        ([host("cuda_runtime", "cudaStreamSynchronize", 15, 20), launch(2, 100)], 7, "sync"),
        ([host("cuda_runtime", "cudaMemcpy", 25, 70), launch(2, 100)], 7, "sync"),
        ([host("cuda_runtime", "cudaMemcpy", 25, 70, 2), launch(2, 100)], 7, "host"),
        ([host("cuda_runtime", "cudaMalloc", 25, 70), launch(2, 100)], 7, "host"),
        ([host("overhead", "Buffer Flush", 25, 70), launch(2, 100)], 7, "profiler"),
        ([mark("enumerate(DataLoader)#_Iter.__next__", 25, 70), launch(2, 100)], 7, "input"),
        ([mark("enumerate(DataLoader)#_Iter.__next__", 25, 30), launch(2, 100)], 7, "host"),
        ([op("enumerate(DataLoader)#_Iter.__next__", 15, 80), launch(2, 100)], 7, "input"),
        (
            [
                host("cuda_runtime", "cudaStreamSynchronize", 15, 10),
                mark("my dataloader", 25, 70),
                launch(2, 100),
            ],
            7,
            "input",
        ),
        ([host("user_annotation", "DataLoader", 15, 80, 77), launch(2, 100)], 7, "host"),
        ([], 7, None),
    ],
)
def test_the_cause_of_a_gap(
    make_trace: MakeTrace, before: list[Event], stream: int, cause: str | None
) -> None:
    trace = make_trace(
        [START, launch(1, 10), *before, kernel(1, 15, 5), kernel(2, 110, 5, "k", stream=stream)]
    )
    gaps = trace.table("gaps")
    assert gaps.select("start_us", "dur_us", "cause").rows() == [(20.0, 90.0, cause)]


@pytest.mark.parametrize(
    ("launched_at", "starts", "stream", "cause"),
    [
        (40, 190, 7, "device"),  # in the queue for 148 of 170 us
        (40, 190, 8, "device"),
        (12, 190, 8, "device"),  # no stream works for so long
        (12, 119, 8, "stream"),
        (40, 140, 7, "host"),  # in the queue for less than 100 us
        (110, 300, 7, "device"),
        (190, 300, 7, "host"),  # launched only when half of the gap was over
    ],
)
def test_work_that_is_not_begun_at_once_waits_for_the_device(
    launched_at: int, starts: int, stream: int, cause: str, make_trace: MakeTrace
) -> None:
    trace = make_trace([
        START, launch(1, 10), launch(2, launched_at),
        kernel(1, 15, 5), kernel(2, starts, 5, "k", stream=stream),
    ])  # fmt: skip
    assert trace.table("gaps")["cause"].to_list() == [cause]
    broad = "device" if cause == "stream" else cause
    assert trace.table("gpu_ops")["gap_cause"].to_list()[1] in (broad, "outside")


def test_what_the_launching_thread_did_in_a_gap(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 10), kernel(1, 15, 5, "first"),
        host("python_function", "mine.py(3): step", 0, 50),
        host("python_function", "mine.py(9): f", 50, 90),
        op("aten::linear", 30, 50), op("aten::addmm", 40, 40),
        host("cuda_runtime", "cudaMalloc", 45, 30), host("cuda_driver", "cuMemCreate", 50, 10),
        op("aten::other", 25, 70, 2),
        launch(2, 100), kernel(2, 110, 5, "second"),
    ])  # fmt: skip
    (gap,) = trace.table("gaps").to_dicts()
    assert (gap["start_us"], gap["dur_us"]) == (20, 90)
    assert (gap["in_api_us"], gap["in_ops_us"], gap["outside_ops_us"]) == (32, 20, 38)
    assert (gap["op_chain"], gap["op_us"]) == ("aten::linear > aten::addmm", 40)
    assert (gap["op"], gap["api"], gap["source"]) == ("aten::addmm", "cudaMalloc", "mine.py:9")
    assert (gap["previous_name"], gap["next_name"]) == ("first", "second")
    assert (gap["memory_calls_us"], gap["memory_call"]) == (30, "cudaMalloc")
    assert gap["loader"] is None


def test_calls_for_memory_are_told_apart_from_others(make_trace: MakeTrace) -> None:
    trace = make_trace([
        START, launch(1, 10), kernel(1, 15, 5),
        host("cuda_runtime", "cudaMalloc", 22, 3), host("cuda_runtime", "cudaFree", 30, 10),
        host("cuda_runtime", "cudaFree", 45, 20, 2), host("cuda_runtime", "cudaMallocAsync", 50, 9),
        launch(2, 80), kernel(2, 110, 5), launch(3, 120), kernel(3, 130, 5),
    ])  # fmt: skip
    gaps = trace.table("gaps").select("memory_calls_us", "memory_call").rows()
    assert gaps == [(13, "cudaFree"), (0, None)]


def test_what_loads_data_in_a_gap(make_trace: MakeTrace) -> None:
    one, other = (f"enumerate(DataLoader)#_{kind}.__next__" for kind in ("Single", "Multi"))
    trace = make_trace([
        mark(one, 0, 12), launch(1, 13), kernel(1, 15, 5), mark(other, 18, 70),
        launch(2, 100), kernel(2, 110, 5), launch(3, 118), kernel(3, 130, 5),
    ])  # fmt: skip
    assert trace.table("gaps")["loader"].to_list() == [other, None]


def test_activity_without_recorded_ops_is_unknown(make_trace: MakeTrace) -> None:
    trace = make_trace([START, launch(1, 10), kernel(1, 15, 5), launch(2, 100), kernel(2, 110, 5)])
    (gap,) = trace.table("gaps").to_dicts()
    assert (gap["in_api_us"], gap["in_ops_us"], gap["outside_ops_us"]) == (2, None, None)


@pytest.mark.parametrize(
    ("windows", "lengths"),
    [
        ([[0, 100], [200, 300]], [5, 5]),  # the gap from 115 on, of which nobody knows
        ([[200, 300], [0, 100]], [5, 5]),
        ([[0, 300]], [5, 165, 5]),
        ([[0, 100], [100, 300]], [5, 165, 5]),
        ([[0, 300], [400, 500]], [5, 165, 5]),
        ([[-FURTHEST, 100], [200, FURTHEST]], [5, 5]),
        ([[-FURTHEST, -FURTHEST + 1], [0, 100], [200, 300]], [5, 5]),
        ([[5, 1], [9, 2]], [5, 165, 5]),
    ],
)
def test_a_time_that_trimming_left_out_is_no_gap(
    windows: list[list[int]], lengths: list[int], make_trace: MakeTrace
) -> None:
    trace = make_trace(
        [
            *(launch(1, 50), kernel(1, 80, 10), launch(2, 60), kernel(2, 95, 20)),
            *(launch(3, 210), kernel(3, 280, 10), launch(4, 220), kernel(4, 295, 10)),
        ],
        kinetolint_trim={"windows_ns": [[a * 1000, b * 1000] for a, b in windows]},
    )
    assert trace.gaps["dur_ns"].to_list() == [length * 1000 for length in lengths]
    (row,) = trace.table("trace").to_dicts()
    assert row["gpu_span_us"] - row["gpu_busy_us"] == sum(lengths)
    before = trace.table("gpu_ops")["gap_before_us"].drop_nulls().to_list()
    assert before == lengths


def test_each_device_has_gaps_of_its_own(make_trace: MakeTrace) -> None:
    """One thread launches on both: what it does is counted in the gaps of both."""
    trace = make_trace([
        START, op("aten::add", 10, 50), launch(1, 10), launch(2, 12), launch(3, 90), launch(4, 95),
        kernel(1, 15, 5), kernel(3, 100, 5),
        kernel(2, 20, 10, "k", device=1), kernel(4, 110, 5, "k", device=1),
    ])  # fmt: skip
    gaps = trace.table("gaps").select("device", "start_us", "dur_us", "in_ops_us", "in_api_us")
    assert gaps.rows() == [(0, 20.0, 80.0, 40.0, 4.0), (1, 30.0, 80.0, 30.0, 4.0)]


def test_what_ran_before_a_gap_is_of_its_own_device(make_trace: MakeTrace) -> None:
    trace = make_trace([
        START, *(launch(number, number) for number in range(1, 5)),
        kernel(1, 15, 5, "a0"), kernel(2, 20, 10, "b0", device=1, stream=20),
        kernel(3, 100, 5, "a1"), kernel(4, 110, 5, "b1", device=1, stream=20),
    ])  # fmt: skip
    gaps = trace.table("gaps").select("device", "previous_name", "next_name", "cause")
    assert gaps.rows() == [(0, "a0", "a1", "device"), (1, "b0", "b1", "device")]


def test_gaps_between_forwards_are_marked_and_have_a_cause(make_trace: MakeTrace) -> None:
    trace = make_trace([
        mark("attn_fwd", 0, 50), mark("attn_fwd", 100, 50),
        launch(1, 10), launch(2, 30), launch(3, 70), launch(4, 110), launch(5, 111),
        kernel(1, 20, 5), kernel(2, 40, 5), kernel(3, 80, 5), kernel(4, 120, 5), kernel(5, 127, 5),
    ])  # fmt: skip
    gaps = trace.table("gaps").select("forward", "in_forward", "between_forwards", "cause")
    assert gaps.rows() == [
        (0, True, False, "host"), (None, False, True, "host"),
        (1, False, True, "host"), (1, True, False, "device"),
    ]  # fmt: skip


def test_nothing_lies_between_forwards_where_there_is_one(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 10), mark("attn_fwd", 20, 50), launch(2, 30), launch(4, 60), launch(5, 61),
        launch(6, 90), host("cuda_runtime", "cudaLaunchKernel", 40, 3, tid=2, correlation=3),
        *(kernel(number, 20 * number, 5) for number in range(1, 7)),
    ])  # fmt: skip
    gaps = trace.table("gaps").select("forward", "in_forward", "between_forwards")
    outside = [(0, False, False), (None, False, False), (0, False, False)]
    assert gaps.rows() == [*outside, (0, True, False), (None, False, False)]


WORK = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 15)), max_size=12)


@given(WORK)
def test_gaps_are_what_no_work_covers(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[int, int, int]]
) -> None:
    events = [kernel(None, start, length, "k", device=d) for d, start, length in work]
    path = tmp_path_factory.mktemp("gaps") / "made.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*events, mark("m", 0, 1)]}))
    found: defaultdict[int, set[int]] = defaultdict(set)
    gaps = load_trace(path).table("gaps")
    for device, start, length in gaps.select("device", "start_us", "dur_us").iter_rows():
        moments = set(range(round(start), round(start + length)))
        assert moments, "an empty gap"
        assert not moments & found[device], "gaps overlap"
        found[device] |= moments
    for device in {d for d, _, _ in work}:
        own = [(start, length) for d, start, length in work if d == device]
        busy = {moment for start, length in own for moment in range(start, start + length)}
        span = range(min(s for s, _ in own), max(s + n for s, n in own))
        assert found[device] == set(span) - busy


@given(WORK, st.lists(st.tuples(st.integers(0, 1), st.integers(-5, 90)), min_size=1))
def test_covered_time_before_a_point(
    work: list[tuple[int, int, int]], points: list[tuple[int, int]]
) -> None:
    intervals = pl.DataFrame(
        work, schema={"d": pl.Int64, "start_ns": pl.Int64, "dur_ns": pl.Int64}, orient="row"
    )
    asked = pl.DataFrame(points, schema={"d": pl.Int64, "start_ns": pl.Int64}, orient="row")
    busy = {(d, moment) for d, start, length in work for moment in range(start, start + length)}
    expected = [sum(d == device and t < point for d, t in busy) for device, point in points]
    assert covered_before(asked, intervals, ["d"]).to_list() == expected


def real(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.json*"))


def readable(folder: Path) -> list[Trace]:
    names = [path for path in real(folder) if "-neg" not in path.parent.name]
    assert len(names) > 40
    return [load_trace(path) for path in names]


def test_real_gaps_are_exact_and_explained(real_traces: Path) -> None:
    """Busy and idle add up, times of the CPU add up, causes agree with gap_cause."""
    seen = set()
    for trace in readable(real_traces):
        gaps, gpu_ops = trace.gaps, trace.facts.gpu_ops
        idle = gaps.group_by("device_label").agg(idle_ns=pl.col("dur_ns").sum())
        devices = covered_ns(gpu_ops, ["device_label"]).join(
            idle, on="device_label", how="left", nulls_equal=True
        )
        for busy, span, idle_ns in devices.select("busy_ns", "span_ns", "idle_ns").iter_rows():
            assert busy + (idle_ns or 0) == span, trace.name
        known = gaps.filter(pl.col("in_ops_ns").is_not_null())
        parts = pl.sum_horizontal("in_api_ns", "in_ops_ns", "outside_ops_ns")
        assert known.filter(parts != pl.col("dur_ns")).is_empty(), trace.name
        causes = gpu_ops.filter(pl.col("gap_before_ns") > 0).select(
            "device_label", "gap_cause", start_ns=pl.col("start_ns") - pl.col("gap_before_ns")
        )
        both = gaps.join(causes, on=["device_label", "start_ns"], nulls_equal=True)
        assert both.height == gaps.height
        for cause, broad in both.select("cause", "gap_cause").unique().iter_rows():
            seen.add(cause)
            if broad is None:
                assert cause is None
            elif broad != "outside":
                assert cause in REFINED[broad], trace.name
    assert seen == {None, "host", "sync", "input", "profiler", "launch", "stream", "device"}


@pytest.mark.parametrize("name", ["tl-b200", "tl-h100-bert", "hta-ns", "par-dlrm-w0"])
def test_idle_time_of_the_raw_events(name: str, real_traces: Path) -> None:
    """Recomputed from plain JSON with exact decimals."""
    (path,) = [path for path in real(real_traces) if path.parent.name == name]
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    work: defaultdict[Any, list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            start, length = (int(Decimal(event[key]) * 1000) for key in ("ts", "dur"))
            work[event["args"]["device"]].append((start, start + length))
    expected: dict[Any, list[int]] = {}
    for device, intervals in work.items():
        lengths, busy_until = [], None
        for start, end in sorted(intervals):
            if busy_until is not None and start > busy_until:
                lengths.append(start - busy_until)
            busy_until = end if busy_until is None else max(busy_until, end)
        expected[device] = sorted(lengths)
    gaps = load_trace(path).gaps
    found = {device: sorted(gaps.filter(device=device)["dur_ns"]) for device in expected}
    assert found == expected
    assert sum(map(len, expected.values())) > 50


RULE = "from: gaps\nmeasure: {us: sum(dur_us)}\nexpect: us == 0\nmessage: '{us:us}'"


def test_rules_tell_a_gpu_that_never_idles_from_no_gpu(
    make_trace: MakeTrace,
    load_text: LoadText,  # noqa: F811 - the fixture
    samples: Path,
) -> None:
    rule = load_text(RULE)
    always_busy = make_trace([launch(1, 10), launch(2, 15), kernel(1, 20, 5), kernel(2, 25, 5)])
    assert run_rule(rule, TraceTables(always_busy)).state == "pass"
    cpu_only = run_rule(rule, TraceTables(load_trace(samples / "cpu-naive.json.gz")))
    assert cpu_only.not_applicable == Need.GPU.value
    idle = make_trace([launch(1, 10), launch(2, 95), kernel(1, 20, 5), kernel(2, 100, 5)])
    assert run_rule(rule, TraceTables(idle)).state == "mismatch"
