"""``analyze kernels``: times, shares, launch configurations, owners, and the option --where."""

import gzip
import json
import statistics
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.cli.kernels import kernels as command
from analyze.cli.where_option import rows_where
from analyze.errors import AnalyzeError
from analyze.kernels.device import DeviceLimits
from analyze.kernels.occupancy import occupancy
from analyze.report import console
from analyze.report.kernels import SORTS, kernels_report, tail
from analyze.report.kernels_text import render_kernels
from analyze.tables.build import load_trace
from tests.conftest import MakeTrace, RunAnalyze
from tests.report.test_golden_text import compare
from tests.tables.test_attribution import Event, kernel, launch, mark, op

A100: Event = {
    "id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108,
    "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536,
    "regsPerMultiprocessor": 65536, "warpSize": 32, "sharedMemPerBlock": 49152,
    "sharedMemPerBlockOptin": 166912, "sharedMemPerMultiprocessor": 167936,
}  # fmt: skip


def by_name(report: dict[str, Any]) -> dict[str, Any]:
    return {row["name"]: row for row in report["names"]}


@pytest.mark.parametrize("name", ["synthetic-naive", "synthetic-sdpa-cudnn", "synthetic-sdpa-math"])
def test_the_text(name: str, samples: Path) -> None:
    report = kernels_report(load_trace(samples / f"{name}.json.gz"))
    compare(render_kernels(report, limit=8), f"{name}.kernels", samples)


def test_80_columns_are_enough(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "DEFAULT_WIDTH", 80)
    report = kernels_report(load_trace(samples / "synthetic-sdpa-math.json.gz"))
    lines = render_kernels(report, full_names=True).splitlines()
    assert max(len(line) for line in lines[1:]) <= 80
    header = next(line for line in lines if line.split()[:2] == ["share", "total"])
    assert header.split() == ["share", "total", "count", "mean", "p50", "p95", "max"]


def test_work_at_the_same_time_has_shares_of_more_than_everything(make_trace: MakeTrace) -> None:
    trace = make_trace([
        launch(1, 0), launch(2, 5), launch(3, 8),
        kernel(1, 100, 50, "a"), kernel(2, 100, 50, "b", stream=8), kernel(3, 150, 50, "b"),
    ])  # fmt: skip
    report = kernels_report(trace)
    assert (report["gpu_busy_us"], report["gpu_sum_us"]) == (100, 150)
    shares = {name: row["share_of_gpu_busy"] for name, row in by_name(report).items()}
    assert shares == {"a": 0.5, "b": 1.0}
    assert by_name(report)["b"]["streams"] == 2


def test_copies_count_as_busy_time_but_are_no_kernels(make_trace: MakeTrace) -> None:
    copy = kernel(2, 300, 60, "Memcpy DtoD (Device -> Device)")
    trace = make_trace(
        [launch(1, 0), launch(2, 5), kernel(1, 100, 20, "a"), {**copy, "cat": "gpu_memcpy"}]
    )
    report = kernels_report(trace)
    assert (report["gpu_busy_us"], report["kernel_time_us"]) == (80, 20)
    assert [row["name"] for row in report["names"]] == ["a"]
    assert report["names"][0]["share_of_gpu_busy"] == 0.25


def test_the_commonest_launch_stands_for_the_name(make_trace: MakeTrace) -> None:
    small: Event = {"grid": [1, 1, 1], "block": [64, 1, 1]}
    large: Event = {
        "grid": [324, 2, 1], "block": [256, 1, 1], "registers per thread": 64, "shared memory": 0,
    }  # fmt: skip
    events = [launch(i, i) for i in range(1, 7)]
    events += [kernel(1, 100, 90, "k", **small), kernel(2, 200, 5, "k", **large)]
    events += [kernel(3, 210, 5, "k", **large), kernel(4, 220, 5, "k"), kernel(5, 230, 5, "other")]
    rows = by_name(kernels_report(make_trace(events, deviceProperties=[A100])))
    assert rows["other"]["launch"] is None
    found = rows["k"]["launch"]
    assert (found["grid"], found["block"], found["registers_per_thread"]) == (
        [324, 2, 1], [256, 1, 1], 64,
    )  # fmt: skip
    assert (found["count"], found["configurations"]) == (2, 2)
    assert (found["recorded"], rows["k"]["count"]) == (3, 4)
    # 64 registers leave room for 4 blocks of 256 threads: 432 of 648 blocks at a time.
    assert (found["occupancy"], found["occupancy_limiter"]) == (50.0, "registers")
    assert (found["waves"], found["tail"]) == (1.5, 0.5)
    assert found["occupancy_reported"] is None


