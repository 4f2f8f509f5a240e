"""``analyze regions``: attribution by launch, and what it says about ``record_function``."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analyze.errors import AnalyzeError, NothingToCheckError
from analyze.report.condition import Condition
from analyze.report.regions import report_regions
from analyze.report.regions_text import render_regions
from analyze.tables import regions
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace, RunAnalyze
from tests.report.test_golden_text import compare

GOLDEN = ("cpu-sdpa-math", "synthetic-sdpa-cudnn", "synthetic-naive")
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
CALL_CATEGORIES = ("cuda_runtime", "cuda_driver", "runtime")

Data = dict[str, Any]
Interval = tuple[int, int]


def trace_file(real_traces: Path, name: str) -> Path:
    return next(path for path in (real_traces / name).iterdir() if path.is_file())


def interval(event: Data) -> Interval:
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


def union_ns(intervals: list[Interval]) -> int:
    covered, until = 0, -1
    for start, end in sorted(intervals):
        covered += max(end - max(start, until), 0)
        until = max(until, end)
    return covered


class Independent:
    """The attribution of reference/trace-format.md C.7, straight from the JSON."""

    def __init__(self, path: Path, region: str) -> None:
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        complete = [event for event in events if event.get("ph") == "X"]
        kinds: dict[str, list[Data]] = {}
        for event in complete:
            kinds.setdefault(str(event.get("cat")).lower(), []).append(event)
        self.regions = sorted(
            (event for event in kinds["user_annotation"] if event["name"] == region),
            key=interval,
        )
        self._gpu_ops = [event for name in GPU_CATEGORIES for event in kinds.get(name, [])]
        self._calls = [event for name in CALL_CATEGORIES for event in kinds.get(name, [])]
        self._autograd_threads = {
            op["tid"] for op in kinds["cpu_op"] if op["name"].startswith("autograd::engine::")
        }

    def launched_in(self, region: Data) -> list[Data]:
        """GPU work launched inside on the region's thread, or on autograd's meanwhile."""
        begin, end = interval(region)
        threads = self._autograd_threads | {region["tid"]}
        correlations = {
            call["args"]["correlation"]
            for call in self._calls
            if begin <= interval(call)[0] < end
            and call["tid"] in threads
            and call["args"].get("correlation")
        }
        return [op for op in self._gpu_ops if op["args"]["correlation"] in correlations]

    def started_in(self, region: Data) -> list[Data]:
        begin, end = interval(region)
        return [op for op in self._gpu_ops if begin <= interval(op)[0] < end]


def named(trace: Trace, name: str) -> Condition:
    return Condition(f"name == '{name}'", trace.table("regions")["name"] == name, 0)


@pytest.mark.parametrize("name", ["hta-ns", "hta-nccl", "hta-diff-control"])
def test_every_backward_equals_an_independent_count(real_traces: Path, name: str) -> None:
    path = trace_file(real_traces, name)
    truth = Independent(path, "## backward ##")
    trace = load_trace(path)
    entries = report_regions(trace, where=named(trace, "## backward ##"), each=True)["names"]
    assert len(entries) == len(truth.regions) >= 3
    for entry, region in zip(entries, truth.regions, strict=True):
        launched, started = truth.launched_in(region), truth.started_in(region)
        launched_here = {op["args"]["correlation"] for op in launched}
        foreign = [op for op in started if op["args"]["correlation"] not in launched_here]
        end = interval(region)[1]
        together = entry["together"]
        assert together["gpu_ops"] == len(launched)
        assert together["busy_us"] == pytest.approx(union_ns([*map(interval, launched)]) / 1000)
        assert entry["gpu"]["gpu_ops"] + entry["backward"]["gpu_ops"] == len(launched)
        assert entry["by_overlap"] == {
            "gpu_ops": len(started),
            "launched_elsewhere": len(foreign),
            "missed": len(launched) - (len(started) - len(foreign)),
        }
        assert entry["after_its_end"]["gpu_ops"] == sum(interval(op)[1] > end for op in launched)


def backwards(real_traces: Path, name: str) -> list[Data]:
    trace = load_trace(trace_file(real_traces, name))
    chosen = named(trace, "## backward ##")
    names: list[Data] = report_regions(trace, where=chosen, each=True)["names"]
    return names


def test_time_overlap_attributes_every_kernel_wrongly(real_traces: Path) -> None:
    """Facts of trace-format.md C.7: 750 launched, and none of those that ran meanwhile.

    C.7 counts the 742 that ran wholly inside; one more started inside and outlasted the region.
    """
    second = backwards(real_traces, "hta-ns")[1]
    assert second["together"]["gpu_ops"] == 750
    assert second["together"]["busy_us"] == pytest.approx(63_400, abs=50)
    assert second["cpu_us"] == pytest.approx(55_900, abs=50)
    assert second["by_overlap"] == {"gpu_ops": 743, "launched_elsewhere": 743, "missed": 750}


def test_where_the_gpu_keeps_up_both_agree(real_traces: Path) -> None:
    first = backwards(real_traces, "hta-nccl")[0]
    assert first["together"]["gpu_ops"] == first["by_overlap"]["gpu_ops"] == 797
    assert first["by_overlap"]["launched_elsewhere"] == first["by_overlap"]["missed"] == 0
    assert first["together"]["busy_us"] == pytest.approx(35_800, abs=50)
    assert "host-bound: no GPU works for" in first["why"]


def test_some_overlap(real_traces: Path) -> None:
    """C.7 counts the 977 of 1023 that ran wholly inside; two more started inside."""
    first = backwards(real_traces, "hta-diff-control")[0]
    assert first["together"]["gpu_ops"] == 1023
    assert first["together"]["busy_us"] == pytest.approx(31_400, abs=50)
    assert first["by_overlap"] == {"gpu_ops": 979, "launched_elsewhere": 0, "missed": 44}
    truth = Independent(trace_file(real_traces, "hta-diff-control"), "## backward ##")
    begin, end = interval(truth.regions[0])
    inside = [op for op in truth.launched_in(truth.regions[0]) if within(op, begin, end)]
    assert len(inside) == 977


def within(event: Data, begin: int, end: int) -> bool:
    return begin <= interval(event)[0] and interval(event)[1] <= end


def test_the_evidence_of_a_trace(real_traces: Path) -> None:
    data = report_regions(load_trace(trace_file(real_traces, "hta-ns")))
    assert data["synchronisation"] == {
        "annotations": 70, "with_gpu_work": 30, "outlasted_by_it": 30, "sync_calls": 0,
        "made_by_ops": 0,
    }  # fmt: skip
    text = " ".join(render_regions(data).split())
    assert "Of 30 annotations that launched GPU work, 30 had ended" in text
    assert "would be 140 calls; the file has 0" in text
    assert "3,168 of them were launched elsewhere, and 3,750 of its own 3,750" in text


def test_only_of_calls_from_ops_it_is_said_where_they_come_from(make_trace: MakeTrace) -> None:
    waits = [event("cudaStreamSynchronize", start, 5, "cuda_runtime") for start in (20, 40)]
    start = [region(0, 100), event("aten::item", 15, 15, "cpu_op"), call(1, 5, 1), kernel(7, 5, 1)]
    some = " ".join(render_regions(report_regions(make_trace(start + waits))).split())
    around = event("aten::item", 35, 15, "cpu_op")
    every = " ".join(render_regions(report_regions(make_trace([*start, around, *waits]))).split())
    said = "synchronising calls in the file"
    of_ops = "came from ops, not from the start or end of an annotation"
    assert f"Of the 2 {said} 1 {of_ops}; 1 came from outside of ops." in some
    assert f"Of the 2 {said} 2 {of_ops}." in every


def event(name: str, start: float, dur: float, cat: str, tid: int = 9, **args: Any) -> Data:
    times = {"ts": start, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, **times, "args": args}


def region(start: float, dur: float, name: str = "r") -> Data:
    return event(name, start, dur, "user_annotation")


def call(start: float, dur: float, correlation: int, name: str = "cudaLaunchKernel") -> Data:
    return event(name, start, dur, "cuda_runtime", correlation=correlation)


def kernel(start: float, dur: float, correlation: int, stream: int = 7) -> Data:
    args = {"device": 0, "stream": stream, "correlation": correlation}
    made = event("k", start, dur, "kernel", **args)
    return {**made, "pid": 0, "tid": stream}


@pytest.fixture
def only(make_trace: MakeTrace) -> Callable[[list[Data]], Data]:
    """Report made-up events that hold annotations of one name."""

    def report(events: list[Data]) -> Data:
        names = report_regions(make_trace(events))["names"]
        assert len(names) == 1
        entry: Data = names[0]
        return entry

    return report


def test_the_gpu_runs_behind(only: Callable[[list[Data]], Data]) -> None:
    entry = only([region(0, 400), call(10, 5, 1), call(20, 5, 2), *_two_kernels_of(1500)])
    assert entry["why"] == (
        "launched 3 ms of GPU work in 400 us: the GPU runs behind, 100 % of it ran after the"
        " region had ended"
    )
    assert entry["after_its_end"] == {"gpu_ops": 2, "time_share": 1.0, "longest_us": 3100}


def _two_kernels_of(length: float) -> list[Data]:
    return [kernel(500, length, 1), kernel(500 + length, length, 2)]


def test_the_host_waits(only: Callable[[list[Data]], Data]) -> None:
    sync = call(20, 300, 2, "cudaStreamSynchronize")
    entry = only([region(0, 400), call(10, 5, 1), kernel(15, 290, 1), sync])
    assert entry["why"] == (
        "launched 290 us of GPU work in 400 us, and it had all ended by then; waits in"
        " cudaStreamSynchronize for 300 us"
    )
    assert entry["syncs"] == 1
    assert entry["waiting_us"] == 300


def test_the_host_is_slower(only: Callable[[list[Data]], Data]) -> None:
    entry = only([region(0, 400), call(10, 5, 1), kernel(100, 40, 1)])
    assert entry["gpu_idle_share"] == 0.9
    assert entry["why"].endswith("host-bound: no GPU works for 90 % of its CPU time")


def test_nothing_launched(only: Callable[[list[Data]], Data]) -> None:
    entry = only([region(0, 100), call(200, 5, 1), kernel(300, 40, 1)])
    assert entry["why"] == "launched no GPU work; no GPU works for 100 % of its CPU time"


def test_busy_is_the_union_and_sum_the_sum(only: Callable[[list[Data]], Data]) -> None:
    events = [region(0, 100), call(10, 5, 1), call(20, 5, 2), kernel(30, 40, 1)]
    entry = only([*events, kernel(40, 40, 2, stream=8)])
    assert (entry["gpu"]["busy_us"], entry["gpu"]["sum_us"]) == (50, 80)


def test_an_annotation_inside_its_namesake_counts_the_work_once(
    only: Callable[[list[Data]], Data],
) -> None:
    inner = [region(10, 30), region(50, 30)]
    entry = only([region(0, 100), *inner, call(15, 5, 1), call(55, 5, 2), *_two_kernels_of(10)])
    assert entry["calls"] == 3
    assert entry["gpu"]["gpu_ops"] == 2
    assert entry["gpu"]["sum_us"] == 20


NESTED = [
    *(region(0, 100), region(10, 30), region(200, 50)),
    *(call(5, 3, 1), call(12, 3, 2), call(16, 3, 3, "cudaStreamSynchronize"), call(202, 3, 4)),
    *(kernel(20, 5, 1), kernel(30, 40, 2), kernel(210, 90, 4)),
]
"""An annotation in its namesake and one by itself; what the inner one launched outlasts only it."""


def test_what_starts_in_two_namesakes_counts_once(only: Callable[[list[Data]], Data]) -> None:
    foreign = [call(400, 5, 9), kernel(35, 1, 9, stream=8)]
    entry = only(NESTED)
    assert entry["by_overlap"] == {"gpu_ops": 3, "launched_elsewhere": 0, "missed": 0}
    assert entry["syncs"] == 1
    assert only([*NESTED, *foreign])["by_overlap"] == {
        "gpu_ops": 4, "launched_elsewhere": 1, "missed": 0,
    }  # fmt: skip


def test_work_outlasts_a_name_only_after_the_outermost(
    only: Callable[[list[Data]], Data],
) -> None:
    assert only(NESTED)["after_its_end"] == {
        "gpu_ops": 1, "time_share": pytest.approx(50 / 135, abs=1e-6), "longest_us": 50,
    }  # fmt: skip
    late = only([*NESTED, call(14, 1, 5), kernel(320, 100, 5)])
    assert late["after_its_end"] == {
        "gpu_ops": 2, "time_share": pytest.approx(150 / 235, abs=1e-6), "longest_us": 320,
    }  # fmt: skip


def test_no_part_exceeds_its_whole(real_traces: Path) -> None:
    """Eight traces nest DistributedDataParallel.forward in itself, another its own names."""
    names = set()
    for entry in every_entry_with_gpu_work(real_traces):
        own, by_time = entry["together"]["gpu_ops"], entry["by_overlap"]
        after = entry["after_its_end"]
        assert 0 <= by_time["missed"] <= own, entry
        assert 0 <= by_time["launched_elsewhere"] <= by_time["gpu_ops"], entry
        assert 0 <= after["gpu_ops"] <= own, entry
        for part in (after["time_share"], entry["gpu_idle_share"]):
            assert part is None or 0 <= part <= 1, entry
        names.add(entry["name"])
    assert "DistributedDataParallel.forward" in names


def every_entry_with_gpu_work(real_traces: Path) -> Iterator[Data]:
    for path in sorted(path for path in real_traces.glob("*/*") if path.is_file()):
        try:
            names = report_regions(load_trace(path))["names"]
        except AnalyzeError:
            continue  # a negative sample, or one without annotations
        yield from (entry for entry in names if entry["together"] is not None)


def test_without_gpu_work_nothing_is_claimed(samples: Path) -> None:
    data = report_regions(load_trace(samples / "cpu-sdpa-math.json.gz"))
    assert data["synchronisation"] is None
    for entry in data["names"]:
        assert (
            entry["why"] is entry["gpu"] is entry["by_overlap"] is entry["gpu_idle_share"] is None
        )


def test_reducer_copies_of_ddp_are_backward_work(make_trace: MakeTrace) -> None:
    """DDP writes the reduced buckets back on autograd's thread, outside any backward node."""
    trace = make_trace(
        [
            region(0, 100),
            event("autograd::engine::evaluate_function: X", 5, 20, "cpu_op", tid=10),
            event("torch.distributed.ddp.reducer::copy_bucket_to_grad", 30, 20, "cpu_op", tid=10),
            {**call(35, 5, 1), "tid": 10},
            kernel(200, 10, 1),
        ]
    )
    (entry,) = report_regions(trace)["names"]
    assert entry["gpu"]["gpu_ops"] == 0
    assert entry["backward"]["gpu_ops"] == 1


