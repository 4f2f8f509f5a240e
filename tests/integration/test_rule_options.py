"""Which rules run: ``--rules``, ``--select``, ``--ignore``, ``--set`` and ``[tool.kinetolint]``."""

from pathlib import Path

import orjson
import pytest

from tests.conftest import RunAnalyze

RULE = """\
version: 1
code: MINE101
name: any-kernel
title: A kernel
guess: No kernel runs.
from: kernels
params: {limit: 0}
measure: {n: count()}
expect: n <= params.limit
severity: error
message: "kernels: {n:int}"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a rule of its own, as the current folder."""
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf/any-kernel.yaml").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trace(samples: Path) -> Path:
    return samples / "synthetic-naive.json.gz"


def configure(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.kinetolint]\n{text}\n")


def test_the_projects_rules_and_thresholds_hold(
    project: Path, trace: Path, run_analyze: RunAnalyze
) -> None:
    configure(project, "rules = ['perf']\nselect = ['MINE']")
    done = run_analyze(trace)
    assert done.returncode == 1
    assert "MINE101 any-kernel" in done.stdout
    assert "COPY101" not in done.stdout
    configure(project, "rules = ['perf']\nselect = ['MINE']\nparams.MINE101 = {limit = 9}")
    assert run_analyze(trace).returncode == 0
    # The command line comes last.
    assert run_analyze(trace, "--set", "MINE101.limit=1").returncode == 1
    done = run_analyze(trace, "--isolated")
    assert "MINE101" not in done.stdout
    assert "COPY101" in done.stdout


def test_an_ignored_finding_is_counted_with_its_reason(
    project: Path, trace: Path, run_analyze: RunAnalyze
) -> None:
    configure(project, "ignore = [{code = 'COPY101', reason = 'the copy is wanted'}]")
    done = run_analyze(trace)
    assert "COPY101 hidden-memcpy (1): the copy is wanted" in done.stdout
    assert done.stdout.rstrip().endswith("1 ignored")
    assert done.stderr == ""
    (report,) = [orjson.loads(run_analyze(trace, "--format", "json").stdout)]
    assert report["ignored"] == [
        {
            "code": "COPY101",
            "name": "hidden-memcpy",
            "reason": "the copy is wanted",
            "findings": 1,
            "category": "copies",
        }
    ]
    assert "COPY101" not in {finding["code"] for finding in report["findings"]}


def test_an_ignore_that_matches_nothing_is_reported(
    project: Path, trace: Path, run_analyze: RunAnalyze
) -> None:
    configure(project, "ignore = [{code = 'ATTN101', reason = 'we use math'}]")
    done = run_analyze(trace)
    assert "the ignore of 'ATTN101' (we use math) matches no finding any more" in done.stderr
    assert str(project / "pyproject.toml") in done.stderr


def test_select_and_ignore(project: Path, trace: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(trace, "--select", "OCC,copies", "--ignore", "OCC101")
    assert "COPY101" in done.stdout
    assert "OCC102" in done.stdout
    configure(project, "select = ['OCC']")
    assert "COPY101" not in run_analyze(trace).stdout
    assert "COPY101" in run_analyze(trace, "--extend-select", "COPY").stdout
    assert "OCC102" not in run_analyze(trace, "--select", "COPY").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "COPPY"], "'COPPY' selects no rule; did you mean 'COPY10"),
        (["--ignore", "all", "--select", "all"], "no rule is left to run"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--set", "COPY109.min_bytes=1"], "did you mean 'COPY10"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_wrong_choice_is_one_line(
    trace: Path, run_analyze: RunAnalyze, arguments: list[str], message: str
) -> None:
    done = run_analyze(trace, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_wrong_configuration_is_one_line(
    project: Path, trace: Path, run_analyze: RunAnalyze
) -> None:
    configure(project, "ignore = [{code = 'COPY101'}]")
    done = run_analyze(trace)
    assert done.returncode == 2
    assert "ignore[0]: missing key 'reason'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_rules_check_shows_all_problems_at_once(project: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("rules", "check", "perf")
    assert (done.returncode, done.stdout) == (0, "1 rule checked, no problems\n")
    wrong = RULE.replace("guess:", "gues:").replace("count()", "cont()").replace("n <=", "m <=")
    (project / "perf/any-kernel.yaml").write_text(wrong)
    done = run_analyze("rules", "check", "perf")
    assert done.returncode == 4
    for message in ("unknown key 'gues'", "unknown function 'cont'", "unknown name 'm'"):
        assert message in done.stderr
    assert done.stderr.rstrip().endswith("3 problems in 1 file")


def test_a_broken_rule_leaves_the_results_of_the_others(
    project: Path, trace: Path, run_analyze: RunAnalyze
) -> None:
    """One that is no rule, one that is invalid, and one that needs what the trace lacks."""
    (project / "perf/no-rule.yaml").write_text("a: [")
    wrong = RULE.replace("MINE101", "MINE103").replace("any-kernel", "invalid")
    (project / "perf/invalid.yaml").write_text(wrong.replace("count()", "cont()"))
    text = RULE.replace("code: MINE101", "code: MINE102").replace("any-kernel", "by-line")
    stacks = text.replace("from: kernels", "from: kernels\nwhere: {source: {contains: model}}")
    (project / "perf/by-line.yaml").write_text(stacks)
    alone = orjson.loads(run_analyze(trace, "--format", "json").stdout)
    done = run_analyze(trace, "--rules", "perf", "--format", "json")
    assert done.returncode == 4
    assert "no-rule.yaml" in done.stderr
    assert "unknown function 'cont'" in done.stderr
    report = orjson.loads(done.stdout)
    others = [finding for finding in report["findings"] if finding["code"] != "MINE101"]
    assert others == alone["findings"]
    assert "MINE102" in {rule["code"] for rule in report["not_applicable"]}
