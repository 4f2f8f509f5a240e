"""What a report draws beside the findings: which forward, what of it, and that nothing is lost."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.engine.result import TraceReport
from analyze.errors import AnalyzeError, NothingToCheckError, TraceError
from analyze.report.summary import sum_of_known
from analyze.report.views import build_views, with_views
from analyze.report.views.gpu_lanes import MAX_IDLE_TIMES, MAX_ROWS, MAX_SLICES, rows_of
from analyze.report.views.host_lanes import MAX_CALLS, MAX_SPANS, MAX_THREADS
from analyze.report.views.kernel_rows import MAX_ROWS as MAX_NAMES
from analyze.report.views.model import Timeline, Views, views_of
from analyze.report.views.slices import condense
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, host, kernel, launch, mark, op


def views(trace: Trace, **report: Any) -> Views:
    """Return the views as a reader of stored JSON gets them."""
    stored = orjson.loads(orjson.dumps(build_views(trace)))
    result: Any = TraceReport("made.json", None, {}, {}, **report)  # type: ignore[arg-type]
    found = views_of(TraceReport(**{**vars(result), "views": stored}))
    assert found is not None
    return found


def timeline(trace: Trace) -> Timeline:
    found = views(trace).timeline
    assert found is not None
    return found


def forward(correlation: int, start: float, gpu: float, name: str = "k") -> list[Event]:
    return [
        mark("attn_fwd", start, 50),
        op("aten::mul", start + 5, 20),
        launch(correlation, start + 10),
        kernel(correlation, start + 20, gpu, name),
    ]


def test_the_median_forward_is_drawn_and_the_range_is_said(make_trace: MakeTrace) -> None:
    events = [*forward(1, 0, 40), *forward(2, 1000, 10), *forward(3, 2000, 20)]
    drawn = timeline(make_trace(events))
    assert (drawn.index, drawn.forwards, drawn.forward_is) == (2, 3, "attn_fwd")
    assert (drawn.chosen_by, drawn.amount_us) == ("gpu_busy_us", 20)
    assert (drawn.least_us, drawn.most_us) == (10, 40)
    assert (drawn.start_us, drawn.dur_us) == (2000, 50)
    assert (drawn.cpu_start_us, drawn.cpu_dur_us) == (0, 50)


def steps(*gpu: float) -> list[Event]:
    """Steps from ProfilerStep#4 on, of one kernel each."""
    return [
        event
        for number, time in enumerate(gpu)
        for event in (
            mark(f"ProfilerStep#{number + 4}", 1000 * number, 900),
            launch(number + 1, 1000 * number + 10),
            kernel(number + 1, 1000 * number + 20, time),
        )
    ]


def test_a_step_has_its_own_number_and_a_forward_only_its_place(make_trace: MakeTrace) -> None:
    drawn = timeline(make_trace(steps(40, 20, 30)))
    assert (drawn.forward_is, drawn.index, drawn.step) == ("ProfilerStep", 2, 6)
    drawn = timeline(make_trace([*steps(40, 20, 30), mark("model", 1000, 100)], forward="model"))
    assert (drawn.forward_is, drawn.index, drawn.step) == ("model", 0, None)


def test_the_number_of_a_step_is_unknown_in_results_stored_before(make_trace: MakeTrace) -> None:
    stored = build_views(make_trace(steps(40)))
    del stored["timeline"]["step"]
    report: Any = TraceReport("made.json", None, {}, {}, views=stored)  # type: ignore[arg-type]
    found = views_of(report)
    assert found is not None
    assert found.timeline is not None
    assert found.timeline.step is None


def test_the_window_reaches_to_the_end_of_the_gpu_work(make_trace: MakeTrace) -> None:
    drawn = timeline(make_trace(forward(1, 100, 500)))
    assert (drawn.start_us, drawn.dur_us, drawn.cpu_dur_us) == (0, 520, 50)


@pytest.mark.parametrize(("gpu", "index"), [((40, 20, 30), 2), ((40, 10, 30, 20), 3)])
def test_it_is_known_of_how_many_forwards_the_drawn_one_is_the_median(
    gpu: tuple[float, ...], index: int, make_trace: MakeTrace
) -> None:
    without_gpu_work = mark("ProfilerStep#90", 90_000, 900)
    drawn = timeline(make_trace([*steps(*gpu), without_gpu_work]))
    assert (drawn.index, drawn.chosen_of, drawn.forwards) == (index, len(gpu), len(gpu) + 1)


