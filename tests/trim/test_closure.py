"""What is kept with a time: launches with their work, arrows with both ends."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyze.tables.build import load_trace
from analyze.trim.anonymise import Anonymiser
from analyze.trim.selection import Selected, select_forwards, select_steps
from analyze.trim.trimming import TrimReport, trim
from analyze.trim.words import trim_lines

Event = dict[str, Any]
Names = list[str]


def op(name: str, start: float, length: float, tid: int = 1, **args: Any) -> Event:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": start,
            "dur": length, "args": args}  # fmt: skip


def call(name: str, start: float, correlation: int, tid: int = 1) -> Event:
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": tid, "ts": start,
            "dur": 1, "args": {"correlation": correlation}}  # fmt: skip


def kernel(name: str, start: float, correlation: int, **args: Any) -> Event:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 5,
            "args": {"correlation": correlation, "device": 0, "stream": 7, **args}}  # fmt: skip


def arrow(phase: str, category: str, number: int, start: float, tid: int = 1) -> Event:
    return {"ph": phase, "cat": category, "name": category, "id": number, "pid": 1, "tid": tid,
            "ts": start}  # fmt: skip


class Trimmed:
    """The trace of some events, and what is kept of it with 100 us to 200 us of the file's time."""

    def __init__(self, folder: Path, events: list[Event], **metadata: Any) -> None:
        path, output = folder / "whole.json", folder / "part.json"
        path.write_text(json.dumps({"schemaVersion": 1, **metadata, "traceEvents": events}))
        trace = load_trace(path)
        origin = trace.clock.origin_ns
        chosen = Selected([(100_000 - origin, 200_000 - origin)], "a time", None)
        self.report: TrimReport = trim(trace, output, chosen, None)
        self.document = json.loads(output.read_text())
        self.events: list[Event] = self.document["traceEvents"]

    @property
    def names(self) -> Names:
        return [event["name"] for event in self.events]


@pytest.fixture
def kept_of(tmp_path: Path) -> Callable[..., Trimmed]:
    return lambda *events, **metadata: Trimmed(tmp_path, list(events), **metadata)


KeptOf = Callable[..., Trimmed]
START = op("start", 0, 1)


def test_work_follows_its_launch_not_its_own_time(kept_of: KeptOf) -> None:
    kept = kept_of(
        *(call("cudaLaunchKernel", 50, 1), kernel("launched before", 150, 1)),
        *(call("cudaLaunchKernel", 150, 2), kernel("launched inside", 900, 2)),
    )
    assert kept.names == ["cudaLaunchKernel", "launched inside"]


def test_work_without_correlation_ids_follows_the_launch_with_its_external_id(
    kept_of: KeptOf,
) -> None:
    def bears(event: Event, external_id: int) -> Event:
        return {**event, "args": {"External id": external_id}}

    kept = kept_of(
        bears(call("hipLaunchKernel", 50, 0), 1),
        bears(kernel("launched before", 150, 0), 1),
        bears(call("hipDeviceSynchronize", 60, 0), 2),
        bears(call("hipLaunchKernel", 150, 0), 2),
        bears(kernel("launched inside", 900, 0), 2),
        bears(call("hipGraphLaunch", 160, 0), 3),
        bears(kernel("of the graph", 920, 0), 3),
        kernel("of a call that is not in the file", 940, 99, **{"External id": 3}),
    )
    assert kept.names == ["hipLaunchKernel", "launched inside", "hipGraphLaunch", "of the graph"]
    assert kept.report.closure is not None
    assert kept.report.closure.unlinked == 0


def test_one_graph_launch_keeps_all_its_kernels(kept_of: KeptOf) -> None:
    kept = kept_of(
        START, call("cudaGraphLaunch", 120, 5), *(kernel(f"k{n}", 300 + n, 5) for n in range(40))
    )
    assert len(kept.events) == 41
    assert kept.report.closure is not None
    assert kept.report.closure.unlinked == 0


