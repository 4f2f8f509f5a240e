"""Memory events: which block, which op, how much in all."""

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from analyze.engine.data import TraceTables
from analyze.engine.run import run_rule
from analyze.tables.build import load_trace
from analyze.tables.catalogue import Need
from tests.conftest import MakeTrace
from tests.engine.conftest import LoadText, load_text  # noqa: F401 - a fixture
from tests.tables.test_attribution import MAIN, Event, host, mark, op

NAME = "[memory]"


def moved(start: float, size: int, address: int | None = 64, /, **more: Any) -> Event:
    """A block taken (or given back, of negative size) on the CPU; ``more`` are arguments."""
    args = {"Device Type": 0, "Device Id": -1, "Bytes": size, **more}
    if address is not None:
        args["Addr"] = address
    return {
        "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": NAME, "pid": 9, "tid": MAIN,
        "ts": start, "args": args,
    }  # fmt: skip


CUDA = {"Device Type": 1, "Device Id": 2}


def test_an_event_belongs_to_what_ran_on_its_thread(make_trace: MakeTrace) -> None:
    trace = make_trace([
        mark("attn_fwd", 0, 100), op("aten::linear", 10, 50), op("aten::addmm", 20, 30),
        op("aten::other", 0, 100, 2), host("python_function", "mine.py(3): f", 0, 100),
        moved(30, 512, **CUDA), moved(80, -512, **CUDA), moved(200, 8),
    ])  # fmt: skip
    rows = trace.table("memory")
    columns = rows.select(
        "kind", "device_type", "device", "op_chain", "root_op", "source", "forward"
    )
    assert columns.rows() == [
        ("allocate", "cuda", 2, "aten::linear > aten::addmm", "aten::linear", "mine.py:3", 0),
        ("free", "cuda", 2, None, None, "mine.py:3", 0),
        ("allocate", "cpu", None, None, None, None, None),
    ]  # fmt: skip
    assert rows["region"].to_list() == ["attn_fwd", "attn_fwd", None]
    assert rows["phase"].to_list() == ["forward", "other", "other"]


