"""The workflow that the README shows: valid, and its commands pass and fail where they should."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```yaml\n(# \.github/workflows/\S+\n.*?)```", README, flags=re.DOTALL)


def read(block: str) -> dict[str, Any]:
    """Read a YAML document."""
    document: dict[str, Any] = YAML(typ="safe").load(block)
    return document


def steps() -> list[dict[str, Any]]:
    """The steps of the one job of the workflow."""
    (block,) = BLOCKS
    (job,) = read(block)["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def commands() -> list[str]:
    """What the workflow runs with ``analyze``."""
    written = [step["run"] for step in steps() if "run" in step]
    return [command for command in written if command.startswith("analyze ")]


@pytest.fixture
def checkout(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout as the workflow finds it: a known-good trace, and what was accepted of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new").mkdir()
    shutil.copy(samples / "synthetic-sdpa-flash.json.gz", tmp_path / "good.json.gz")
    assert run("analyze guess good.json.gz --accept -o good.yaml", tmp_path).returncode == 0
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a step of GitHub Actions does, in ``bash -e``."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    summary = str(folder / "step_summary")
    environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": summary}
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_is_a_workflow_for_pull_requests() -> None:
    (block,) = BLOCKS
    workflow = read(block)
    assert "pull_request" in workflow["on"]
    assert workflow["permissions"]["security-events"] == "write"
    for step in steps():
        assert ("uses" in step) != ("run" in step)
    recorded = [step["run"] for step in steps() if step.get("run", "").startswith("capture ")]
    assert len(recorded) == 1


def test_the_same_forward_passes(checkout: Path) -> None:
    shutil.copy(checkout / "good.json.gz", checkout / "new/attention.json.gz")
    assert len(commands()) >= 2
    for command in commands():
        done = run(command, checkout)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert "nothing found" in (checkout / "step_summary").read_text()
    assert (checkout / "findings.sarif").is_file()


def test_a_forward_with_more_kernels_fails(checkout: Path, samples: Path) -> None:
    shutil.copy(samples / "synthetic-sdpa-math.json.gz", checkout / "new/attention.json.gz")
    for command in commands():
        done = run(command, checkout)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
    assert "ATTN101" in (checkout / "step_summary").read_text()