def test_the_profilers_own_synchronisation_comes_before_late_polling(make_trace: MakeTrace) -> None:
    """NCCL's watchdog still asks about events while the profiler waits for the device."""
    tail = call(500, 50, 8, "cudaDeviceSynchronize")
    polling = {**call(520, 1, 9, "cudaEventQuery"), "tid": 11}
    trace = make_trace([region(0, 100), call(10, 5, 1), kernel(50, 10, 1), tail, polling])
    assert trace.table("api_calls").filter(profiler_own=True)["name"].to_list() == [tail["name"]]


def test_command(samples: Path, run_analyze: RunAnalyze, tmp_path: Path) -> None:
    path, output = samples / "synthetic-naive.json.gz", tmp_path / "regions.json"
    chosen = ("--where", "name == 'attn_fwd'", "--each")
    done = run_analyze("regions", path, *chosen, "--format", "json", "-o", output)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    data = json.loads(output.read_text())
    assert data.keys() == {
        "schema_version", "trace", "coverage", "quality", "where", "annotations",
        "synchronisation", "name_count", "names",
    }  # fmt: skip
    assert data["where"] == {
        "expression": "name == 'attn_fwd'", "rows": 6, "matched": 3, "undecided": 0,
    }  # fmt: skip
    assert [entry["name"] for entry in data["names"]] == [f"attn_fwd [{n}]" for n in range(3)]
    assert data["names"][0].keys() == {
        "name", "calls", "cpu_us", "cpu_mean_us", "syncs", "waiting_us", "waits", "gpu",
        "backward", "together", "gpu_idle_share", "after_its_end", "by_overlap", "why",
    }  # fmt: skip
    assert data["names"][0]["gpu"]["kernels_per_call"] == 5
    limited = run_analyze("regions", path, "--limit", "1").stdout
    assert "and 1 more; --limit 2 shows all" in limited