def test_work_without_a_launch_follows_the_op_that_it_names(kept_of: KeptOf) -> None:
    linked = [call("cudaLaunchKernel", 10, 77), kernel("linked", 20, 77, **{"External id": 9})]
    kept = kept_of(
        *linked,
        op("inside", 120, 10, **{"External id": 8}),
        op("after", 300, 10, **{"External id": 7}),
        kernel("of the op inside", 500, 1000, **{"External id": 8}),
        kernel("of the op after", 150, 1001, **{"External id": 7}),
        kernel("of no op", 160, 1002),
        kernel("of no op, later", 460, 1003),
    )
    assert kept.names == ["inside", "of the op inside", "of no op"]
    assert kept.report.closure is not None
    assert kept.report.closure.unlinked == 2


def test_whole_events_are_kept_with_all_their_ancestors(kept_of: KeptOf) -> None:
    frame = {**op("train.py(3): main", 0, 900), "cat": "python_function"}
    kept = kept_of(
        frame,
        *(op("outer", 90, 300), op("before", 91, 4), call("cudaLaunchKernel", 150, 1)),
        *(kernel("work", 400, 1), op("touches", 200, 5), op("ends there", 50, 50)),
    )
    assert kept.names == ["train.py(3): main", "outer", "cudaLaunchKernel", "work"]
    assert kept.events[1]["dur"] == 300
    assert kept.report.closure is not None
    assert kept.report.closure.reaching_out == 2


def test_an_op_that_begins_inside_is_kept_to_its_end(kept_of: KeptOf) -> None:
    kept = kept_of(
        START,
        *(op("aten::mm", 195, 20), op("inner", 205, 5), call("cudaLaunchKernel", 206, 1)),
        *(kernel("work", 400, 1), op("next", 230, 5), op("elsewhere", 205, 5, tid=2)),
    )
    assert kept.names == ["aten::mm", "inner", "cudaLaunchKernel", "work"]


def test_a_step_that_touches_by_rounding_is_not_kept(kept_of: KeptOf) -> None:
    def step(number: int, start: float, length: float) -> Event:
        return {**op(f"ProfilerStep#{number}", start, length), "cat": "user_annotation"}

    kept = kept_of(step(1, 0, 101), step(2, 100, 100), step(3, 199, 100))
    assert kept.names == ["ProfilerStep#2"]


def test_arrows_are_kept_with_both_ends(kept_of: KeptOf) -> None:
    kept = kept_of(
        *(START, call("cudaLaunchKernel", 150, 1), kernel("work", 400, 1)),
        *(arrow("s", "ac2g", 1, 150), arrow("f", "ac2g", 1, 400)),
        *(call("cudaEventQuery", 160, 2), arrow("f", "ac2g", 2, 160)),
        *(op("forward", 110, 10), op("backward", 170, 10, tid=2), op("later", 270, 10, tid=2)),
        *(arrow("s", "fwdbwd", 1, 110), arrow("f", "fwdbwd", 1, 170, tid=2)),
        *(arrow("s", "fwdbwd", 3, 112), arrow("f", "fwdbwd", 3, 270, tid=2)),
    )
    ends = Counter((e["cat"], e["id"], e["ph"]) for e in kept.events if e["ph"] in "sf")
    assert ends == {(c, 1, p): 1 for c in ("ac2g", "fwdbwd") for p in "sf"}
    assert kept.report.closure is not None
    assert (kept.report.closure.flows, kept.report.closure.half_flows) == (2, 2)


def test_names_of_kept_threads_and_processes_only(kept_of: KeptOf) -> None:
    def named(what: str, pid: object, tid: object, value: str) -> Event:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": value}}

    kept = kept_of(
        *(op("inside", 120, 10), op("outside", 20, 10, tid=2)),
        *(call("cudaLaunchKernel", 130, 1), kernel("work", 300, 1)),
        *(named("process_name", 1, 0, "python"), named("process_name", 0, 0, "python")),
        *(named("process_name", 3, 0, "unused GPU"), named("thread_name", 1, 1, "main")),
        *(named("thread_name", 1, 2, "other"), named("thread_name", 0, 7, "stream 7")),
    )
    texts = [event["args"]["name"] for event in kept.events if event["ph"] == "M"]
    assert texts == ["python", "python", "main", "stream 7"]