def test_many_waves_are_written_out(make_trace: MakeTrace) -> None:
    """Blocks of 1024 threads with 32 registers each: 2 on each of 108 multiprocessors."""
    args = {"grid": [1999, 108, 1], "block": [1024, 1, 1], "registers per thread": 32}
    events = [launch(1, 0), kernel(1, 100, 90, "k", **args, **{"shared memory": 0})]
    text = render_kernels(kernels_report(make_trace(events, deviceProperties=[A100])))
    assert "waves      1,000, 50 % of the last empty" in text


@given(blocks=st.integers(1, 10**6), threads=st.sampled_from([32, 96, 128, 1024]))
def test_the_tail_is_what_is_missing_to_a_full_wave(blocks: int, threads: int) -> None:
    device = DeviceLimits.from_properties(A100)
    launched = occupancy(
        device,
        threads_per_block=threads,
        registers_per_thread=32,
        shared_memory_bytes=0,
        blocks=blocks,
    )
    assert launched is not None
    wave = launched.resident_blocks * 108
    assert tail(launched.waves) == pytest.approx((-blocks % wave) / wave, abs=1e-9)


def test_owners_are_what_launched_the_kernels(make_trace: MakeTrace) -> None:
    trace = make_trace([
        op("outer", 0, 100), op("inner", 10, 20), launch(1, 15), launch(2, 50), launch(3, 60),
        kernel(1, 500, 10), kernel(2, 520, 3), kernel(3, 540, 3), kernel(None, 560, 1),
        kernel(9, 580, 1),
    ])  # fmt: skip
    row = kernels_report(trace)["names"][0]
    assert row["op_chains"] == {
        "distinct": 2,
        "unknown": 2,
        "top": [
            {"value": "outer > inner", "count": 1, "total_us": 10},
            {"value": "outer", "count": 2, "total_us": 6},
        ],
    }
    assert row["unlinked"] == 2
    text = render_kernels(kernels_report(trace))
    assert "no op known for 2 of 5; 2 have no launch in the file" in text


def test_owners_by_time_hide_no_launches(make_trace: MakeTrace) -> None:
    many = [("many", 20 + n, 1, 1) for n in range(9)]
    owners = [("slow", 0, 1, 90), ("slower", 10, 1, 100), *many]
    events = [mark("ProfilerStep#1", 0, 50), mark("ProfilerStep#2", 50, 50)]
    for number, (name, start, length, duration) in enumerate(owners, 1):
        events += [op(name, start, length), launch(number, start + 0.5)]
        events.append(kernel(number, 1000 * number, duration))
    report = kernels_report(make_trace(events))
    lines = [" ".join(line.split()) for line in render_kernels(report).splitlines()]
    first = lines.index("from slower (100 us, 1)")
    assert lines[first + 1 : first + 3] == ["from slow (90 us, 1)", "from and 1 more (9 us, 9)"]
    assert any(line.endswith(", 5.5 per step") for line in lines)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("hipLaunchKernel", "grid 512x1x1, block 256x1x1"),
        ("hipExtModuleLaunchKernel", "grid 512x1x1 threads, block 256x1x1"),
    ],
)
def test_a_grid_in_threads_is_called_so(make_trace: MakeTrace, call: str, words: str) -> None:
    of_amd: Event = {"grid": [512, 1, 1], "block": [256, 1, 1]}
    trace = make_trace([launch(1, 0, name=call), kernel(1, 100, 5, "k", **of_amd)])
    report = kernels_report(trace)
    assert report["names"][0]["launch"]["grid_in_threads"] is ("threads" in words)
    assert words in render_kernels(report)


def test_a_grid_that_is_partly_unknown_is_unknown(make_trace: MakeTrace) -> None:
    torn: Event = {"grid": [None, 1, 1], "block": [64, 1, 1]}
    trace = make_trace([launch(1, 0), kernel(1, 100, 5, "k", **torn)])
    text = render_kernels(kernels_report(trace))
    assert "grid unknown, block 64x1x1" in text
    assert "None" not in text


def test_a_launch_that_is_not_linked_is_no_other_configuration(make_trace: MakeTrace) -> None:
    same: Event = {"grid": [8, 1, 1], "block": [64, 1, 1]}
    trace = make_trace([
        launch(1, 0), kernel(1, 100, 5, "k", **same), kernel(None, 200, 5, "k", **same),
    ])  # fmt: skip
    launched = kernels_report(trace)["names"][0]["launch"]
    assert (launched["configurations"], launched["count"]) == (1, 2)


