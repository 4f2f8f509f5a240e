"""What ``annotate`` and ``trim`` write, read by another reader of PyTorch's traces.

Holistic Trace Analysis is installed into an environment of its own, with no more than its reader
imports. Where it cannot be fetched the test is skipped; with ``KINETOLINT_HTA=required``, which
``.ci/run`` sets, it fails instead.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import analyze
from tests.conftest import TRACES_VARIABLE, RunAnalyze
from tests.fetched import fetch

HTA = "HolisticTraceAnalysis==0.5.0"
WHAT_ITS_READER_IMPORTS = ("pandas>=2,<4", "psutil", "pyyaml")

READ = """
import json, logging, sys, warnings
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
from hta.common.trace import parse_trace_file
for path in sys.argv[1:]:
    _, events, symbols = parse_trace_file(path)
    names = symbols.get_sym_table()
    work = events[events["stream"] >= 0]
    rows = work[["name", "cat", "ts", "dur", "stream", "correlation"]].itertuples(index=False)
    print(json.dumps([[names[row[0]], names[row[1]], *map(float, row[2:])] for row in rows]))
"""

SAMPLE = "synthetic-sdpa-math.json.gz"
REAL = (("hta-ns", 103), ("tl-h100-bert", 6))
"""Traces, and a step of each."""


@dataclass(frozen=True)
class Work:
    """One thing that ran on a GPU, as HTA has it; its times are whole microseconds."""

    name: str
    category: str
    start_us: float
    dur_us: float
    stream: float
    correlation: float


@pytest.fixture
def hta(tmp_path: Path) -> Iterator[Path]:
    """The Python of an environment that holds HTA."""
    folder = tmp_path / "hta"
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    fetch(
        "HTA",
        "KINETOLINT_HTA",
        (sys.executable, "-m", "venv", folder),
        (*pip, "--retries", "1", "--no-deps", HTA),
        (*pip, "--retries", "1", *WHAT_ITS_READER_IMPORTS),
        folder=tmp_path,
    )
    yield python
    shutil.rmtree(folder)


def read(python: Path, *paths: Path) -> list[Counter[Work]]:
    """Read traces with HTA; return the GPU work in each."""
    done = subprocess.run(
        [python, "-c", READ, *paths], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [Counter(Work(*row) for row in json.loads(line)) for line in done.stdout.splitlines()]


def check_trimmed(cut: Counter[Work], whole: Counter[Work], path: Path, step: int) -> None:
    """Check that the GPU work in a part of a trace is what our tables say that its step launched.

    Times are compared from the first GPU work of the whole trace on, as HTA rounds them.
    """
    ours = analyze.load(path).gpu_ops
    first, launched = ours["start_us"].min(), ours.filter(step=step).sort("start_us")
    assert isinstance(first, float)
    assert cut <= whole
    assert Counter(work.name for work in cut.elements()) == Counter(launched["name"])
    their_first = min(work.start_us for work in whole)
    starts = sorted(work.start_us - their_first for work in cut.elements())
    for theirs, exact in zip(starts, launched["start_us"], strict=True):
        assert theirs == pytest.approx(exact - first, abs=1.001)


def test_hta_reads_the_same_kernels(
    hta: Path, samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    chosen = [(samples / SAMPLE, 3)]
    if real := os.environ.get(TRACES_VARIABLE):
        chosen += [(next((Path(real) / name).glob("*.json*")), step) for name, step in REAL]
    for number, (path, step) in enumerate(chosen):
        drawn, cut = (tmp_path / f"{number}.{what}.json.gz" for what in ("drawn", "cut"))
        assert run_analyze("annotate", path, "-o", drawn).returncode == 0
        assert run_analyze("trim", path, "--steps", str(step), "-o", cut).returncode == 0
        whole, annotated, trimmed = read(hta, path, drawn, cut)
        assert whole
        assert annotated == whole
        check_trimmed(trimmed, whole, path, step)
