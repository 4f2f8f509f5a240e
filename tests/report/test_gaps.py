"""``analyze gaps``: busy and idle time, causes, the longest gaps, and its options."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyze.report import console
from analyze.report.gaps import TIMELINE_CELLS, describe_gaps
from analyze.report.gaps_text import render_gaps
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace, RunAnalyze
from tests.report.test_golden_text import compare
from tests.tables.test_attribution import host, kernel, launch, mark, op

SAMPLES = ("synthetic-naive", "synthetic-sdpa-cudnn", "synthetic-sdpa-math")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_text(name: str, samples: Path) -> None:
    data = describe_gaps(load_trace(samples / f"{name}.json.gz"), limit=3)
    compare(render_gaps(data), f"{name}.gaps", samples)


@pytest.mark.parametrize("name", SAMPLES)
def test_80_columns_are_enough(name: str, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "DEFAULT_WIDTH", 80)
    lines = render_gaps(describe_gaps(load_trace(samples / f"{name}.json.gz"))).splitlines()
    assert max(map(len, lines[1:])) <= 80
    assert any(
        line.split() == ["cause", "gaps", "time", "share", "median", "longest"] for line in lines
    )


def half_busy(make_trace: MakeTrace) -> Trace:
    """The first device works in the first and last quarter, the second in all but the third."""
    return make_trace([
        launch(1, 0), launch(2, 1), launch(3, 300), launch(4, 310),
        kernel(1, 100, 100), kernel(3, 400, 100),
        kernel(2, 100, 200, "k", device=1), kernel(4, 400, 100, "k", device=1),
    ])  # fmt: skip


def test_devices_share_one_timeline(make_trace: MakeTrace) -> None:
    data = describe_gaps(half_busy(make_trace))
    first, second = (device["busy_share"] for device in data["timeline"]["devices"])
    quarter = TIMELINE_CELLS // 4
    assert first == [1] * quarter + [0] * 2 * quarter + [1] * quarter
    assert second == [1] * 2 * quarter + [0] * quarter + [1] * quarter
    assert (data["timeline"]["start_us"], data["timeline"]["end_us"]) == (100, 500)
    bars = [line for line in render_gaps(data).splitlines() if "\u2588" in line]
    assert bars[0] == "GPU 0  " + "\u2588" * 15 + "\u00b7" * 30 + "\u2588" * 15
    assert bars[1] == "GPU 1  " + "\u2588" * 30 + "\u00b7" * 15 + "\u2588" * 15


def test_one_device_of_several(make_trace: MakeTrace) -> None:
    data = describe_gaps(half_busy(make_trace), device=1)
    assert [device["device"] for device in data["devices"]] == ["1"]
    assert [gap["dur_us"] for gap in data["longest"]] == [100]
    assert data["gap_time_us"] == 100


def test_a_cell_that_is_nearly_idle_or_busy_does_not_look_so(make_trace: MakeTrace) -> None:
    cell = 10 * TIMELINE_CELLS
    trace = make_trace([
        launch(1, 0), launch(2, 1), launch(3, 2), launch(4, 3),
        kernel(1, 100, 1), kernel(2, 100 + 10, 9), kernel(3, 120, 1), kernel(4, 100 + cell - 1, 1),
    ])  # fmt: skip
    (bar,) = [line for line in render_gaps(describe_gaps(trace)).splitlines() if "\u2587" in line]
    assert bar.startswith("GPU 0  \u2581\u2587\u2581\u00b7")


def test_a_time_that_was_trimmed_away_has_no_busy_share(make_trace: MakeTrace) -> None:
    ms = 1_000_000
    trace = make_trace(
        [launch(1, 0), kernel(1, 0, 100), launch(2, 500), kernel(2, 500, 100)],
        kinetolint_trim={"windows_ns": [[0, ms // 10], [ms // 2, ms]]},
    )
    data = describe_gaps(trace)
    assert data["gaps"] == 0
    assert data["devices"][0]["idle_us"] == 0
    assert set(data["timeline"]["devices"][0]["busy_share"]) == {1, None}
    text = render_gaps(data)
    assert re.search(r"a cell, blank where time was left out\nGPU 0 +█+ +█+\n", text)


def test_busy_shares_of_cells_add_up_to_busy_time(real_traces: Path) -> None:
    for name in ("tl-b200", "swin-a4000", "hta-nccl"):
        (path,) = (real_traces / name).glob("*.json*")
        data = describe_gaps(load_trace(path))
        length = data["timeline"]["end_us"] - data["timeline"]["start_us"]
        for device, cells in zip(data["devices"], data["timeline"]["devices"], strict=True):
            mean = sum(cells["busy_share"]) / len(cells["busy_share"])
            assert mean * length == pytest.approx(device["busy_us"], rel=1e-3)
        assert sum(row["time_us"] for row in data["causes"]) == pytest.approx(data["gap_time_us"])
        assert sum(row["share"] for row in data["causes"]) == pytest.approx(1)
        idle = sum(device["idle_us"] for device in data["devices"])
        assert data["gap_time_us"] == pytest.approx(idle)


def test_json_is_the_contract(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("gaps", samples / "synthetic-sdpa-math.json.gz", "--format", "json")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert data["schema_version"] == 1
    assert data.keys() == {
        "schema_version", "trace", "coverage", "quality", "where", "devices", "timeline", "min_us",
        "all_gaps", "gaps", "gap_time_us", "causes", "host_activity", "longest",
    }  # fmt: skip
    assert len(data["longest"]) == data["gaps"] == 59
    lengths = [gap["dur_us"] for gap in data["longest"]]
    assert lengths == sorted(lengths, reverse=True)
    assert round(sum(lengths), 3) == data["gap_time_us"] == data["devices"][0]["idle_us"]
    assert data["longest"][0].keys() == {
        "device", "start_us", "dur_us", "cause", "op_chain", "op_us", "api", "in_api_us",
        "in_ops_us", "outside_ops_us", "source", "previous_name", "previous_op", "next_name",
        "next_op", "region", "forward", "step", "phase", "in_forward", "between_forwards", "calls",
        "ops",
    }  # fmt: skip


def test_options_choose_gaps_and_keep_idle_time(samples: Path, run_analyze: RunAnalyze) -> None:
    sample = samples / "synthetic-sdpa-math.json.gz"
    everything = json.loads(run_analyze("gaps", sample, "--format", "json").stdout)
    options = ("--where", "cause == 'device'", "--min-us", "1.5", "--limit", "1")
    chosen = json.loads(run_analyze("gaps", sample, "--format", "json", *options).stdout)
    assert chosen["devices"] == everything["devices"]
    expected = [g for g in everything["longest"] if g["cause"] == "device" and g["dur_us"] >= 1.5]
    assert 1 <= chosen["gaps"] == len(expected) < everything["gaps"]
    assert chosen["longest"] == expected[:1]
    assert chosen["where"]["expression"] == "cause == 'device'"
    assert chosen["where"]["undecided"] == 0
    text = run_analyze("gaps", sample, *options).stdout
    assert "  where  " in text
    assert "of at least 1.5 us" in text


def test_gaps_that_cannot_be_told_are_counted(
    make_trace: MakeTrace, run_analyze: RunAnalyze
) -> None:
    trace = make_trace([launch(1, 0), launch(2, 50), kernel(1, 5, 5), kernel(2, 60, 5),
                        kernel(None, 80, 5)])  # fmt: skip
    done = run_analyze("gaps", trace.name, "--where", "cause == 'host'")
    assert "1 of 2 gaps; of 1 it cannot be told, it is left out" in done.stdout
    assert "unknown" in run_analyze("gaps", trace.name).stdout


def test_gaps_that_are_all_left_out_are_not_denied(
    make_trace: MakeTrace, run_analyze: RunAnalyze
) -> None:
    trace = make_trace([launch(1, 0), launch(2, 50), kernel(1, 5, 5), kernel(2, 60, 5),
                        kernel(None, 80, 5)])  # fmt: skip
    text = run_analyze("gaps", trace.name, "--where", "cause == 'input'", "--min-us", "1").stdout
    assert "none of 2 gaps" in text
    assert "No gaps" not in text
    assert "of at least 1 us" in text
    assert "cause == 'input': none of 2 gaps; of 1 it cannot be told" in text


def test_idle_time_outside_of_the_only_forward_lies_between_none(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 10), mark("attn_fwd", 20, 50), launch(2, 30), launch(3, 40),
        kernel(1, 20, 10), kernel(2, 60, 10), kernel(3, 80, 10),
    ])  # fmt: skip
    text = render_gaps(describe_gaps(trace))
    assert "75 % of it lies outside of any forward's work, the rest inside one" in text
    assert ", before work of forward 0" in text
    assert ", in forward 0" in text
    assert "between" not in text


def test_a_limit_beyond_any_number_of_gaps_shows_all(
    samples: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("gaps", samples / "synthetic-naive.json.gz", "--limit", str(10**20))
    assert (done.returncode, done.stderr) == (0, "")
    assert "Longest 17 gaps" in done.stdout


def test_what_the_cpu_does_matters_only_where_it_was_late(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("aten::add", 0, 200), launch(1, 2), launch(2, 5), launch(3, 150),
        kernel(1, 10, 10), kernel(2, 60, 10), kernel(3, 170, 10),
    ])  # fmt: skip
    data = describe_gaps(trace)
    assert [(gap["cause"], gap["dur_us"]) for gap in data["longest"]] == [
        ("host", 100), ("device", 40),
    ]  # fmt: skip
    assert data["host_activity"] == {
        "gap_time_us": 100, "in_api_us": 2, "in_ops_us": 98, "outside_ops_us": 0,
        "calls": [{"name": "cudaLaunchKernel", "time_us": 2}],
        "ops": [{"name": "aten::add", "time_us": 98}],
    }  # fmt: skip
    assert (data["longest"][1]["calls"], data["longest"][1]["ops"]) == (None, None)
    assert render_gaps(data).count("\n   CPU ") == 1


def test_the_totals_say_of_which_causes_and_leave_out_what_is_little(
    make_trace: MakeTrace,
) -> None:
    trace = make_trace([
        launch(1, 0), kernel(1, 10, 10),
        op("aten::zeros", 30, 970), op("aten::empty", 35, 3), launch(2, 997),
        op("aten::view", 1001, 1), kernel(2, 1020, 10), kernel(None, 1100, 10),
    ])  # fmt: skip
    text = " ".join(render_gaps(describe_gaps(trace)).split())
    assert "CPU in the 1 ms of cause host, the launching threads were 97 % in ops" in text
    assert "in API calls" not in text  # 2 us of 1 ms
    assert "<1 %" not in text.partition("Longest")[2]


def test_everything_that_took_much_of_a_gap_is_named(make_trace: MakeTrace) -> None:
    free, alloc, event = "cudaFree", "cudaHostAlloc", "cudaEventCreate"
    trace = make_trace([
        launch(1, 0), kernel(1, 10, 10),
        *(host("cuda_runtime", name, at, dur) for name, at, dur in (
            (free, 25, 20), (alloc, 50, 8), (event, 60, 1), (free, 65, 15))),
        op("aten::empty", 82, 10), op("aten::view", 93, 4),
        launch(2, 119), kernel(2, 120, 10),
    ])  # fmt: skip
    (gap,) = describe_gaps(trace)["longest"]
    assert gap["calls"] == [
        {"name": free, "time_us": 35}, {"name": alloc, "time_us": 8},
        {"name": event, "time_us": 1}, {"name": "cudaLaunchKernel", "time_us": 1},
    ]  # fmt: skip
    assert gap["ops"] == [
        {"name": "aten::empty", "time_us": 10}, {"name": "aten::view", "time_us": 4}
    ]  # fmt: skip
    text = " ".join(render_gaps(describe_gaps(trace)).split())
    assert "45 % in API calls (35 % cudaFree, 8 % cudaHostAlloc)" in text
    assert "14 % in ops (10 % aten::empty)" in text


def test_a_wait_of_many_calls_names_them_all(real_traces: Path) -> None:
    """Most of 9.9 s idle is one launch; 4 s of it are two calls of cudaFree before."""
    (path,) = (real_traces / "swin-a4000").glob("*.json*")
    longest = describe_gaps(load_trace(path), limit=1)["longest"][0]
    times = {call["name"]: call["time_us"] for call in longest["calls"]}
    assert times["cudaFree"] == pytest.approx(3_976_000, rel=0.001)
    assert times["cudaLaunchKernel"] > times["cudaFree"]
    assert sum(times.values()) <= longest["in_api_us"]


def test_a_gpu_without_gaps_says_so(make_trace: MakeTrace) -> None:
    trace = make_trace([launch(1, 0), kernel(1, 5, 5)])
    text = render_gaps(describe_gaps(trace))
    assert "No gaps" in text
    assert "100 %" in text


def test_work_without_length_has_no_timeline(make_trace: MakeTrace) -> None:
    data = describe_gaps(make_trace([launch(1, 0), kernel(1, 5, 0)]))
    assert data["timeline"] is None
    assert data["devices"][0]["busy_share"] is None
    assert "unknown" in render_gaps(data)


@pytest.mark.parametrize("start", [10, 10_000_000])
def test_the_ends_of_the_shortest_timeline_stand_apart(start: float, make_trace: MakeTrace) -> None:
    """It has a cell for each nanosecond: fewer than the ends have letters."""
    events = [op("aten::mm", 0, 1), kernel(None, start, 0.001)]
    lines = render_gaps(describe_gaps(make_trace(events))).splitlines()
    bar = lines.index("GPU 0  \u2588")
    assert len(lines[bar + 1].split()) == 4
    assert lines[bar + 1].startswith(f"       {lines[bar + 1].strip()}")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["cpu-naive.json.gz"], 2, "no GPU work was recorded: capture with ProfilerActivity.CUDA"),
        (["synthetic-naive.json.gz", "--device", "7"], 2, "there is work on 0"),
        (["synthetic-naive.json.gz", "--where", "causes == 'host'"], 2, "did you mean 'cause'"),
        (["synthetic-naive.json.gz", "--forward", "nothing"], 2, "no annotation of that name"),
        (["missing.json"], 3, "no such file"),
        (["synthetic-naive.json.gz", "--min-us", "nan"], 2, "nan is not in the range"),
        (["synthetic-naive.json.gz", "--min-us", "inf"], 2, "inf is not in the range"),
        (["synthetic-naive.json.gz", "--min-us", "1e300"], 2, "1e+300 is not in the range"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], code: int, words: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    name, *options = arguments
    done = run_analyze("gaps", samples / name, *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_of_the_trace_are_data(make_trace: MakeTrace) -> None:
    nasty = "[red]x[/red]\x1b[2J"
    trace = make_trace([
        mark("start", 0, 1), op(nasty, 10, 90), host("python_function", f"{nasty}(3): f", 0, 200),
        launch(1, 5), launch(2, 80), kernel(1, 8, 5, nasty), kernel(2, 90, 5, nasty),
    ])  # fmt: skip
    text = render_gaps(describe_gaps(trace))
    assert "\x1b" not in text
    assert "[red]x[/red]" in text


def test_a_folder_stands_for_its_traces(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("gaps", samples, "--format", "json", "--limit", "0")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert {Path(data["trace"]).name[:9] for data in found} == {"synthetic"}
    assert done.returncode == 2, "the CPU traces among them hold nothing to show"
    assert all(data["longest"] == [] for data in found)


def test_published_rows_are_those_of_the_report(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-sdpa-cudnn.json.gz")
    rows = trace.table("gaps").sort("dur_us", descending=True, maintain_order=True)
    longest = describe_gaps(trace)["longest"]
    assert rows["dur_us"].to_list() == pytest.approx([gap["dur_us"] for gap in longest])
    assert rows.filter(pl.col("between_forwards")).height == 2


def test_a_kernel_that_begins_before_its_launch_is_shown_all_the_same(
    make_trace: MakeTrace,
) -> None:
    trace = make_trace([launch(1, 0), kernel(1, 15, 5), launch(2, 46), kernel(2, 45, 5)])
    assert "before  " in render_gaps(describe_gaps(trace))