def test_names_are_data(make_trace: MakeTrace) -> None:
    hostile = "[bold red]\x1b[31mgemm[/] :smile:"
    odd: Event = {"grid": ["\x1b[1m", {}], "block": 7}
    trace = make_trace([launch(1, 0), kernel(1, 100, 5, hostile, **odd)])
    text = render_kernels(kernels_report(trace), full_names=True)
    assert "[bold red]\\x1b[31mgemm[/] :smile:" in text
    assert "\x1b" not in text


def test_names_that_are_shortened_alike_are_told_apart(make_trace: MakeTrace) -> None:
    names = ["void hop<int>(int)", "void hop<float>(float)"]
    events = [launch(1, 0), launch(2, 3), kernel(1, 100, 5, names[0]), kernel(2, 200, 5, names[1])]
    report = kernels_report(make_trace(events))
    assert render_kernels(report).count("2 names are shortened to this") == 2
    full = render_kernels(report, full_names=True)
    assert "names are shortened" not in full
    assert all(name in full for name in names)


def test_more_names_than_are_shown_are_counted(make_trace: MakeTrace) -> None:
    events = [launch(i, i * 3) for i in range(1, 5)]
    events += [kernel(i, 100 * i, i, f"k{i}") for i in range(1, 5)]
    text = render_kernels(kernels_report(make_trace(events)), limit=1)
    assert "1 of 4 kernel names" in text
    assert "and 3 more names, 6 us" in text


def test_the_orders(make_trace: MakeTrace) -> None:
    few: Event = {
        "grid": [54, 1, 1],
        "block": [1024, 1, 1],
        "registers per thread": 16,
        "shared memory": 0,
    }
    many: Event = {**few, "grid": [216, 1, 1]}
    events = [launch(i, i * 3) for i in range(1, 7)]
    events += [
        kernel(1, 100, 20, "a", **many),
        kernel(2, 130, 9, "b", **few),
        kernel(3, 150, 30, "c"),
    ]
    events += [kernel(i, 200 + i * 20, 8, "b", **few) for i in (4, 5)]
    trace = make_trace(events, deviceProperties=[A100])
    orders = {
        key: "".join(row["name"] for row in kernels_report(trace, sort=key)["names"])
        for key in SORTS
    }
    assert orders == {
        "total": "cba", "count": "bca", "mean": "cab", "p95": "cab", "max": "cab",
        "occupancy": "bac", "tail": "bac", "name": "abc",
    }  # fmt: skip
    choices = next(option.type for option in command.params if option.name == "sort")
    assert list(choices.choices) == list(SORTS)  # type: ignore[attr-defined]


def test_where_keeps_rows_and_counts_what_it_cannot_tell(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-sdpa-math.json.gz")
    filtered = rows_where(trace, "kernels", "not tensor_core and trace.sm_count == 108")
    report = kernels_report(trace, filtered)
    assert [row["tensor_core"] for row in report["names"]] == [False, False]
    assert (report["kernels"], report["selected_kernels"], filtered.undecided) == (60, 6, 54)
    whole = kernels_report(trace)
    assert report["gpu_busy_us"] == whole["gpu_busy_us"]
    assert by_name(whole)[report["names"][0]["name"]] == report["names"][0]


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("nam == 'x'", "in table 'kernels' (at character 1, 'nam'); did you mean 'name'?"),
        ("dur_us > 5 ms", "syntax error: invalid syntax (at character 12, 'm'); write ms(5)"),
        ("dur_us", "must be true or false, but this is a number (at character 1, 'dur_us')"),
        ("name == 'k' and count() > 1", "single rows are (at character 17, 'count()')"),
        ("__import__('os').system('id')", "only the functions of the rule language can be called"),
        ("", "the expression is empty"),
    ],
)  # fmt: skip
def test_a_wrong_expression_is_one_line_with_its_place(
    run_analyze: RunAnalyze, tmp_path: Path, expression: str, complaint: str
) -> None:
    done = run_analyze("kernels", tmp_path / "no-such-file.json", "--where", expression)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("analyze: --where: ")
    assert complaint in done.stderr


@pytest.mark.parametrize(
    "text", ["'ker' in name and dur_us > 5", "matches(name, '^k')", "name in ['k']"]
)
def test_texts_are_tested_once_each_and_mean_the_same(make_trace: MakeTrace, text: str) -> None:
    trace = make_trace(
        [launch(1, 0), launch(2, 9), kernel(1, 50, 9, "kernel"), kernel(2, 70, 9, "k")]
    )
    expected = {"'": [True, False], "m": [True, True], "n": [False, True]}[text[0]]
    assert rows_where(trace, "kernels", text).kept.to_list() == expected


