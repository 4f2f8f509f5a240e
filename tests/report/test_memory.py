"""``analyze memory``: peaks, what was live, who allocates, score matrices, churn."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from analyze.report import console
from analyze.report.memory import describe_memory
from analyze.report.memory_text import render_memory
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace, RunAnalyze
from tests.report.test_golden_text import compare
from tests.tables.test_attribution import host, launch, mark, op
from tests.tables.test_memory import CUDA, RECORDED, moved, raw_events

KIB = 1024


def cuda(start: float, size: int, address: int, total: int) -> dict[str, Any]:
    totals = {"Total Allocated": total, "Total Reserved": 4096 * KIB}
    return moved(start, size, address, **CUDA, **totals)


def made(make_trace: MakeTrace) -> Trace:
    """Two forwards: scores and an output each; the second output stays; 1 MiB is from before."""
    old = 1024 * KIB
    shapes = {
        "Input Dims": [[4, 64, 32], [4, 32, 64]],
        "Input type": ["c10::BFloat16", "c10::BFloat16"],
    }
    events: list[dict[str, Any]] = [host("python_function", "mine.py(3): f", 0, 400)]
    for start, kept in ((0, False), (200, True)):
        events += [
            mark("attn_fwd", start, 150),
            op("aten::bmm", start + 10, 20, **shapes),
            cuda(start + 15, 32 * KIB, 64, old + 32 * KIB),
            op("aten::_softmax", start + 40, 20),
            cuda(start + 45, 32 * KIB, 128, old + 64 * KIB),
            op("aten::bmm", start + 70, 20, **shapes),
            cuda(start + 75, 16 * KIB, 256, old + 80 * KIB),
            cuda(start + 100, -32 * KIB, 64, old + 48 * KIB),
            cuda(start + 110, -32 * KIB, 128, old + 16 * KIB),
        ]
        events += [] if kept else [cuda(start + 120, -16 * KIB, 256, old)]
    events += [
        moved(390, 8),
        launch(1, 300, name="cudaMalloc"),
        launch(2, 310, name="cudaMallocAsync"),
    ]
    return make_trace(events)


def test_the_text(make_trace: MakeTrace, samples: Path) -> None:
    report = {**describe_memory(made(make_trace)), "trace": "made.json"}
    compare(render_memory(report, limit=5), "made.memory", samples)


def test_the_peak_and_what_was_live(make_trace: MakeTrace) -> None:
    report = describe_memory(made(make_trace))
    assert [device["device"] for device in report["devices"]] == ["cuda:2", "cpu"]
    device = report["devices"][0]
    peak = device["peak"]
    assert peak["bytes"] == (1024 + 80) * KIB
    assert peak["by_allocator"]
    assert (peak["start_us"], peak["forward"], peak["op_chain"]) == (75, 0, "aten::bmm")
    assert (peak["live_bytes"], peak["live_blocks"]) == (80 * KIB, 3)
    assert peak["from_before_bytes"] == device["total_at_start_bytes"] == 1024 * KIB
    assert [(row["op_chain"], row["count"], row["bytes"]) for row in peak["live"]] == [
        ("aten::bmm", 2, 48 * KIB), ("aten::_softmax", 1, 32 * KIB),
    ]  # fmt: skip
    assert (device["not_freed"], device["not_freed_bytes"]) == (1, 16 * KIB)
    assert report["driver_calls"] == [{"name": "cudaMalloc", "count": 1, "time_us": 2}]


def test_ops_and_churn(make_trace: MakeTrace) -> None:
    report = describe_memory(made(make_trace))
    ops = {row["op_chain"]: row for row in report["ops"] if row["device"] == "cuda:2"}
    assert (ops["aten::bmm"]["count"], ops["aten::bmm"]["bytes"]) == (4, 96 * KIB)
    assert ops[None]["freed_bytes"] == 144 * KIB
    assert sum(row["net_bytes"] for row in ops.values()) == 16 * KIB
    churn = report["churn"]
    assert (churn["unit"], churn["units"], churn["pairs"]) == ("forward", 2, 5)
    assert [(row["bytes"], row["pairs"]) for row in churn["sizes"]] == [
        (32 * KIB, 4),
        (16 * KIB, 1),
    ]


def test_scores_of_attention_written_as_ops(make_trace: MakeTrace) -> None:
    scores = describe_memory(made(make_trace))["score_matrices"]
    assert (scores["calls"], scores["count"], scores["bytes"]) == (2, 4, 128 * KIB)
    assert {match["shape"] for match in scores["matches"]} == {"4x64x64"}
    assert {match["item_bytes"] for match in scores["matches"]} == {2}


def test_a_device_that_only_gave_back_peaked_at_the_start(make_trace: MakeTrace) -> None:
    trace = make_trace([mark("m", 0, 1), cuda(10, -512, 64, 1024), cuda(20, 256, 64, 1280)])
    report = describe_memory(trace)
    peak = report["devices"][0]["peak"]
    assert (peak["bytes"], peak["at_start"], peak["live"]) == (1536, True, [])
    assert "at the start of the recording" in render_memory(report, limit=5)


def test_without_addresses_nothing_is_said_about_blocks(make_trace: MakeTrace) -> None:
    trace = make_trace([op("aten::empty", 0, 9), moved(1, 64, None), moved(20, -64, None)])
    report = describe_memory(trace)
    device = report["devices"][0]
    assert device["not_freed"] is None
    assert (device["peak"]["bytes"], device["peak"]["by_allocator"]) == (64, False)
    assert device["peak"]["live_bytes"] is None
    assert report["churn"] is None
    assert "cannot be told apart" in render_memory(report, limit=5)


@pytest.mark.parametrize("name", RECORDED)
def test_the_peak_of_real_events(name: str, real_traces: Path) -> None:
    """The largest running sum of the raw events, and the blocks that make it up."""
    (path,) = (real_traces / name).glob("*.json*")
    order = sorted(raw_events(path), key=lambda e: (e["ts"], e["args"].get("Ev Idx", 0)))
    sums: defaultdict[int, int] = defaultdict(int)
    highest: defaultdict[int, int] = defaultdict(int)
    live: defaultdict[int, dict[int, int]] = defaultdict(dict)
    live_at_peak: dict[int, int] = {}
    for event in order:
        args, device = event["args"], event["args"]["Device Type"]
        sums[device] += args["Bytes"]
        if args["Bytes"] > 0:
            live[device][args.get("Addr", 0)] = args["Bytes"]
        else:
            live[device].pop(args.get("Addr", 0), None)
        if sums[device] > highest[device]:
            highest[device] = sums[device]
            live_at_peak[device] = sum(live[device].values())
    report = describe_memory(load_trace(path))
    codes = {"cpu": 0, "cuda:0": 1, "hip:0": 6}
    for found in report["devices"]:
        device, peak = codes[found["device"]], found["peak"]
        before = found["total_at_start_bytes"] or 0
        assert peak["bytes"] - before == highest[device]
        if report["addresses"]:
            assert peak["live_bytes"] == live_at_peak[device]
            assert sum(row["bytes"] for row in peak["live"]) == live_at_peak[device]
            assert peak["from_before_bytes"] == peak["bytes"] - live_at_peak[device]


def attend(path: Path, *, fused: bool) -> None:
    q, k, v = (torch.randn(2, 4, 96, 32, dtype=torch.bfloat16) for _ in range(3))
    with (
        profile(
            activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True
        ) as profiler,
        torch.no_grad(),
        record_function("attn_fwd"),
    ):
        if fused:
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            ((q @ k.transpose(-2, -1)) * 0.2).softmax(-1) @ v
    profiler.export_chrome_trace(str(path))


@pytest.mark.parametrize("fused", [False, True])
def test_only_unfused_attention_writes_its_scores(tmp_path: Path, fused: bool) -> None:
    path = tmp_path / "trace.json"
    attend(path, fused=fused)
    scores = describe_memory(load_trace(path))["score_matrices"]
    matrix = 2 * 4 * 96 * 96 * 2
    assert scores["calls"] == 1
    written = {match["op_chain"]: match["count"] for match in scores["matches"]}
    if fused:
        assert written == {}
    else:
        assert all(match["bytes"] == matrix for match in scores["matches"])
        assert written == {
            "aten::matmul > aten::bmm": 1, "aten::mul": 1, "aten::softmax > aten::_softmax": 1,
        }  # fmt: skip


def test_the_math_backend_writes_its_scores(real_traces: Path) -> None:
    """8 x 16 heads of 1024 x 1024 scores, in fp32 and once more in bf16, in each of 3 forwards."""
    (path,) = (real_traces / "gen-cpu-math-stack").glob("*.json")
    scores = describe_memory(load_trace(path))["score_matrices"]
    found = sorted(
        (match["bytes"], match["item_bytes"], match["count"]) for match in scores["matches"]
    )
    elements = 8 * 16 * 1024 * 1024
    assert found == [(2 * elements, 2, 3), (4 * elements, 4, 3), (4 * elements, 4, 3)]
    assert (scores["calls"], scores["calls_of_unknown_size"]) == (3, 0)


def test_json_is_the_contract(make_trace: MakeTrace, run_analyze: RunAnalyze) -> None:
    trace = made(make_trace)
    done = run_analyze("memory", trace.name, "--format", "json", "--limit", "1")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert data.keys() == {
        "schema_version", "trace", "coverage", "quality", "events", "allocations", "frees",
        "out_of_memory", "addresses", "devices", "ops", "score_matrices", "churn", "driver_calls",
    }  # fmt: skip
    assert data["schema_version"] == 1
    assert len(data["ops"]) > 1, "JSON has all rows"


def test_limit_bounds_the_text(make_trace: MakeTrace, run_analyze: RunAnalyze) -> None:
    trace = made(make_trace)
    done = run_analyze("memory", trace.name, "--limit", "1")
    assert "and 1 more owner, 32 KiB" in done.stdout
    assert "and 1 more size, 16 KiB" in done.stdout


def test_80_columns_are_enough(make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "DEFAULT_WIDTH", 80)
    text = render_memory(describe_memory(made(make_trace)), limit=5)
    assert max(map(len, text.splitlines())) <= 80


def test_without_memory_events_one_line_says_how(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("memory", samples / "synthetic-naive.json.gz")
    assert (done.returncode, done.stdout) == (2, "")
    assert "memory events were not recorded: capture with profile_memory=True" in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_of_the_trace_are_data(make_trace: MakeTrace) -> None:
    nasty = "[red]x[/red]\x1b[2J"
    trace = make_trace([op(nasty, 0, 50), moved(10, 4096), moved(20, -4096)])
    text = render_memory(describe_memory(trace), limit=5)
    assert "\x1b" not in text
    assert "[red]x[/red]" in text


def test_a_block_of_an_earlier_step_of_the_same_number_was_not_given_back_in_its_own(
    make_trace: MakeTrace,
) -> None:
    steps = [mark(f"ProfilerStep#{n}", start, 50) for n, start in ((3, 0), (4, 100), (3, 200))]
    old = 1024 * KIB
    blocks = [
        cuda(10, 32 * KIB, 64, old + 32 * KIB),
        cuda(210, -32 * KIB, 64, old),
        cuda(220, 16 * KIB, 64, old + 16 * KIB),
        cuda(230, -16 * KIB, 64, old),
    ]
    churn = describe_memory(make_trace([*steps, *blocks]))["churn"]
    assert (churn["unit"], churn["units"], churn["pairs"]) == ("step", 1, 1)