def test_blocks_are_paired_by_address_on_their_device(make_trace: MakeTrace) -> None:
    trace = make_trace([
        mark("start", 0, 1),
        moved(10, 8, 64), moved(11, 8, 64, **CUDA), moved(20, -8, 64), moved(30, 16, 64),
        moved(35, 4, 99), moved(40, 24, 64), moved(50, -24, 64), moved(60, -4, 77),
        moved(70, 8, 0), moved(75, 8, 0), moved(80, -8, 0),
    ])  # fmt: skip
    frame = trace.memory
    found = dict(zip(frame["start_ns"] // 1000, frame["lifetime_ns"] // 1000, strict=True))
    assert found == {
        10: 10, 11: None, 20: None, 30: None, 35: None, 40: 10, 50: None, 60: None, 70: None,
        75: None, 80: None,
    }  # fmt: skip
    ends = dict(zip(frame["start_ns"] // 1000, frame["ended_row"], strict=True))
    assert ends[30] == frame["start_ns"].to_list().index(40_000), "its address was given out again"
    assert frame["address"].to_list()[-3:] == [None] * 3


def test_totals_that_were_not_kept_are_unknown(make_trace: MakeTrace) -> None:
    trace = make_trace([
        moved(10, 8, 64, **{"Total Allocated": 8, "Total Reserved": 0}),
        moved(20, -8, 64, **{"Total Allocated": 0, "Total Reserved": 0}),
        moved(15, 32, 64, **CUDA), moved(16, 32, 96, **CUDA),
    ])  # fmt: skip
    rows = trace.table("memory")
    assert rows["total_allocated"].to_list() == [8, None, None, 0]
    assert rows["total_reserved"].null_count() == 4
    assert rows["running_bytes"].to_list() == [8, 32, 64, 0]


def test_failed_allocations_take_no_memory(make_trace: MakeTrace) -> None:
    failed = {**moved(15, 1 << 40, **CUDA), "name": "[OutOfMemory]"}
    trace = make_trace([moved(10, 8, **CUDA), failed, moved(20, -8, **CUDA)])
    rows = trace.table("memory")
    assert rows["kind"].to_list() == ["allocate", "out_of_memory", "free"]
    assert rows["running_bytes"].to_list() == [8, 8, 0]
    assert rows["lifetime_us"].to_list() == [10, None, None]


def test_events_at_one_moment_keep_the_profilers_order(make_trace: MakeTrace) -> None:
    trace = make_trace([moved(10, -8, **{"Ev Idx": 7}), moved(10, 8, **{"Ev Idx": 6})])
    assert trace.table("memory")["bytes"].to_list() == [8, -8]


def test_old_events_have_no_address(make_trace: MakeTrace) -> None:
    """torch 1.8 to 1.12 wrote neither a category nor an address."""
    old = [moved(10, 8, None), moved(20, -8, None)]
    for event in old:
        del event["cat"]
    trace = make_trace([op("aten::empty", 5, 10), *old])
    rows = trace.table("memory").select("kind", "bytes", "address", "lifetime_us", "op").rows()
    assert rows == [("allocate", 8, None, None, "aten::empty"), ("free", -8, None, None, None)]


def test_without_events_a_rule_says_how_to_record_them(
    load_text: LoadText,  # noqa: F811 - the fixture
    samples: Path,
) -> None:
    rule = load_text("from: memory\nmeasure: {n: count()}\nexpect: n == 0")
    found = run_rule(rule, TraceTables(load_trace(samples / "synthetic-naive.json.gz")))
    assert found.not_applicable == Need.MEMORY.value
    assert "profile_memory=True" in Need.MEMORY.value


def train(path: Path, *, in_python: bool = False) -> Any:
    """Record two steps with memory events; return torch's own table."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
    optimizer = torch.optim.Adam(model.parameters())
    tables: list[Any] = []

    def finished(profiler: Any) -> None:
        profiler.export_chrome_trace(str(path), use_python_export=in_python)
        tables.append(profiler.key_averages())

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2),
        profile_memory=True,
        record_shapes=True,
        on_trace_ready=finished,
    ) as profiler:
        for _ in range(4):
            with record_function("forward pass"):
                loss = model(torch.randn(32, 64)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    return tables[0]


def raw_events(path: Path) -> list[Event]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    return [event for event in json.loads(text)["traceEvents"] if event.get("name") == NAME]


def test_memory_of_ops_equals_key_averages(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    table = train(path)
    rows = load_trace(path).table("memory")
    owner = pl.coalesce("op", "region")  # torch counts an annotation as an op
    found = dict(rows.group_by(owner).agg(pl.col("bytes").sum()).iter_rows())
    expected = {event.key: event.self_cpu_memory_usage for event in table}
    assert sum(expected.values()) != 0
    for name, amount in expected.items():
        if name != NAME and not name.startswith("ProfilerStep"):
            assert found.get(name, 0) == amount, name


@pytest.mark.parametrize("in_python", [False, True], ids=["kineto", "python"])
def test_both_exporters_of_torch_give_all_events(tmp_path: Path, in_python: bool) -> None:
    path = tmp_path / "train.json"
    train(path, in_python=in_python)
    written = [(event["args"]["Addr"], event["args"]["Bytes"]) for event in raw_events(path)]
    rows = load_trace(path).table("memory").select("address", "bytes").rows()
    assert len(rows) > 100
    assert Counter(rows) == Counter(written)


RECORDED = {
    "gen-cpu-math-stack": 132, "gen-cpu-train": 920, "switch-a100": 1070, "tl-h100-bert": 236,
    "tl-h100-owl": 13474, "tl-h100-qwen": 2450, "tl-mi300-qwen": 2692, "kin-r50-w0-v19": 12838,
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_real_events_add_up(name: str, real_traces: Path) -> None:
    """Running sums are those of the raw events; the allocator's own totals move with them."""
    (path,) = (real_traces / name).glob("*.json*")
    sums: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    in_order = sorted(
        raw_events(path), key=lambda event: (event["ts"], event["args"].get("Ev Idx", 0))
    )
    for event in in_order:
        args = event["args"]
        own = sums[args["Device Type"], args["Device Id"]]
        own.append((own[-1] if own else 0) + args["Bytes"])
    trace = load_trace(path)
    rows = trace.table("memory")
    assert rows.height == RECORDED[name]
    assert trace.table("trace")["has_memory"].item()
    assert trace.clock.report.missing == 0
    parts = rows.partition_by("device_type", "device")
    found = sorted(part["running_bytes"].to_list() for part in parts)
    assert found == sorted(sums.values())
    for part in parts:
        known = part.drop_nulls("total_allocated")
        before = known.select(pl.col("total_allocated") - pl.col("running_bytes")).to_series()
        assert before.n_unique() <= 1, "the allocator's total and the sum of events drift apart"
