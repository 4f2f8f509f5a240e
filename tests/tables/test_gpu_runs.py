"""Work in runs gives every annotation the amounts that looking at each piece of work gives."""

from collections import defaultdict
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyze.report.regions import report_regions
from analyze.tables.build import Trace
from analyze.tables.gpu_runs import amounts_of_runs, runs_of_work
from analyze.tables.regions import rows_inside, spans_of_regions, work_of_regions
from tests.conftest import MakeTrace

Event = dict[str, Any]
Row = dict[str, Any]

LAUNCH = st.tuples(
    st.just("launch"),
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 1, 3, 6, 9, 25]),
        st.sampled_from([1, 2, 13]),
        st.booleans(),
    ),
)
STEPS = st.lists(
    st.one_of(
        LAUNCH,
        LAUNCH,
        st.tuples(st.just("open"), st.sampled_from("abc")),
        st.tuples(st.just("close"), st.just("")),
    ),
    min_size=12,
    max_size=40,
)
"""What the host does, one thing in 4 us: annotations by name, and work.

Of work: the stream, how long it runs, how long after its launch it starts, and whether autograd's
thread launches it.
"""


def complete(cat: str, name: str, start: float, dur: float, **args: Any) -> Event:
    tid = args.pop("tid", 9)
    times = {"ts": start, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, **times, "args": args}


