"""Traces at a glance: the seeds' table, and what a table of traces must not hide."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analyze.diff.same_work import input_shapes, is_same_work
from analyze.engine.loading import load_rules
from analyze.engine.run import run_rules
from analyze.errors import AnalyzeError
from analyze.report.captures_text import render_captures, render_traces
from analyze.report.compare import compare, unique_names
from analyze.report.compare_markdown import compare_markdown
from analyze.report.compare_text import render_compare
from analyze.report.formats import Rendering
from analyze.report.latency_words import UNSTEADY
from analyze.report.markdown import write_markdown
from analyze.report.text import write_text
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace
from tests.report.report_factory import report_of
from tests.report.test_golden_text import compare as compare_with_golden

VARIANTS = ("naive", "naive-inplace", "sdpa-math", "sdpa-efficient", "sdpa-flash", "sdpa-cudnn")
RULES = load_rules(tests=False)


def compared(traces: list[Trace], baseline: str | None = None) -> dict[str, Any]:
    return compare([(trace, run_rules(trace, RULES)) for trace in traces], (), baseline)


@pytest.fixture(scope="module")
def seed_traces(samples: Path) -> list[Trace]:
    return [load_trace(samples / f"synthetic-{name}.json.gz") for name in VARIANTS]


def test_the_seeds_table(seed_traces: list[Trace]) -> None:
    data = compared(seed_traces, "synthetic-naive-inplace")
    rows = data["traces"]
    assert [row["name"] for row in rows] == [f"synthetic-{name}" for name in VARIANTS]
    assert [row["gpu_ops_per_forward"] for row in rows] == [6, 5, 20, 1, 1, 1]
    assert [row["copies_per_forward"] for row in rows] == [1, 0, 0, 0, 0, 0]
    published = [None, 1955.0, 7239.0, 277.9, 146.8, 186.3]
    for row, average in zip(rows, published, strict=True):
        assert average is None or row["gpu_busy_us"] == pytest.approx(average, rel=0.01)
    assert [round(row["cpu_us"]) for row in rows[3:]] == [117, 138, 214]
    assert data["relative_to"] == {"name": "synthetic-naive-inplace", "time": "gpu_busy_us"}
    assert rows[1]["relative_time"] == 1
    assert round(rows[2]["relative_time"], 1) == 3.7
    paths = [
        (row["precision_path"]["precision"], row["precision_path"]["tensor_core"]) for row in rows
    ]
    assert paths[0] == paths[1] == paths[3] == paths[4] == ("bf16", True)
    assert paths[2] == ("fp32", False)
    assert paths[5] == ("unknown", True)
    flash, cudnn = rows[4]["occupancy"], rows[5]["occupancy"]
    assert (flash["reported"], flash["recomputed"]) == (13, 12.5)
    assert (cudnn["reported"], cudnn["recomputed"]) == (0, 12.5)
    lessons = [(row["lesson"]["code"], row["lesson"]["state"]) for row in rows]
    assert lessons[0] == ("COPY101", "mismatch")
    assert lessons[2] == ("ATTN101", "mismatch")
    assert lessons[4] == ("OCC101", "benign")
    assert lessons[5] == ("LAUNCH101", "mismatch")


def test_the_text_word_for_word(seed_traces: list[Trace], samples: Path) -> None:
    data = compared(seed_traces, "synthetic-naive-inplace")
    compare_with_golden(render_compare(data), "synthetic.compare", samples)


def test_the_fastest_is_the_baseline(seed_traces: list[Trace]) -> None:
    data = compared(seed_traces)
    assert data["relative_to"]["name"] == "synthetic-sdpa-flash"
    assert min(row["relative_time"] for row in data["traces"]) == 1


def test_an_unknown_baseline_names_the_likely_one(seed_traces: list[Trace]) -> None:
    with pytest.raises(AnalyzeError, match="did you mean 'synthetic-naive-inplace'"):
        compared(seed_traces, "synthetic-naive-inplac")


def test_without_a_gpu_its_columns_are_not_zeros_but_absent(samples: Path) -> None:
    data = compared(
        [load_trace(samples / f"cpu-{name}.json.gz") for name in ("naive", "sdpa-flash")]
    )
    assert data["traces"][0]["gpu_busy_us"] is None
    assert data["traces"][0]["precision_path"] is None
    assert data["relative_to"]["time"] == "cpu_us"
    text = render_compare(data)
    assert "relative: CPU time" in text
    assert "GPU busy " not in text.splitlines()[1]
    assert "nothing found" in text


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_only_times_of_the_same_work_are_multiples(samples: Path, tmp_path: Path) -> None:
    decode = tmp_path / "decode.json"
    text = gzip.decompress((samples / "cpu-decode-cat.json.gz").read_bytes()).decode()
    decode.write_text(text.replace('"decode"', '"attn_fwd"'))
    other = [load_trace(samples / "cpu-naive.json.gz"), load_trace(decode)]
    reason = "most inputs of their ops are of other shapes"
    data = compared(other)
    assert (data["unlike"], data["relative_to"]) == ([reason], None)
    assert all(row["relative_time"] is None for row in data["traces"])
    seen = render_compare(data)
    assert f"relative times are left out: {reason}; --baseline NAME relates" in one_line(seen)
    asked = compared(other, "naive")
    assert asked["relative_to"]["name"] == "naive"
    assert f"not like the others: {reason}" in one_line(render_compare(asked))


def test_without_input_shapes_nothing_tells_that_the_work_is_the_same(
    make_trace: MakeTrace,
) -> None:
    traces = [make_trace([*marked(launched("sgemm", 1))]) for _ in range(2)]
    assert compared(traces)["unlike"] == ["no input shapes tell that the work is the same"]


def test_real_traces_of_one_model_are_the_same_work(real_traces: Path) -> None:
    def shapes(name: str) -> dict[str, int] | None:
        (path,) = (real_traces / name).iterdir()
        return input_shapes(load_trace(path))

    bert, owl = shapes("tl-h100-bert"), shapes("tl-h100-owl")
    qwen, on_amd = shapes("tl-h100-qwen"), shapes("tl-mi300-qwen")
    assert is_same_work(qwen, on_amd)
    assert is_same_work(bert, owl) is is_same_work(bert, qwen) is False


def capture_folder(folder: Path, samples: Path, **measured: dict[str, Any]) -> list[Trace]:
    entries = []
    for name, more in measured.items():
        (folder / f"{name}.json.gz").write_bytes(
            (samples / f"synthetic-{name}.json.gz").read_bytes()
        )
        entries.append({
            "name": name, "kind": "variant", "status": "captured", "reason": None,
            "workload": None, "annotations": ["attn_fwd"], "latency": None, "memory": None,
            "numerics": None, "traces": [{"file": f"{name}.json.gz"}], **more,
        })  # fmt: skip
    text = json.dumps({"schema_version": 1, "captures": entries})
    (folder / "capture.json").write_text(text)
    return [load_trace(folder / f"{name}.json.gz") for name in measured]


def test_wrong_results_are_never_the_fastest(tmp_path: Path, samples: Path) -> None:
    wrong: dict[str, Any] = {"numerics": {"ok": False}, "latency": {"median_us": 9.0}}
    right: dict[str, Any] = {"numerics": {"ok": True}, "memory": {"peak_bytes": 1 << 30}}
    traces = capture_folder(tmp_path, samples, **{"sdpa-flash": wrong, "sdpa-cudnn": right})
    data = compared(traces)
    assert data["relative_to"]["name"] == "sdpa-cudnn"
    assert data["traces"][0]["relative_time"] < 1
    text = render_compare(data)
    assert "WRONG" in text
    assert "1 GiB" in text
    assert "9 us" in text


def test_an_unsteady_latency_is_a_caution_wherever_traces_stand_side_by_side(
    tmp_path: Path, samples: Path
) -> None:
    unsteady = {"latency": {"median_us": 62_800.0, "p10_us": 48_000.0, "p90_us": 121_110.0}}
    steady = {"latency": {"median_us": 150.0, "p10_us": 100.0, "p90_us": 199.0}}
    unknown: dict[str, Any] = {"latency": {"median_us": 9.0}}
    measured = {"naive": unsteady, "sdpa-flash": steady, "sdpa-cudnn": unknown}
    traces = capture_folder(tmp_path, samples, **measured)
    note = "careful: latency of {} is unsteady: 48 ms to 121 ms (p10 to p90)"
    data = compared(traces)
    reports = [run_rules(trace, RULES) for trace in traces]
    for text in (render_compare(data), render_captures(reports), render_traces(reports)):
        assert note.format("naive") in text
        assert text.count("unsteady") == 1
    for markdown in (compare_markdown(data), write_markdown(reports, Rendering())):
        assert f"- {note.format('`naive`')}\n" in markdown
    alone = write_text(reports[:1], Rendering())
    assert "62.8 ms with the profiler off, unsteady: 48 ms to 121 ms (p10 to p90)" in alone


def test_capture_and_analyze_agree_on_what_is_unsteady() -> None:
    pytest.importorskip("torch")
    from capture import overview  # noqa: PLC0415 - it needs torch

    assert overview.UNSTEADY == UNSTEADY


def test_equal_file_names_are_told_apart(tmp_path: Path, samples: Path) -> None:
    traces = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "trace.pt.trace.json.gz"
        path.write_bytes((samples / "synthetic-sdpa-flash.json.gz").read_bytes())
        traces.append(load_trace(path))
    assert [row["name"] for row in compared(traces)["traces"]] == ["one", "other"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/bert/trace.json.gz"], ["bert"]),
        (["bert/worker0_step_12.1694128201545.pt.trace.json.gz"], ["bert"]),
        (["bert/rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz"], ["bert"]),
        (["runs/trace_bert.json"], ["trace_bert"]),
        (["trace.json"], ["trace"]),
        (["/tmp/trace.json"], ["trace"]),  # noqa: S108 - a name, not a file
        (
            ["log/worker0.1.pt.trace.json", "log/worker1.1.pt.trace.json"],
            ["worker0.1", "worker1.1"],
        ),
        (["a/x/trace.json", "b/x/trace.json"], ["a/x/trace.json", "b/x/trace.json"]),
        (["a/bert.json", "b/bert.json"], ["a/bert", "b/bert"]),
    ],
)
def test_a_trace_is_named_by_what_says_most(paths: list[str], names: list[str]) -> None:
    reports = [report_of(trace=path) for path in paths]
    assert unique_names(reports) == names


def launched(name: str, forward: int, **args: Any) -> list[dict[str, Any]]:
    """A launch at 0 us, and its kernel."""
    common = {"ph": "X", "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0}
    call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": forward}}
    kernel = {"cat": "kernel", "name": name, "args": {"correlation": forward, "device": 0, **args}}
    return [{**common, **call}, {**common, **kernel, "pid": 0, "tid": 7, "dur": 50.0}]


def marked(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, in an annotation around their launches."""
    mark = {"ph": "X", "cat": "user_annotation", "name": "attn_fwd", "pid": 1, "tid": 1}
    return [{**mark, "ts": 0.0, "dur": 90.0}, *events]