def test_forwards_without_gpu_work_are_chosen_by_cpu_time(make_trace: MakeTrace) -> None:
    events = [mark("attn_fwd", start, length) for start, length in ((0, 5), (10, 30), (50, 7))]
    drawn = timeline(make_trace(events))
    assert (drawn.chosen_by, drawn.index, drawn.amount_us) == ("cpu_us", 2, 7)
    assert (drawn.streams, drawn.devices) == ([], [])


def test_a_kernel_names_its_launch_its_ops_and_its_delay(make_trace: MakeTrace) -> None:
    drawn = timeline(make_trace(forward(1, 0, 40, "void gemm<1>()")))
    thread, stream = drawn.threads[0], drawn.streams[0]
    slices = stream.slices
    assert drawn.texts[slices.name[0]] == "void gemm<1>()"
    assert (slices.thread, slices.call) == ([0], [0])
    assert drawn.texts[thread.calls.name[0]] == "cudaLaunchKernel"
    assert thread.calls.kind == ["launch"]
    assert (slices.launch_us, slices.queue_us) == ([10], [8])
    chain = slices.op_chain[0]
    assert chain is not None
    assert drawn.texts[chain] == "aten::mul"
    names = [drawn.texts[name] for name in thread.spans.name]
    assert dict(zip(names, thread.spans.depth, strict=True)) == {"attn_fwd": 0, "aten::mul": 1}


def test_work_of_another_forward_in_the_window_is_told_apart(make_trace: MakeTrace) -> None:
    trace = make_trace([*forward(1, 0, 70), *forward(2, 60, 90)], forward="attn_fwd")
    drawn = timeline(trace)
    assert drawn.index == 0
    assert drawn.streams[0].slices.own == [True, False]
    spans = drawn.threads[0].spans
    assert {(drawn.texts[n], own) for n, own in zip(spans.name, spans.own, strict=True)} == {
        ("attn_fwd", True), ("aten::mul", True), ("attn_fwd", False), ("aten::mul", False),
    }  # fmt: skip


def test_a_launch_before_the_window_is_dated_but_not_drawn(make_trace: MakeTrace) -> None:
    events = [launch(9, 0), kernel(9, 105, 20, "late"), *forward(1, 100, 40)]
    drawn = timeline(make_trace(events))
    slices = drawn.streams[0].slices
    assert (slices.call[0], slices.launch_us[0]) == (None, -100)
    name = slices.launch_name[0]
    assert name is not None
    assert drawn.texts[name] == "cudaLaunchKernel"


def test_work_whose_launch_is_not_in_the_file_has_no_launch_name(make_trace: MakeTrace) -> None:
    slices = timeline(make_trace([*forward(1, 0, 40), kernel(9, 5, 5)])).streams[0].slices
    assert (slices.launch_name[0], slices.launch_us[0]) == (None, None)


def test_a_copy_says_how_much(make_trace: MakeTrace) -> None:
    copy = kernel(2, 40, 5, "Memcpy DtoD (Device -> Device)", bytes=4096)
    events = [*forward(1, 0, 10), launch(2, 25), {**copy, "cat": "gpu_memcpy"}]
    slices = timeline(make_trace(events)).streams[0].slices
    assert (slices.kind, slices.bytes) == (["kernel", "memcpy"], [None, 4096])


def test_idle_times_have_their_cause(make_trace: MakeTrace) -> None:
    events = [
        mark("attn_fwd", 0, 300), launch(1, 10), kernel(1, 20, 30), launch(2, 200),
        kernel(2, 210, 30),
    ]  # fmt: skip
    idle = timeline(make_trace(events)).devices[0].idle
    assert (idle.start_us, idle.dur_us, idle.cause) == ([50], [160], ["host"])


def test_idle_times_say_what_the_launching_thread_did(make_trace: MakeTrace) -> None:
    events = [
        mark("attn_fwd", 0, 300), op("aten::add", 5, 30), launch(1, 10), kernel(1, 20, 30),
        op("aten::mm", 190, 60), launch(2, 200), kernel(2, 210, 30), kernel(3, 300, 10),
        launch(3, 205),
    ]  # fmt: skip
    idle = timeline(make_trace(events)).devices[0].idle
    assert (idle.dur_us, idle.cause) == ([160, 60], ["host", "device"])
    parts = (idle.outside_ops_us[0], idle.in_ops_us[0], idle.in_api_us[0], idle.op_us[0])
    assert parts[0] == 140
    assert sum(part or 0 for part in parts[:3]) == 160
    assert (parts[3] or 0) < 30
    assert idle.in_ops_us[1] is None


