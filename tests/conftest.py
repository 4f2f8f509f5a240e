"""Shared fixtures: the samples, the real traces where they are at hand, the installed command."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from analyze.tables.build import Trace, load_trace

ROOT = Path(__file__).parents[1]
TRACES_VARIABLE = "KINETOLINT_TRACES"

# How long an example takes depends on the machine; tests are never timed.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# Tests read traces themselves, and leave nothing in the user's cache folder.
os.environ["ANALYZE_CACHE"] = "off"

# What is printed depends on who prints: tests that are about a terminal or CI say so themselves.
for variable in (
    *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"),
    *("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "POLARS_MAX_THREADS"),
):
    os.environ.pop(variable, None)


def copied_to_a_deep_folder(path: Path, folder: Path) -> Path:
    """Return a copy whose path is longer than any terminal or page of these tests is wide."""
    copy = folder / ("deep" * 50) / path.name
    copy.parent.mkdir()
    shutil.copyfile(path, copy)
    return copy


RunAnalyze = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of the shipped sample traces."""
    return ROOT / "sample_traces"


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The folder of real traces; tests that need it are skipped where it is not named."""
    folder = os.environ.get(TRACES_VARIABLE)
    if not folder:
        pytest.skip(f"{TRACES_VARIABLE} is not set: no real traces to test against")
    path = Path(folder)
    if not (path / "MANIFEST.tsv").is_file():
        pytest.fail(f"{TRACES_VARIABLE} is set to {folder}, which holds no MANIFEST.tsv")
    return path


@pytest.fixture(scope="session")
def run_analyze() -> RunAnalyze:
    """Run the installed ``analyze`` as a user does; returns the completed process."""

    def run(
        *arguments: str | Path, stdin: bytes | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "analyze"), *map(str, arguments)]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=300,
            env={**os.environ, **environment},
        )
        return subprocess.CompletedProcess(
            command, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def hangups_are_heard() -> Iterator[None]:
    """Programs that a test starts end at SIGHUP, even where the tests themselves ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


MakeTrace = Callable[..., Trace]


@pytest.fixture
def make_trace(tmp_path: Path) -> MakeTrace:
    """Build a trace from Chrome events, through the whole reader."""

    def make(events: list[dict[str, Any]], forward: str | None = None, **metadata: Any) -> Trace:
        path = tmp_path / "made.json"
        path.write_text(json.dumps({"schemaVersion": 1, **metadata, "traceEvents": events}))
        return load_trace(path, forward=forward)

    return make