def test_where_serves_any_table(samples: Path) -> None:
    trace = load_trace(samples / "cpu-sdpa-math.json.gz")
    kept = rows_where(trace, "ops", "name == 'aten::bmm'").kept
    assert kept.sum() == trace.table("ops").filter(pl.col("name") == "aten::bmm").height > 0
    with pytest.raises(AnalyzeError, match="unknown column 'grid'"):
        rows_where(trace, "ops", "grid == 1")


def test_the_command(run_analyze: RunAnalyze, samples: Path) -> None:
    trace = samples / "synthetic-sdpa-math.json.gz"
    done = run_analyze(
        "kernels", trace, "--format", "json", "--where", "family == 'gemm'", "--limit", 1
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema_version"] == 1
    assert (report["selected_names"], len(report["names"])) == (2, 1)
    assert report["where"]["expression"] == "family == 'gemm'"
    assert report["names"][0].keys() == {
        "name", "short_name", "family", "precision", "tensor_core", "count", "per_forward",
        "total_us", "mean_us", "p50_us", "p95_us", "max_us", "share_of_gpu_busy", "phases",
        "streams", "launch", "op_chains", "sources", "unlinked",
    }  # fmt: skip
    two = run_analyze("kernels", trace, samples / "synthetic-naive.json.gz", "--format", "json")
    assert [len(report["names"]) for report in json.loads(two.stdout)] == [13, 5]
    text = run_analyze("kernels", trace, "--limit", 2, "--where", "dur_us > 1e6").stdout
    assert "dur_us > 1e6: none of 60 kernels" in text


def test_a_trace_without_gpu_work_has_nothing_to_show(
    run_analyze: RunAnalyze, samples: Path
) -> None:
    done = run_analyze("kernels", samples / "cpu-naive.json.gz")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "capture with ProfilerActivity.CUDA" in done.stderr


def events_of(folder: Path) -> list[Event]:
    """Read the events of a real trace without any of this project's code; numbers are exact."""
    (path,) = folder.glob("*.json*")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text, parse_float=Decimal)
    events: list[Event] = document["traceEvents"] if isinstance(document, dict) else document
    return events


def busy(events: list[Event]) -> Decimal:
    total = Decimal(0)
    for device in {event["args"]["device"] for event in events}:
        end = Decimal("-Infinity")
        mine = [event for event in events if event["args"]["device"] == device]
        for start, length in sorted((Decimal(e["ts"]), Decimal(e["dur"])) for e in mine):
            total += max(Decimal(0), start + length - max(start, end))
            end = max(end, start + length)
    return total


def percentile(values: list[Decimal], share: float) -> float:
    """Interpolate between the two values around a share of the way from first to last."""
    ordered, place = sorted(map(float, values)), share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@pytest.mark.parametrize("folder", ["tl-h100-bert", "switch-a100", "tl-mi300-qwen", "toke-llama0"])
def test_real_traces_recomputed_from_their_json(real_traces: Path, folder: str) -> None:
    events = events_of(real_traces / folder)
    gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    times: dict[str, list[Decimal]] = defaultdict(list)
    launches: dict[str, Counter[str]] = defaultdict(Counter)
    keys = ("grid", "block", "registers per thread", "shared memory")
    for event in gpu:
        if event["cat"] == "kernel":
            times[event["name"]].append(event["dur"])
        if event["cat"] == "kernel" and "grid" in event["args"]:
            launches[event["name"]][json.dumps([event["args"].get(key) for key in keys])] += 1
    (path,) = (real_traces / folder).glob("*.json*")
    report = kernels_report(load_trace(path))
    assert report["gpu_busy_us"] == pytest.approx(float(busy(gpu)), abs=0.001)
    assert by_name(report).keys() == times.keys()
    for name, row in by_name(report).items():
        measured = times[name]
        assert row["count"] == len(measured)
        assert row["total_us"] == pytest.approx(float(sum(measured)), abs=0.001)
        assert row["mean_us"] == pytest.approx(float(statistics.mean(measured)), abs=0.001)
        assert row["p50_us"] == pytest.approx(float(statistics.median(measured)), abs=0.001)
        assert row["p95_us"] == pytest.approx(percentile(measured, 0.95), abs=0.001)
        assert row["max_us"] == pytest.approx(float(max(measured)), abs=0.001)
        assert row["share_of_gpu_busy"] == pytest.approx(float(sum(measured) / busy(gpu)))
        known = row["launch"] or {"configurations": 0, "recorded": 0, "count": 0}
        assert known["configurations"] == len(launches[name])
        assert known["recorded"] == launches[name].total()
        assert known["count"] == max(launches[name].values(), default=0)