def test_idle_times_of_results_stored_before_know_less(samples: Path) -> None:
    stored = build_views(load_trace(samples / "synthetic-naive.json.gz"))
    for device in stored["timeline"]["devices"]:
        for name in ("op_us", "outside_ops_us", "in_ops_us", "in_api_us"):
            del device["idle"][name]
    report: Any = TraceReport("made.json", None, {}, {}, views=stored)  # type: ignore[arg-type]
    found = views_of(report)
    assert found is not None
    assert found.timeline is not None
    assert found.timeline.devices[0].idle.op_us == []


def test_what_was_launched_is_unknown_in_results_stored_before(samples: Path) -> None:
    stored = build_views(load_trace(samples / "synthetic-naive.json.gz"))
    for thread in stored["timeline"]["threads"]:
        for kind in ("spans", "calls"):
            del thread[kind]["launched"], thread[kind]["launched_us"]
    for stream in stored["timeline"]["streams"]:
        del stream["slices"]["launch_name"]
    del stored["timeline"]["chosen_of"]
    report: Any = TraceReport("made.json", None, {}, {}, views=stored)  # type: ignore[arg-type]
    found = views_of(report)
    assert found is not None
    assert found.timeline is not None
    assert found.timeline.threads[0].spans.launched == []
    assert found.timeline.streams[0].slices.launch_name == []
    assert found.timeline.chosen_of is None


def test_ops_and_calls_know_what_was_launched_in_them(make_trace: MakeTrace) -> None:
    events = [
        mark("attn_fwd", 0, 100), op("outer", 0, 50), op("inner", 10, 20), launch(1, 5),
        launch(2, 10), launch(3, 30), launch(3, 12, tid=2), op("beside", 0, 50, 2), launch(4, 60),
        kernel(1, 200, 1), kernel(2, 210, 2), kernel(2, 220, 4), kernel(4, 900, 16),
    ]  # fmt: skip
    unknown = kernel(1, 300, 8)
    del unknown["dur"]
    drawn = timeline(make_trace([*events, unknown]))
    spans = {
        drawn.texts[name]: (ops, time)
        for thread in drawn.threads
        for name, ops, time in zip(
            thread.spans.name, thread.spans.launched, thread.spans.launched_us, strict=True
        )
    }
    assert spans == {
        "attn_fwd": (4, 23), "outer": (3, 7), "inner": (2, 6), "beside": (0, 0)
    }  # fmt: skip
    calls = drawn.threads[0].calls
    by_start = sorted(zip(calls.start_us, calls.launched, calls.launched_us, strict=True))
    assert by_start == [(5, 1, 1), (10, 2, 6), (30, 0, 0), (60, 1, 16)]


def test_waits_and_copies_are_other_calls_than_launches(make_trace: MakeTrace) -> None:
    events = [
        *forward(1, 0, 10),
        launch(2, 20, name="cudaMemcpyAsync"),
        {**kernel(2, 30, 5, "Memcpy DtoD (Device -> Device)"), "cat": "gpu_memcpy"},
        launch(3, 25, name="cudaStreamSynchronize"),
        host("cuda_runtime", "cudaMalloc", 28, 2),
    ]
    calls = timeline(make_trace(events)).threads[0].calls
    assert calls.kind == ["launch", "copy", "sync", "other"]


slices_of_lanes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 100_000), st.integers(0, 30_000)), max_size=120
)


@given(slices_of_lanes, st.integers(1, 60))
def test_drawing_slices_together_loses_none(slices: list[tuple[int, int, int]], most: int) -> None:
    rows = pl.DataFrame(
        {
            "id": range(len(slices)),
            "lane": [lane for lane, _, _ in slices],
            "start_ns": [start for _, start, _ in slices],
            "dur_ns": [dur for _, _, dur in slices],
            "end_ns": [start + dur for _, start, dur in slices],
            "name": [str(number) for number in range(len(slices))],
        },
        schema_overrides=dict.fromkeys(("lane", "start_ns", "dur_ns", "end_ns"), pl.Int64),
    )
    drawn = condense(rows, ["lane"], most, 130_000)
    assert drawn.slices.height <= most
    assert drawn.slices["count"].sum() + drawn.left_out == len(slices)
    assert drawn.slices["sum_ns"].sum() + drawn.left_out_ns == rows["dur_ns"].sum()
    members = [member for row in drawn.slices["members"].to_list() for member in row]
    assert len(members) == len(set(members))
    for row in drawn.slices.iter_rows(named=True):
        own = rows.filter(pl.col("id").is_in(row["members"]))
        assert own["lane"].unique().to_list() == [row["lane"]]
        assert (row["start_ns"], row["end_ns"]) == (own["start_ns"].min(), own["end_ns"].max())
        longest = own.filter(pl.col("dur_ns") == own["dur_ns"].max())["name"].to_list()
        assert row["name"] in longest
    if len(slices) <= most:
        assert drawn.slices["count"].to_list() == [1] * len(slices)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=60))
