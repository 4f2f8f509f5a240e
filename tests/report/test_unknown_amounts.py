"""What was not recorded is unknown, and never 0, in every view of a trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.run import run_rules
from analyze.report.compare import compare
from analyze.report.diff import diff
from analyze.report.formats import FORMATS, Rendering, render
from analyze.report.kernels import kernels_report
from analyze.report.kernels_text import render_kernels
from analyze.report.ops import average_ops
from analyze.report.regions import report_regions
from analyze.report.stored_result import read_results
from analyze.report.summary import summarise
from analyze.report.summary_text import render_summary
from analyze.report.views import build_views, with_views
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace, RunAnalyze
from tests.report.test_html import parsed, text_of
from tests.report.test_result_schema import strictly, validate
from tests.tables.test_attribution import kernel, launch, mark, op
from tests.tables.test_memory import moved

RULES = load_rules(tests=False)
GPU_AMOUNTS = ("gpu_busy_us", "gpu_ops", "kernels", "copies")
Event = dict[str, Any]


def without_duration(event: Event) -> Event:
    return {key: value for key, value in event.items() if key != "dur"}


def compared(trace: Trace) -> dict[str, Any]:
    (row,) = compare([(trace, run_rules(trace, RULES))])["traces"]
    return row  # type: ignore[no-any-return]


def summary_of_diff(trace: Trace) -> dict[str, dict[str, Any]]:
    side = (trace, run_rules(trace, RULES))
    return {row["name"]: row for row in diff(side, side)["summary"]}


def test_the_span_of_kernels_is_no_cpu_time(make_trace: MakeTrace) -> None:
    trace = make_trace([kernel(None, 10, 5), kernel(None, 100, 5)])
    assert trace.table("forwards")["cpu_us"].to_list() == [None]
    assert trace.table("trace")["cpu_us"].item() is None
    data = summarise(trace)
    assert data["unit"]["median"]["cpu_us"] is None
    assert data["unit"]["median"]["gpu_busy_us"] == 10
    assert compared(trace)["cpu_us"] is None
    quantity = summary_of_diff(trace)["cpu_time"]
    assert quantity["before"] is None
    assert quantity["unknown_before"].startswith("no CPU ops were recorded")


def test_calls_alone_are_cpu_time(make_trace: MakeTrace) -> None:
    trace = make_trace([launch(1, 0), kernel(1, 10, 5)])
    assert trace.table("trace")["cpu_us"].item() == 15


@pytest.mark.parametrize("gpu", [True, False])
def test_a_forward_without_gpu_work_of_its_own_has_unknown_amounts(
    make_trace: MakeTrace, gpu: bool
) -> None:
    """All GPU work lies outside of the forward, or none was recorded."""
    work = [launch(1, 1), kernel(1, 10, 5)] if gpu else []
    trace = make_trace([mark("attn_fwd", 100, 50), op("aten::mm", 110, 5), *work])
    median = summarise(trace)["coverage"]["forward_median"]
    assert [median[name] for name in GPU_AMOUNTS] == [None] * 4
    assert median["cpu_us"] == 50
    assert (median["launches"], median["syncs"]) == ((0, 0) if gpu else (None, None))
    assert compared(trace)["kernels_per_forward"] is None


def test_kernels_without_durations_take_no_known_time(make_trace: MakeTrace) -> None:
    events = [op("aten::mm", 0, 10), launch(1, 1), without_duration(kernel(1, 10, 5, "k"))]
    trace = make_trace(events)
    report = kernels_report(trace)
    assert (report["gpu_busy_us"], report["gpu_sum_us"], report["kernel_time_us"]) == (None,) * 3
    assert (report["names"][0]["total_us"], report["names"][0]["count"]) == (None, 1)
    texts = [render_kernels(report), render_summary(summarise(trace))]
    assert all("0 us" not in text.replace("10 us", "") for text in texts)
    assert all("GPU time  unknown: no GPU op has a usable duration" in text for text in texts)
    assert summarise(trace)["top5_kernels"] == [{"name": "k", "count": 1, "time_us": None}]
    assert average_ops(trace)["total"]["self_device_us"] is None
    assert compared(trace)["gpu_busy_us"] is None


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_takes_an_unknown_time_for_none(
    name: str, make_trace: MakeTrace, tmp_path: Path
) -> None:
    """Nor does it when it is written from the stored result, which is as documented."""
    trace = make_trace([without_duration(kernel(None, 10, 5, name)) for name in ("k", "k2")])
    report = with_views(run_rules(trace, RULES), trace)
    assert report.coverage["unlinked_gpu_time_us"] is None
    stored = tmp_path / "stored.json"
    stored.write_text(render("json", [report], Rendering()))
    validate(strictly(stored.read_text()))
    text = render(name, read_results(str(stored)), Rendering(verbose=True))
    assert text == render(name, [report], Rendering(verbose=True))
    said = text_of(parsed(text)) if name == "html" else text
    assert "0 us" not in said
    if name == "html":
        assert "an unknown time of GPU work in the whole trace" in said
        assert "2 kernels of 2 names, unknown summed" in said


def test_families_and_kernels_of_unknown_time_come_last(make_trace: MakeTrace) -> None:
    unknown = without_duration(kernel(None, 10, 5, "ampere_sgemm_128x64_tn"))
    drawn = build_views(make_trace([unknown, kernel(None, 20, 5, "softmax_warp_forward")]))
    assert [(f["family"], f["total_us"]) for f in drawn["families"]] == [
        ("softmax", 5),
        ("gemm", None),
    ]
    assert [row["total_us"] for row in drawn["kernels"]["rows"]] == [5, None]


def test_known_durations_beside_unknown_ones_are_summed(make_trace: MakeTrace) -> None:
    known, unknown = kernel(1, 10, 5, "a"), without_duration(kernel(2, 20, 5, "b"))
    report = kernels_report(make_trace([launch(1, 1), launch(2, 2), known, unknown]))
    assert [(row["name"], row["total_us"]) for row in report["names"]] == [("a", 5), ("b", None)]
    assert report["kernel_time_us"] == 5


def test_memory_events_alone_are_a_recording(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    path = tmp_path / "memory.json"
    events = [moved(start, 512, start) for start in (1, 2)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = run_analyze("memory", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Peak of cpu: 1 KiB" in done.stdout
    for command in ("summary", "ops"):
        assert run_analyze(command, path).returncode == 0
    for command in ("kernels", "gaps", "regions", "calls"):
        refused = run_analyze(command, path)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "nothing was recorded" not in refused.stderr


def test_the_summary_says_why_tables_have_fewer_ops(samples: Path) -> None:
    data = summarise(load_trace(samples / "cpu-sdpa-math.json.gz"))
    ops = load_trace(samples / "cpu-sdpa-math.json.gz").table("ops").height
    assert data["cpu_ops"] > data["cpu_ops_in_tables"] == ops
    text = " ".join(render_summary(data).split())
    assert f"{data['cpu_ops']:,} in the file; {ops:,} in tables, which" in text


def test_work_of_unknown_time_is_not_said_to_have_ended(make_trace: MakeTrace) -> None:
    events = [mark("fwd", 0, 100), launch(1, 1), without_duration(kernel(1, 10, 5))]
    (entry,) = report_regions(make_trace(events))["names"]
    assert entry["gpu"]["gpu_ops"] == 1
    assert (entry["gpu"]["busy_us"], entry["gpu"]["sum_us"]) == (None, None)
    assert entry["why"] == "launched 1 GPU op of unknown time in 100 us"


@pytest.mark.parametrize("odd", [[], [1, [2]], {}, {"a": 1}])
def test_a_list_where_a_number_should_be_is_unknown(make_trace: MakeTrace, odd: object) -> None:
    work = [kernel(1, 10, 5, "a"), kernel(2, 20, 5, "b", **{"registers per thread": odd})]
    trace = make_trace([launch(1, 1), launch(2, 2), {**work[0], "dur": odd}, work[1]])
    assert trace.table("kernels")["dur_us"].to_list() == [None, 5]
    assert kernels_report(trace)["kernels"] == 2


@pytest.mark.parametrize(
    ("in_ops", "says"),
    [(0, "none inside a recorded op"), (1, "1 of them inside a recorded op"), (2, None)],
)
def test_where_most_gpu_work_has_no_op_that_is_said(
    in_ops: int, says: str | None, make_trace: MakeTrace
) -> None:
    """As where graphs were replayed: rules that ask for ops then look at little of the work."""
    ops = [op("aten::mm", 100 * number, 50) for number in range(1, in_ops + 1)]
    work = [launch(n, 100 * n + 10) for n in (1, 2, 3)] + [
        kernel(n, 100 * n + 20, 5) for n in (1, 2, 3)
    ]
    trace = make_trace([mark("start", 0, 1), *ops, *work])
    for text in (
        render_summary(summarise(trace)),
        render("text", [run_rules(trace, RULES)], Rendering()),
    ):
        told = " ".join(text.split())
        assert "3 GPU ops, 100 % linked to a launch" in told
        assert (says in told) if says else ("inside a recorded op" not in told)