def test_where_no_rule_could_be_answered_nothing_was_checked(make_trace: MakeTrace) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
    trace = make_trace([op])
    gpu_rules = [rule for rule in RULES if rule.code == "COPY101"]
    data = compare([(trace, run_rules(trace, gpu_rules))])
    assert data["traces"][0]["why_nothing"].startswith("nothing could be checked: no GPU work")
    text = render_compare(data)
    assert "nothing could be checked" in text
    assert "nothing found" not in text


@pytest.mark.parametrize("dur", [50.0, 0.0])
def test_work_outside_of_every_forward_is_unknown_not_zero(
    make_trace: MakeTrace, dur: float
) -> None:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1}
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
    call, kernel = launched("sgemm", 1)
    trace = make_trace([
        call,
        {**kernel, "dur": dur},
        {**step, "ts": 100.0, "dur": 50.0},
        {**op, "ts": 101.0, "dur": 5.0},
    ])  # fmt: skip
    data = compared([trace])
    assert data["traces"][0]["gpu_ops_per_forward"] is None
    assert data["traces"][0]["gpu_busy_us"] is None
    assert not dur or "100 % of the GPU time was launched in no step" in render_compare(data)


def test_markdown_shows_names_as_they_are(make_trace: MakeTrace) -> None:
    trace = make_trace(launched("evil|name<b>*x*_y_`z`", 1))
    table = compare_markdown(compared([trace]))
    lines = table.splitlines()
    assert "`evil`&#124;`` name*x*_y_`z` ``" in table  # template arguments are cut off
    columns = lines[0].count(" | ")
    assert all(line.count(" | ") == columns for line in lines[1:3])