def test_work_that_overlaps_is_on_rows_of_its_own(times: list[tuple[int, int]]) -> None:
    slices = sorted((start, start + dur) for start, dur in times)
    rows = rows_of(slices)
    for row in range(MAX_ROWS - 1):  # the last one takes what has no room
        own = [slice_ for slice_, place in zip(slices, rows, strict=True) if place == row]
        assert all(before[1] <= after[0] + 1000 for before, after in pairwise(own))


def many(count: int, names: int = 40) -> list[Event]:
    """Many short kernels in one forward, each with its op and launch."""
    events: list[Event] = [mark("attn_fwd", 0, count * 20)]
    for number in range(count):
        at = number * 20
        name = f"void kernel_{number % names}<{'float, ' * 40}int>(Params)"
        events += [
            op(f"aten::op_{number % 30}", at, 15), launch(number + 1, at + 2),
            kernel(number + 1, at + 5, 3 + number % 7, name, grid=[1, 1, 1], block=[32, 1, 1]),
        ]  # fmt: skip
    return events


def test_many_slices_are_drawn_as_few_whose_sums_are_right(make_trace: MakeTrace) -> None:
    trace = make_trace(many(6000))
    drawn = timeline(trace)
    slices, thread = drawn.streams[0].slices, drawn.threads[0]
    assert len(slices.name) <= MAX_SLICES
    assert len(thread.spans.name) <= MAX_SPANS
    assert len(thread.calls.name) <= MAX_CALLS
    assert sum(slices.count) == sum(thread.calls.count) == 6000
    assert sum(thread.spans.count) == 6001
    expected = sum(3 + number % 7 for number in range(6000))
    assert sum(slices.sum_us) == pytest.approx(expected)
    assert thread.calls.launched == thread.calls.count
    assert sum(thread.calls.launched_us) == pytest.approx(expected)
    annotation = thread.spans.is_op.index(False)
    assert thread.spans.launched[annotation] == 6000
    assert sum(thread.spans.launched) == 12_000
    device = drawn.devices[0]
    assert len(device.idle.cause) == MAX_IDLE_TIMES
    assert len(device.idle.cause) + device.idle_left_out.slices == trace.table("gaps").height


def test_many_threads_are_left_out_and_counted(make_trace: MakeTrace) -> None:
    events = [op(f"op {tid}", tid, 10 + tid, tid) for tid in range(1, 31)]
    drawn = timeline(make_trace(events))
    assert len(drawn.threads) == MAX_THREADS
    left = drawn.threads_left_out
    assert (left.lanes, left.slices) == (30 - MAX_THREADS, 30 - MAX_THREADS)
    assert left.dur_us == sum(10 + tid for tid in range(1, 31 - MAX_THREADS))


def test_kernels_beyond_the_most_are_summed(make_trace: MakeTrace) -> None:
    table = views(make_trace(many(700, names=700))).kernels
    assert (table.names, len(table.rows), table.rest_names) == (700, MAX_NAMES, 200)
    assert sum(row.count for row in table.rows) + table.rest_count == table.kernels == 700
    summed = sum_of_known([*(row.total_us for row in table.rows), table.rest_us])
    assert summed == pytest.approx(table.kernel_time_us)


@pytest.mark.parametrize(("known", "rest"), [(MAX_NAMES, None), (MAX_NAMES + 2, 10)])
def test_kernels_of_unknown_time_come_last_and_are_no_zero(
    known: int, rest: float | None, make_trace: MakeTrace
) -> None:
    events = [kernel(None, 10 * number, 5, f"k{number}") for number in range(known + 3)]
    for event in events[known:]:
        del event["dur"]
    table = views(make_trace(events)).kernels
    assert (table.rest_names, table.rest_us) == (known + 3 - MAX_NAMES, rest)
    assert table.kernel_time_us == 5 * known


def test_long_names_are_cut_and_say_so(make_trace: MakeTrace) -> None:
    found = views(make_trace(forward(1, 0, 40, "x" * 10_000)))
    assert found.timeline is not None
    longest = max(found.timeline.texts, key=len)
    assert len(longest) < 1000
    assert longest.endswith("\u2026")
    assert found.kernels.rows[0].name.endswith("\u2026")


