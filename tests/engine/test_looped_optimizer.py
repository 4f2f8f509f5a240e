"""TRAIN101 on what torch records of its own optimizers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from analyze.api import check


def recorded_step(folder: Path, optimizer_of: Any, **options: Any) -> Path:
    """Record one training step of a model with 12 parameters on a CPU."""
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
    optimizer = optimizer_of(model.parameters(), **options)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(4, 64)).sum().backward()
        optimizer.step()

    step()
    with torch.profiler.profile() as profiler:
        step()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    return folder / "trace.json"


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.Adagrad])
def test_an_optimizer_that_loops_is_found_and_its_fused_form_is_not(
    optimizer: Any, tmp_path: Path
) -> None:
    looped, fused = (
        check(
            recorded_step(tmp_path, optimizer, fused=fused),
            select=["TRAIN101"],
            params={"TRAIN101": {"min_share": 0}},
        )
        for fused in (False, True)
    )
    (found,) = looped.findings
    assert found.group == {"parent": f"Optimizer.step#{optimizer.__name__}.step"}
    assert found.measures["n"] >= 12 * 3
    assert not fused.findings
    assert [rule.code for rule in fused.passed] == ["TRAIN101"]