def events_of(steps: list[tuple[str, Any]]) -> list[Event]:
    """Lay out what the host does; work that autograd's thread launches is in its backward op."""
    end = 5 * len(steps) + 4
    events = [
        complete("cpu_op", "autograd::engine::evaluate_function: X", 0, end, tid=10),
        complete("user_annotation", "b", 1, end // 2, tid=10),
    ]
    opened: list[tuple[str, int]] = []
    free = [0, 0]
    for number, (kind, what) in enumerate(steps):
        at = 4 * number + 2
        if kind == "open":
            opened.append((what, at))
        elif kind == "close" and opened:
            name, since = opened.pop()
            events.append(complete("user_annotation", name, since, at - since))
        elif kind == "launch":
            stream, length, delay, by_autograd = what
            link = {"correlation": number + 1}
            tid = 10 if by_autograd else 9
            events.append(complete("cuda_runtime", "cudaLaunchKernel", at, 1, tid=tid, **link))
            start = max(free[stream], at + delay)
            free[stream] = start + length
            args = {"device": 0, "stream": stream, **link}
            events.append({**complete("kernel", "k", start, length, **args), "pid": 0})
    events += [
        complete("user_annotation", name, since, end - since - depth)
        for depth, (name, since) in enumerate(opened)
    ]
    return events


def slow_amounts(rows: list[Row]) -> Row:
    """Return the amounts of distinct work, from a set of its nanoseconds."""
    distinct = {row["gpu_row"]: row for row in rows}.values()
    busy: set[int] = set()
    for row in distinct:
        busy |= set(range(row["start_ns"] // 1000, (row["start_ns"] + row["dur_ns"]) // 1000))
    return {
        "gpu_ops": len(distinct),
        "busy_us": len(busy),
        "sum_us": sum(row["dur_ns"] for row in distinct) / 1000,
    }


def slow_names(trace: Trace) -> dict[str, Row]:
    """Return of each name the amounts of the work launched inside, looking at every pair."""
    work = work_of_regions(trace.facts.host, trace.facts.gpu_ops).to_dicts()
    inside: dict[str, list[Row]] = defaultdict(list)
    for region in trace.regions.to_dicts():
        end = region["start_ns"] + region["dur_ns"]
        inside[region["name"]] += [
            {**row, "region_start": region["start_ns"], "region_end": end}
            for row in work
            if region["node"] <= row["region_row"] <= region["last"]
        ]
    names: dict[str, Row] = {}
    for name in trace.regions["name"].unique():
        rows = inside[name]
        ends: dict[int, int] = defaultdict(int)
        for row in rows:
            ends[row["gpu_row"]] = max(ends[row["gpu_row"]], row["region_end"])
        late = {
            row["gpu_row"]: (row["start_ns"], row["start_ns"] + row["dur_ns"], ends[row["gpu_row"]])
            for row in rows
            if row["start_ns"] + row["dur_ns"] > ends[row["gpu_row"]]
        }.values()
        names[name] = {
            "gpu": slow_amounts([row for row in rows if not row["elsewhere"]]),
            "backward": slow_amounts([row for row in rows if row["elsewhere"]]),
            "together": slow_amounts(rows),
            "late": len(late),
            "late_us": sum(end - max(start, until) for start, end, until in late) / 1000,
            "longest_us": max((end - until for _, end, until in late), default=0) / 1000,
        }
    return names


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_names_get_what_looking_at_every_pair_gives(
    make_trace: MakeTrace, steps: list[tuple[str, Any]]
) -> None:
    trace = make_trace(events_of(steps))
    if trace.regions.is_empty() or trace.facts.gpu_ops.is_empty():
        return
    expected = slow_names(trace)
    for entry in report_regions(trace)["names"]:
        slow, after = expected[entry["name"]], entry["after_its_end"]
        for part in ("gpu", "backward", "together"):
            assert slow[part].items() <= entry[part].items(), (part, entry)
        assert after["gpu_ops"] == slow["late"]
        assert after["longest_us"] == slow["longest_us"]
        total = slow["together"]["sum_us"]
        assert (after["time_share"] or 0) == (round(slow["late_us"] / total, 6) if total else 0)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_annotations_get_what_looking_at_every_pair_gives(
    make_trace: MakeTrace, steps: list[tuple[str, Any]]
) -> None:
    trace = make_trace(events_of(steps))
    work = work_of_regions(trace.facts.host, trace.facts.gpu_ops).to_dicts()
    for region in trace.regions.to_dicts():
        rows = [row for row in work if region["node"] <= row["region_row"] <= region["last"]]
        own = slow_amounts([row for row in rows if not row["elsewhere"]])
        backward = slow_amounts([row for row in rows if row["elsewhere"]])
        for prefix, slow in (("", own), ("backward_", backward)):
            assert region[f"{prefix}gpu_ops"] == slow["gpu_ops"]
            assert region[f"{prefix}gpu_busy_ns"] == slow["busy_us"] * 1000
            assert region[f"{prefix}gpu_sum_ns"] == slow["sum_us"] * 1000
        ends = [row["start_ns"] + row["dur_ns"] for row in rows]
        assert region["work_end_ns"] == max(ends, default=None)


def test_a_deep_nest_looks_at_runs_and_not_at_kernels(make_trace: MakeTrace) -> None:
    """Of 2,000 kernels, launched at 20 levels of a nest, each level looks at 20 runs at most."""
    steps: list[tuple[str, Any]] = []
    for _ in range(20):
        steps += [("open", "abc"[len(steps) % 3]), *[("launch", (0, 2, 1, False))] * 100]
    trace = make_trace(events_of(steps))
    runs = runs_of_work(work_of_regions(trace.facts.host, trace.facts.gpu_ops))
    spans = spans_of_regions(trace.facts.host).with_columns(key="node")
    (spread,) = rows_inside(spans, runs)
    assert runs["gpu_ops"].sum() == 2000
    assert spread.height == 20 * 21 / 2
    assert amounts_of_runs(spread, "node")["gpu_ops"].max() == 2000


def test_work_of_unknown_time_counts_and_takes_no_time() -> None:
    work = pl.DataFrame(
        {
            "gpu_row": [0, 1, 2],
            "kind": ["kernel", "memcpy", "kernel"],
            "device_label": ["0"] * 3,
            "start_ns": [10, None, 30],
            "dur_ns": [5, 5, None],
            "region_row": [4] * 3,
            "elsewhere": [False] * 3,
        }
    )
    runs = runs_of_work(work)
    assert amounts_of_runs(runs, "region_row").to_dicts() == [
        {
            "region_row": 4, "gpu_ops": 3, "kernels": 2, "copies": 1, "gpu_busy_ns": 5,
            "gpu_sum_ns": 5,
        }
    ]  # fmt: skip
    unknown = amounts_of_runs(runs.filter(pl.col("end_ns").is_null()), "region_row").to_dicts()
    assert unknown[0]["gpu_busy_ns"] is unknown[0]["gpu_sum_ns"] is None


def test_work_in_annotations_of_two_threads_is_the_same_run_in_both() -> None:
    """The second is launched in both, and takes no time, so that nothing overlaps it."""
    work = pl.DataFrame(
        {
            "gpu_row": [0, 1, 1],
            "kind": ["kernel"] * 3,
            "device_label": ["0"] * 3,
            "start_ns": [10, 20, 20],
            "dur_ns": [5, 0, 0],
            "region_row": [4, 4, 9],
            "elsewhere": [False, False, True],
        }
    )
    assert runs_of_work(work)["run"].to_list() == [0, 1, 1]