def test_occupancy_is_that_of_the_time_not_of_the_commonest_launch(make_trace: MakeTrace) -> None:
    name, events = "void work(float*)", [mark("attn_fwd", 0, 5000)]
    device = {"block": [256, 1, 1], "registers per thread": 32}
    for number, (gpu, blocks, reported) in enumerate([(10, 1, 0)] * 9 + [(910, 216, 50)]):
        args = {**device, "grid": [blocks, 1, 1], "est. achieved occupancy %": reported}
        events += [
            launch(number + 1, number * 10), kernel(number + 1, 20 + number * 10, gpu, name, **args)
        ]  # fmt: skip
    (row,) = views(make_trace(events)).kernels.rows
    assert (row.count, row.configurations, row.grid) == (10, 2, "1x1x1")
    assert row.occupancy_reported == pytest.approx(50 * 910 / 1000)
    assert row.reported_zero_share == 0


def test_the_range_of_occupancies_and_the_limit_of_most_time(real_traces: Path) -> None:
    (path,) = (real_traces / "kin-r50-w0-v19").glob("*.json*")
    rows = views(load_trace(path)).kernels.rows
    add = next(row for row in rows if row.short_name == "AddFunctor")
    assert add.occupancy == pytest.approx(92.3, abs=0.1)
    assert add.occupancy_least is not None
    assert add.occupancy_most == 100
    assert add.occupancy_least < 1
    assert add.limiter == "warps|blocks"
    for row in rows:
        if row.occupancy is not None:
            assert row.occupancy_least is not None
            assert row.occupancy_most is not None
            assert row.occupancy_least - 1e-5 <= row.occupancy <= row.occupancy_most + 1e-5


def test_families_add_up_to_all_gpu_work(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    families = views(trace).families
    assert sum_of_known([family.total_us for family in families]) == pytest.approx(
        trace.table("gpu_ops")["dur_us"].sum()
    )
    copies = next(family for family in families if family.kind == "memcpy")
    assert (copies.count, copies.bytes) == (3, 3 * 268_435_456)


def test_a_trace_without_gpu_work_has_no_kernels(samples: Path) -> None:
    found = views(load_trace(samples / "cpu-naive.json.gz"))
    assert (found.families, found.kernels.rows) == ([], [])
    assert found.timeline is not None
    assert found.timeline.threads[0].spans.name


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("timeline.dur_us", "<b>"),
        ("kernels.rows", 3),
        ("families", None),
        ("compared.occupancy", 3),
    ],
)
def test_views_of_another_making_are_one_clear_error(
    path: str, value: object, samples: Path
) -> None:
    trace, report = load_and_check(
        str(samples / "synthetic-naive.json.gz"), None, load_rules(tests=False)
    )
    stored = json.loads(json.dumps(with_views(report, trace).views))
    *parents, key = path.split(".")
    place = stored
    for parent in parents:
        place = place[parent]
    place[key] = value
    with pytest.raises(AnalyzeError, match=rf"views\.{path} is not what this version"):
        views_of(TraceReport(**{**vars(report), "views": stored}))


@pytest.mark.parametrize("change", ["text", "length"])
def test_a_timeline_that_contradicts_itself_is_refused(change: str, samples: Path) -> None:
    stored = build_views(load_trace(samples / "synthetic-naive.json.gz"))
    slices = stored["timeline"]["streams"][0]["slices"]
    if change == "text":
        slices["name"][0] = 10_000
    else:
        slices["queue_us"].append(1.0)
    report: Any = TraceReport("made.json", None, {}, {}, views=stored)  # type: ignore[arg-type]
    with pytest.raises(AnalyzeError, match=r"views\.timeline is not"):
        views_of(report)


def test_of_every_real_trace_all_gpu_work_of_the_forward_is_drawn(real_traces: Path) -> None:
    judged = 0
    for path in sorted(real_traces.glob("*/*.json*")):
        try:
            trace = load_trace(path)
        except (TraceError, NothingToCheckError):
            continue
        drawn = views(trace).timeline
        if drawn is None or not drawn.streams:
            continue
        row = trace.table("forwards").row(drawn.index, named=True)
        own = [
            (count, time)
            for stream in drawn.streams
            for count, time, own in zip(
                stream.slices.count, stream.slices.sum_us, stream.slices.own, strict=True
            )
            if own
        ]
        assert drawn.streams_left_out.slices == 0, path
        assert sum(count for count, _ in own) == row["gpu_ops"], path
        assert sum(time for _, time in own) == pytest.approx(row["gpu_sum_us"], abs=0.01), path
        judged += 1
    assert judged >= 20
