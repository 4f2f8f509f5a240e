"""The reports of the samples in each format that people read, word for word.

After a wanted change, rewrite them with ``UPDATE_GOLDEN=1 pytest tests/report/test_golden_text.py``
and read the difference.
"""

import os
import re
from pathlib import Path

import pytest

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.report.formats import Rendering, render
from analyze.report.summary import summarise
from analyze.report.summary_text import render_summary
from analyze.report.text import render_report
from analyze.tables.build import load_trace
from tests.conftest import MakeTrace
from tests.tables.test_attribution import kernel, repeated_steps

GOLDEN = Path(__file__).parent / "golden"
NAMES = (
    "cpu-sdpa-math",
    "synthetic-naive",
    "synthetic-naive-inplace",
    "synthetic-sdpa-cudnn",
    "synthetic-sdpa-efficient",
    "synthetic-sdpa-flash",
    "synthetic-sdpa-math",
)


def compare(text: str, name: str, samples: Path) -> None:
    # A command quotes a path that a shell would take apart.
    text = re.sub(rf"'{re.escape(str(samples))}/([^']+)'", r"\1", text)
    text = text.replace(f"{samples}/", "")
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
@pytest.mark.parametrize("name", NAMES)
def test_reports(name: str, verbose: bool, samples: Path) -> None:
    _, report = load_and_check(str(samples / f"{name}.json.gz"), None, load_rules(tests=False))
    kind = "verbose" if verbose else "report"
    compare(render_report(report, verbose=verbose), f"{name}.{kind}", samples)


@pytest.mark.parametrize("format_name", ["concise", "github", "markdown"])
@pytest.mark.parametrize("name", ["synthetic-naive", "synthetic-sdpa-math", "cpu-sdpa-math"])
def test_other_formats(name: str, format_name: str, samples: Path) -> None:
    _, report = load_and_check(str(samples / f"{name}.json.gz"), None, load_rules(tests=False))
    compare(render(format_name, [report], Rendering()), f"{name}.{format_name}", samples)


@pytest.mark.parametrize("name", NAMES)
def test_summaries(name: str, samples: Path) -> None:
    summary = summarise(load_trace(samples / f"{name}.json.gz"))
    compare(render_summary(summary), f"{name}.summary", samples)


def test_families_share_all_gpu_time(make_trace: MakeTrace) -> None:
    """Copies among them, which can take longer than all kernels."""
    copy = {**kernel(None, 100, 30, "Memcpy HtoD"), "cat": "gpu_memcpy"}
    lines = render_summary(summarise(make_trace([kernel(None, 0, 10), copy]))).splitlines()
    first = lines.index("GPU time by family") + 2
    assert [line.split() for line in lines[first : first + 2]] == [
        ["memcpy", "1", "30", "us", "75", "%"],
        ["unknown", "1", "10", "us", "25", "%"],
    ]


@pytest.mark.parametrize("second_pid", [9, 10], ids=["recorded twice", "two processes"])
def test_steps_of_several_processes_say_whose_they_are(
    make_trace: MakeTrace, second_pid: int
) -> None:
    text = render_summary(summarise(make_trace(repeated_steps(second_pid))))
    of_both = ("#3 (first) of process 9", "#4 of process 10")
    assert [words in text for words in of_both] == [second_pid != 9] * 2
    assert text.count("#3 (first)") == 2
    assert "4 ProfilerSteps" in text
