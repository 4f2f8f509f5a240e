"""CPU times per op equal torch's own ``key_averages()`` on traces recorded here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from analyze.tables.build import Trace, load_trace

TOLERANCE_US = 0.01
"""Per call: torch rounds each duration to a float of microseconds."""


def train() -> Callable[[], None]:
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        with record_function("forward pass"):
            loss = model(torch.randn(32, 64)).sum()
        with record_function("backward pass"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def attend() -> Callable[[], None]:
    q, k, v = (torch.randn(2, 4, 64, 16, dtype=torch.bfloat16) for _ in range(3))
    mask = torch.ones(64, 64, dtype=torch.bool).triu(1)

    def step() -> None:
        with torch.no_grad(), record_function("attn_fwd"):
            scores = (q @ k.transpose(-2, -1)).mul(0.25).masked_fill(mask, float("-inf"))
            scores.softmax(-1) @ v
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return step


def record(step: Callable[[], None], path: Path) -> Any:
    """Profile two active steps; return torch's own table."""
    tables: list[Any] = []

    def finished(profiler: Any) -> None:
        profiler.export_chrome_trace(str(path))
        tables.append(profiler.key_averages())

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2),
        record_shapes=True,
        profile_memory=True,
        on_trace_ready=finished,
    ) as profiler:
        for _ in range(4):
            step()
            profiler.step()
    return tables[0]


def our_rows(trace: Trace) -> dict[str, tuple[int, float, float]]:
    """Name to count, self time and total time in microseconds."""
    rows = (
        trace.table("ops")
        .group_by("name")
        .agg(pl.len(), pl.col("self_us").sum(), pl.col("dur_us").sum())
    )
    return {name: (count, own, total) for name, count, own, total in rows.iter_rows()}


@pytest.mark.parametrize("workload", [train, attend])
def test_self_and_total_times(workload: Callable[[], Callable[[], None]], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    expected = record(workload(), path)
    trace = load_trace(path)
    found = our_rows(trace)
    compared = 0
    for row in expected:
        if row.is_user_annotation:
            continue
        count, own, total = found.pop(row.key)
        assert count == row.count, row.key
        assert own == pytest.approx(row.self_cpu_time_total, abs=TOLERANCE_US * count), row.key
        assert total == pytest.approx(row.cpu_time_total, abs=TOLERANCE_US * count), row.key
        compared += 1
    assert compared >= 15
    assert not found, "ops that torch's table does not have"


def test_annotations(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    expected = record(train(), path)
    regions = load_trace(path).table("regions")
    for row in expected:
        if not row.is_user_annotation:
            continue
        name = row.key.replace("ProfilerStep*", "ProfilerStep#")
        mine = regions.filter(pl.col("name").str.starts_with(name))
        assert mine.height == row.count, row.key
        total = mine["dur_us"].sum()
        assert total == pytest.approx(row.cpu_time_total, abs=TOLERANCE_US * row.count)


def test_phases_of_a_training_step(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    record(train(), path)
    ops = load_trace(path).table("ops")
    assert set(ops["phase"]) >= {"forward", "backward", "optimizer"}
    backward = ops.filter(pl.col("phase") == "backward")["op_chain"]
    assert backward.str.starts_with("autograd::engine::evaluate_function").all()
    optimizer = ops.filter(pl.col("phase") == "optimizer")["region"]
    assert optimizer.str.starts_with("Optimizer.").all()