def test_the_gpu_picture_of_an_annotation_goes_with_it(kept_of: KeptOf) -> None:
    def pair(number: int, start: float, gpu_start: float) -> list[Event]:
        args = {"External id": number}
        host = {**op("region", start, 10, **args), "cat": "user_annotation"}
        picture = {**host, "cat": "gpu_user_annotation", "pid": 0, "tid": 7, "ts": gpu_start}
        return [host, picture]

    kept = kept_of(*pair(1, 20, 150), *pair(2, 120, 500))
    assert [(e["cat"], e["args"]["External id"]) for e in kept.events] == [
        ("user_annotation", 2),
        ("gpu_user_annotation", 2),
    ]


def test_a_picture_without_an_id_is_kept_beside_kept_work_only(kept_of: KeptOf) -> None:
    def region(start: float, correlation: int) -> list[Event]:
        host = {**op("region", start, 10), "cat": "user_annotation"}
        work = kernel("k", start + 500, correlation)
        return [
            host,
            call("cudaLaunchKernel", start + 1, correlation),
            work,
            {**host, "cat": "gpu_user_annotation", "pid": 0, "tid": 7, "ts": work["ts"], "dur": 5},
        ]

    # Kernels 1 and 3 are launched in the kept time; kernel 2, launched after it, runs between them.
    kept = kept_of(
        *region(110, 1),
        *(call("cudaLaunchKernel", 150, 3), kernel("k", 900, 3)),
        *region(250, 2),
    )
    pictures = [event for event in kept.events if event["cat"] == "gpu_user_annotation"]
    assert [picture["ts"] for picture in pictures] == [610]


def test_points_in_time_are_kept_where_they_lie(kept_of: KeptOf) -> None:
    def point(phase: str, name: str, start: float) -> Event:
        return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": start, "args": {"Bytes": 1}}

    kept = kept_of(
        *(START, op("inside", 120, 10)),
        *(point("i", "[memory]", 125), point("i", "[memory]", 225), point("C", "counter", 100)),
        *(point("C", "counter", 200), point("i", "Record Window End", 999)),
    )
    assert kept.names == ["inside", "[memory]", "counter"]


SPAN = {**op("PyTorch Profiler (0)", 0, 1000), "cat": "Trace", "pid": "Spans"}


@pytest.mark.parametrize(("last_launch", "kept"), [(150, True), (350, False)])
def test_the_profilers_last_wait_follows_the_last_launch(
    kept_of: KeptOf, last_launch: int, kept: bool
) -> None:
    trimmed = kept_of(
        *(SPAN, op("inside", 120, 10), op("aten::mm", last_launch - 1, 5)),
        *(call("cudaLaunchKernel", last_launch, 1), kernel("work", 400, 1)),
        call("cudaDeviceSynchronize", 900, 2),
    )
    assert ("cudaDeviceSynchronize" in trimmed.names) is kept
    assert "PyTorch Profiler (0)" not in trimmed.names


def test_numbers_are_copied_digit_by_digit(tmp_path: Path) -> None:
    path, output = tmp_path / "whole.json", tmp_path / "part.json"
    text = (
        '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1712195495984501.250,'
        '"dur":1.10e1,"args":{"big":123456789012345678901234567890,"exact":0.1000000000000000055}}'
    )
    path.write_text(
        f'{{"schemaVersion": 1, "pi": 3.14159265358979323846, "traceEvents": [{text}]}}'
    )
    trace = load_trace(path)
    trim(trace, output, Selected([(0, 1)], "a time", None), None)
    written = output.read_text()
    assert text in written
    assert "3.14159265358979323846" in written


def test_the_trace_says_what_was_kept_and_remembers_it(kept_of: KeptOf) -> None:
    kept = kept_of(START, op("inside", 120, 10), deviceProperties=[{"id": 0}], run="r1")
    note = kept.document["kinetolint_trim"]
    assert note["source"] == "whole.json"
    assert (note["events"], note["all_events"]) == (1, 2)
    assert note["windows_us"] == [[100.0, 200.0]]
    assert kept.document["deviceProperties"] == [{"id": 0}]
    again = kept_of(START, op("inside", 120, 10), kinetolint_trim=note)
    assert again.document["kinetolint_trim"] == note
    assert again.document["kinetolint_trim_2"]["events"] == 1