def test_where_is_repeated_and_says_what_it_cannot_tell(
    run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    """Two annotations launched nothing: what their work took on average is unknown."""
    path, mean = tmp_path / "trace.json", "gpu_sum_us / gpu_ops"
    events = [*(region(at, 50, f"r{at}") for at in (0, 100, 200)), call(10, 5, 1), kernel(20, 5, 1)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    text = run_analyze("regions", path, "--where", f"{mean} > 1").stdout
    assert f"{mean} > 1: 1 of 3 annotations; of 2 it cannot be told, they are left out" in text
    data = run_analyze("regions", path, "--where", f"{mean} > 1", "--format", "json").stdout
    assert json.loads(data)["where"]["undecided"] == 2
    everything = run_analyze("regions", path, "--format", "json").stdout
    assert json.loads(everything)["where"] is None


def test_mistakes_are_one_line(samples: Path, run_analyze: RunAnalyze, tmp_path: Path) -> None:
    done = run_analyze("regions", samples / "synthetic-naive.json.gz", "--where", "nam == 'x'")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'name'?" in done.stderr
    assert done.stderr.count("\n") == 1
    assert run_analyze("regions", tmp_path / "none.json").returncode == 3


def test_without_annotations_it_says_how_to_make_some(make_trace: MakeTrace) -> None:
    with pytest.raises(NothingToCheckError, match="no record_function annotation was recorded"):
        report_regions(make_trace([call(10, 5, 1), kernel(20, 5, 1)]))


def test_annotations_without_usable_times_are_not_denied(make_trace: MakeTrace) -> None:
    events = [{**region(0, 10), "dur": None}, {**region(20, 10), "ts": "x"}, call(10, 5, 1)]
    with pytest.raises(NothingToCheckError, match="2 record_function annotations of it have no"):
        report_regions(make_trace(events))


@pytest.mark.parametrize("rows_at_a_time", [1, 7])
def test_a_few_annotations_at_a_time_add_up_to_the_same(
    real_traces: Path, monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int
) -> None:
    path = trace_file(real_traces, "hta-nccl")
    expected = report_regions(load_trace(path))
    monkeypatch.setattr(regions, "_ROWS_AT_A_TIME", rows_at_a_time)
    assert report_regions(load_trace(path)) == expected


def test_deep_nesting_is_not_spread_out_at_once(make_trace: MakeTrace) -> None:
    """30 annotations around 40 launches: 1,200 pairs, of which no frame holds more than some."""
    nest = [region(depth, 1000 - 2 * depth, f"r{depth}") for depth in range(30)]
    work = [event for n in range(1, 41) for event in (call(99 + n, 1, n), kernel(199 + n, 1, n))]
    trace = make_trace([*nest, *work])
    names = report_regions(trace)["names"]
    assert {entry["name"]: entry["gpu"]["gpu_ops"] for entry in names} == {
        f"r{depth}": 40 for depth in range(30)
    }
    spans = regions.spans_of_regions(trace.facts.host).with_columns(key="node")
    rows = regions.work_of_regions(trace.facts.host, trace.facts.gpu_ops)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "_ROWS_AT_A_TIME", 100)
        heights = [batch.height for batch in regions.rows_inside(spans, rows)]
    assert sum(heights) == 1200
    assert max(heights) < 100 + 40


def test_help_corrects_the_belief(run_analyze: RunAnalyze) -> None:
    assert "record_function does not synchronise" in run_analyze("regions", "--help").stdout


def test_names_are_not_interpreted(make_trace: MakeTrace) -> None:
    name = "[bold]x[/bold] \x1b[2J {} :smile: " + "n" * 5000
    events = [region(0, 10, name), call(2, 1, 1), kernel(20, 5, 1)]
    data = report_regions(make_trace(events), each=True)
    text = render_regions(data, width=80)
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines()[1:])


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_text(name: str, samples: Path) -> None:
    data = report_regions(load_trace(samples / f"{name}.json.gz"))
    compare(render_regions(data), f"{name}.regions", samples)
