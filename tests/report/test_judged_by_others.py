"""SARIF and annotations, judged by the programs of those who read them.

Microsoft's SARIF Multitool has the rules by which GitHub takes SARIF in; GitHub's own toolkit for
actions writes annotations. Both are npm packages. Where they cannot be fetched the tests are
skipped; with ``KINETOLINT_NPM=required`` they fail instead.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analyze.report.formats import Rendering
from analyze.report.github import write_github
from analyze.report.sarif import write_sarif
from tests.fetched import fetch
from tests.report.code_scanning import problems
from tests.report.report_factory import HOSTILE, finding, hostile_report, report_of, sample_report
from tests.report.runner_log import commands
from tests.report.sample_reports import reports_of

MULTITOOL = "@microsoft/sarif-multitool-linux@5.7.0"
TOOLKIT = "@actions/core@1.11.1"
IMPATIENT = ("--fetch-retries=1", "--fetch-retry-maxtimeout=2000", "--fetch-timeout=60000")

ACCEPTED = {
    "SARIF2005",  # the tool has no address that could be given
    "SARIF1001",  # code and name of a rule are the same text, in the odd logs alone
    "SARIF2004",  # and so are source and trace
}

NOT_BLANK = tuple(filter(str.strip, HOSTILE))
"""A rule always has a code and a name; a blank one is refused before."""

CUT_SHORT = {**sample_report().quality, "truncated": True}

WRITE_COMMANDS = """
const { issueCommand } = require(process.argv[1]);
const commands = JSON.parse(require("fs").readFileSync(0, "utf8"));
for (const [name, properties, message] of commands) issueCommand(name, properties, message);
"""


def install(package: str, folder: Path) -> Path:
    """Install an npm package and nothing that it would run; return its folder."""
    quiet = ("--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save")
    fetch(package, "KINETOLINT_NPM", ("npm", "install", *quiet, *IMPATIENT, package), folder=folder)
    return folder / "node_modules" / package.rpartition("@")[0]


@pytest.fixture
def multitool(tmp_path: Path) -> Iterator[Path]:
    """The Multitool: a program of 90 MB, which is not left behind."""
    if sys.platform != "linux":
        pytest.skip("the package that is fetched is that for Linux")
    program = install(MULTITOOL, tmp_path) / "Sarif.Multitool"
    program.chmod(0o755)
    yield program
    shutil.rmtree(tmp_path / "node_modules")


def logs(samples: Path) -> Iterator[str]:
    """SARIF of every sample, of what is odd, and of sources in and outside of a repository."""
    yield write_sarif(reports_of(samples), Rendering())
    for text in NOT_BLANK:
        yield write_sarif([hostile_report(text)], Rendering())
    yield write_sarif([report_of(finding(title=" ", guess="", message=" "))], Rendering())
    sources = ("model.py:12", "/opt/pkg/model.py:3", "C:\\pkg\\model.py:3", "model.py(3): forward")
    found = [finding(number=n, source=source) for n, source in enumerate(sources)]
    yield write_sarif([report_of(*found)], Rendering())
    known = finding(baseline="known", baseline_reason="until the next release")
    yield write_sarif([report_of(known, baseline="known.json")], Rendering())
    yield write_sarif([report_of(finding(state="informative", severity="info"))], Rendering())
    yield write_sarif([report_of()], Rendering())


def test_code_scanning_takes_every_log(samples: Path) -> None:
    for text in logs(samples):
        assert problems(text) == []


def test_the_multitool_finds_nothing_in_any_log(
    multitool: Path, samples: Path, tmp_path: Path
) -> None:
    for number, text in enumerate(logs(samples)):
        (tmp_path / f"{number}.sarif").write_text(text)
    written, report = sorted(tmp_path.glob("*.sarif")), tmp_path / "validation.json"
    done = subprocess.run(
        [multitool, "validate", *written, "--rule-kind", "Sarif;Ghas", "--output", report],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "HOME": str(tmp_path)},
    )
    assert f"Done. {len(written)} files scanned." in done.stdout, done.stdout + done.stderr
    [run] = json.loads(report.read_text())["runs"]
    found = [result for result in run["results"] if result["ruleId"] not in ACCEPTED]
    assert [(result["ruleId"], result["message"]["arguments"]) for result in found] == []
    assert run["results"], "it runs its rules: that no address is given is always found"


def test_the_toolkit_writes_the_same_annotations(tmp_path: Path) -> None:
    toolkit = install(TOOLKIT, tmp_path)
    reports = [sample_report(), sample_report("synthetic-sdpa-math")]
    reports += [replace(hostile_report(text), quality=CUT_SHORT) for text in NOT_BLANK]
    for report in reports:
        log = write_github([report], Rendering())
        ours = [line for line in log.splitlines() if line.startswith("::")]
        read = commands(log)
        assert len(read) == len(ours) > 0
        done = subprocess.run(
            ["node", "-e", WRITE_COMMANDS, toolkit / "lib" / "command.js"],
            input=json.dumps(read).encode(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.decode().splitlines() == ours