@pytest.mark.parametrize("rewriting", [None, Anonymiser()], ids=["verbatim", "anonymised"])
def test_a_part_of_a_bare_list_of_events_says_that_it_is_one(
    rewriting: Anonymiser | None, tmp_path: Path
) -> None:
    path, output = tmp_path / "whole.json", tmp_path / "part.json"
    step = {**op("ProfilerStep#1", 0, 40), "cat": "user_annotation"}
    path.write_text(json.dumps([step, op("aten::mm", 0, 10), op("aten::add", 50, 10)]))
    trace = load_trace(path)
    report = trim(trace, output, Selected([(0, 20_000)], "step 1", None), rewriting)
    document = json.loads(output.read_text())
    assert [event["name"] for event in document["traceEvents"]] == ["ProfilerStep#1", "aten::mm"]
    assert document["kinetolint_trim"]["kept"] == "step 1"
    assert any("what was written is an object" in text for _, text in trim_lines(report))
    part = load_trace(output)
    assert part.table("ops").height == 1
    assert part.table("forwards")["gpu_ops"].to_list() == [None]


def test_a_bare_list_of_events_of_which_nothing_is_left_out_stays_one(tmp_path: Path) -> None:
    path, output = tmp_path / "whole.json", tmp_path / "copy.json"
    path.write_text(json.dumps([op("aten::mm", 0, 10)]))
    trace = load_trace(path)
    for selected, rewriting in (
        (Selected([(0, 20_000)], "a time", None), None),
        (None, Anonymiser()),
    ):
        report = trim(trace, output, selected, rewriting)
        assert [event["name"] for event in json.loads(output.read_text())] == ["aten::mm"]
        assert not report.wrapped


GPU_SAMPLES = ("synthetic-naive", "synthetic-sdpa-math", "synthetic-sdpa-cudnn")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(GPU_SAMPLES),
    numbers=st.sets(st.integers(0, 2), min_size=1),
    steps=st.booleans(),
)
def test_any_choice_is_closed(
    samples: Path, tmp_path: Path, name: str, numbers: set[int], steps: bool
) -> None:
    path, output = samples / f"{name}.json.gz", tmp_path / "part.json"
    trace = load_trace(path)
    offset = 2 if steps else 0
    choose = select_steps if steps else select_forwards
    chosen = choose(trace, [(number + offset, number + offset) for number in sorted(numbers)])
    trim(trace, output, chosen, None)
    part = load_trace(output)
    assert part.table("forwards").height == len(numbers)
    assert_closed(json.loads(output.read_text())["traceEvents"], gpu_ops_of_all(path))
    per_forward = trace.table("gpu_ops").height / 3
    assert part.table("gpu_ops").height == per_forward * len(numbers)


def gpu_ops_of_all(path: Path) -> Counter[int]:
    return work_by_correlation(load_events(path))


def load_events(path: Path) -> list[Event]:
    import gzip  # noqa: PLC0415

    events: list[Event] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def work_by_correlation(events: list[Event]) -> Counter[int]:
    categories = ("kernel", "gpu_memcpy", "gpu_memset")
    work = [event for event in events if event.get("cat") in categories]
    return Counter(event["args"]["correlation"] for event in work)


def assert_closed(events: list[Event], whole: Counter[int]) -> None:
    """Check closure without the code that makes it."""
    calls = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    launched = {e["args"]["correlation"] for e in calls}
    work = work_by_correlation(events)
    assert work
    assert work == {correlation: whole[correlation] for correlation in launched & whole.keys()}
    ends = {phase: {(e["cat"], e["id"]) for e in events if e["ph"] == phase} for phase in "sf"}
    assert ends["s"] == ends["f"]
    assert {correlation for category, correlation in ends["s"] if category == "ac2g"} == set(work)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= named
