"""``analyze baseline`` and ``analyze --baseline``, as a user runs them."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from analyze.cli.baseline import create
from analyze.engine.rule import Rule
from tests.conftest import RunAnalyze, copied_to_a_deep_folder


@pytest.fixture
def naive(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace with two findings in a folder of its own, the current one."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(samples / "synthetic-naive.json.gz", tmp_path / "first.json.gz"))


def known(run_analyze: RunAnalyze, *traces: Path, options: tuple[str, ...] = ()) -> dict[str, Any]:
    done = run_analyze("baseline", "create", *traces, *options)
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(Path("baseline.json").read_text())
    return loaded


def test_known_findings_are_no_news(naive: Path, run_analyze: RunAnalyze) -> None:
    assert run_analyze(naive).returncode == 1
    made = known(run_analyze, naive, options=("--reason", "until the rewrite"))
    assert [entry["code"] for entry in made["findings"]] == ["ATTN103", "COPY101"]
    elsewhere = naive.rename("another-name.json.gz")
    done = run_analyze(elsewhere, "--baseline", "baseline.json", "--fail-on", "info")
    assert done.returncode == 0
    assert "2 known findings (baseline baseline.json): COPY101, ATTN103" in done.stdout
    assert "hidden-memcpy" not in done.stdout
    assert "0 findings, 2 known" in done.stdout
    everything = run_analyze(elsewhere, "--baseline", "baseline.json", "--verbose").stdout
    assert "hidden-memcpy" in everything
    assert "known; accepted because: until the rewrite" in everything


def test_new_findings_are_news(naive: Path, samples: Path, run_analyze: RunAnalyze) -> None:
    known(run_analyze, naive)
    other = samples / "synthetic-sdpa-math.json.gz"
    done = run_analyze(other, "--baseline", "baseline.json", "--format", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["baseline"] == "baseline.json"
    assert {finding["baseline"] for finding in report["findings"]} == {"new"}
    assert [gone["code"] for gone in report["vanished"]] == ["ATTN103", "COPY101"]


def test_what_got_worse_is_news(naive: Path, run_analyze: RunAnalyze) -> None:
    made = known(run_analyze, naive)
    made["findings"][1]["savings_us"] /= 2
    Path("baseline.json").write_text(json.dumps(made))
    done = run_analyze(naive, "--baseline", "baseline.json")
    assert done.returncode == 1
    assert "worse than known: saves 182 us -> 365 us (+100 %)" in done.stdout
    tolerant = run_analyze(naive, "--baseline", "baseline.json", "--baseline-tolerance", "150")
    assert tolerant.returncode == 0


def test_what_is_gone_is_said_and_removed_by_update(
    naive: Path, samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    known(run_analyze, naive, options=("--reason", "why not"))
    repaired = copied_to_a_deep_folder(samples / "synthetic-naive-inplace.json.gz", tmp_path)
    done = run_analyze(repaired, "--baseline", "baseline.json")
    assert done.returncode == 0
    assert "COPY101 hidden-memcpy is no longer found" in " ".join(done.stdout.split())
    (command,) = re.findall(r"^  remove +analyze (.+)$", done.stdout, re.MULTILINE)
    updated = run_analyze(*shlex.split(command))
    assert updated.returncode == 0
    assert updated.stdout.startswith(f"Checked {repaired}\n")
    assert "removed, no longer found: COPY101 hidden-memcpy" in updated.stdout
    assert "1 of the removed was known in any trace" in updated.stdout
    entries = json.loads(Path("baseline.json").read_text())["findings"]
    assert [(entry["code"], entry["reason"]) for entry in entries] == [("ATTN103", "why not")]
    assert run_analyze(naive, "--baseline", "baseline.json").returncode == 1  # the copy is back
    refused = run_analyze("baseline", "update", naive)
    assert "not accepted, new or worse: COPY101" in refused.stdout
    assert run_analyze("baseline", "update", naive, "--accept").returncode == 0
    assert run_analyze(naive, "--baseline", "baseline.json").returncode == 0


def test_another_selection_or_a_cut_off_trace_removes_nothing(
    naive: Path, samples: Path, run_analyze: RunAnalyze
) -> None:
    before = known(run_analyze, naive)
    run_analyze("baseline", "update", naive, "--select", "OCC")
    cpu = samples / "cpu-sdpa-flash.json.gz"
    run_analyze("baseline", "update", cpu, "--ignore", "ATTN")
    assert json.loads(Path("baseline.json").read_text()) == before
    done = run_analyze(naive, "--baseline", "baseline.json", "--select", "OCC")
    assert "no longer found" not in done.stdout


def test_a_project_names_its_baseline(naive: Path, run_analyze: RunAnalyze) -> None:
    Path("pyproject.toml").write_text('[tool.kinetolint]\nbaseline = "known.json"\n')
    missing = run_analyze(naive)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("analyze: known.json: no such baseline")
    assert run_analyze("baseline", "create", naive).returncode == 0
    assert run_analyze(naive).returncode == 0
    assert run_analyze(naive, "--isolated").returncode == 1
    shown = run_analyze("baseline", "show")
    assert shown.stdout.startswith("known.json: 2 known findings\n")
    assert json.loads(run_analyze("baseline", "show", "--format", "json").stdout) == json.loads(
        Path("known.json").read_text()
    )


def test_nothing_is_written_where_a_trace_cannot_be_checked(
    naive: Path, run_analyze: RunAnalyze
) -> None:
    Path("broken.json").write_text("{")
    done = run_analyze("baseline", "create", naive, "broken.json")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("analyze: baseline.json: not written")
    assert not Path("baseline.json").exists()
    before = known(run_analyze, naive)
    again = run_analyze("baseline", "create", naive)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert run_analyze("baseline", "update", "broken.json").returncode == 3
    assert json.loads(Path("baseline.json").read_text()) == before


@pytest.mark.parametrize("content", ["", "{}", '{"version": 1, "findings": 3}', "[1"])
def test_a_broken_baseline_is_one_line(content: str, naive: Path, run_analyze: RunAnalyze) -> None:
    Path("baseline.json").write_text(content)
    for command in ([naive, "--baseline", "baseline.json"], ["baseline", "show"]):
        done = run_analyze(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("analyze: baseline.json: ")


@pytest.mark.parametrize("name", ["tl-h100-bert", "hta-ns", "gen-cpu-train"])
def test_real_traces_know_their_own_findings(
    name: str, real_traces: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    folder, file = real_traces / name, tmp_path / "known.json"
    assert run_analyze("baseline", "create", folder, "-o", file).returncode == 0
    text = file.read_text()
    run = run_analyze(folder, "--baseline", file, "--format", "json", "--fail-on", "info")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    states = [
        f["baseline"] for f in report["findings"] if f["state"] in ("mismatch", "intermittent")
    ]
    assert states
    assert set(states) == {"known"}
    assert report["vanished"] == []
    assert run_analyze("baseline", "update", folder, "-o", file).returncode == 0
    assert file.read_text() == text


def test_show_interprets_nothing(naive: Path, run_analyze: RunAnalyze) -> None:
    made = known(run_analyze, naive)
    hostile = "[bold]x[/bold] \x1b[2J \u202e <b> :smile: " + "n" * 5000
    made["findings"][0] |= {"message": hostile, "reason": hostile, "scope": hostile, "per": "\x1b"}
    Path("baseline.json").write_text(json.dumps(made))
    shown = run_analyze("baseline", "show").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]x[/bold] \\x1b[2J" in shown
    assert len(shown) < 10_000


def test_show_counts_where_findings_are_known(naive: Path, run_analyze: RunAnalyze) -> None:
    shutil.copy(naive, "second.json.gz")
    known(run_analyze, naive, Path("second.json.gz"), options=("--by-trace",))
    shown = run_analyze("baseline", "show").stdout
    assert shown.startswith("baseline.json: 4 known findings in 2 captures or traces\n")
    Path("baseline.json").unlink()
    known(run_analyze, naive, options=("--by-trace",))
    assert "2 known findings in 1 capture or trace\n" in run_analyze("baseline", "show").stdout


def test_an_output_that_cannot_be_written_is_one_line(naive: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("baseline", "create", naive, "-o", "missing/baseline.json")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_stored_result_is_compared_as_a_trace_is(naive: Path, run_analyze: RunAnalyze) -> None:
    known(run_analyze, naive)
    run_analyze(naive, "--format", "json", "-o", "result.json")
    assert run_analyze("--from", "result.json").returncode == 1
    done = run_analyze("--from", "result.json", "--baseline", "baseline.json")
    assert done.returncode == 0
    assert "2 known findings (baseline baseline.json)" in done.stdout


def test_every_format_says_what_is_known_or_gone(
    naive: Path, samples: Path, run_analyze: RunAnalyze
) -> None:
    known(run_analyze, naive)
    repaired = samples / "synthetic-naive-inplace.json.gz"
    done = run_analyze(
        repaired,
        "--baseline",
        "baseline.json",
        "--also",
        "report.sarif",
        "--also",
        "report.md",
        "--also",
        "report.html",
    )
    assert done.returncode == 0
    (run,) = json.loads(Path("report.sarif").read_text())["runs"]
    states = {result["ruleId"]: result["baselineState"] for result in run["results"]}
    assert states["ATTN103"] == "unchanged"
    said = run["invocations"][0]["toolExecutionNotifications"]
    assert "no-longer-found" in [note["descriptor"]["id"] for note in said]
    for file in ("report.md", "report.html"):
        assert "is no longer found" in Path(file).read_text(), file


def test_a_project_says_how_much_worse_is_worse(naive: Path, run_analyze: RunAnalyze) -> None:
    assert run_analyze("baseline", "create", naive, "-o", "known.json").returncode == 0
    known = json.loads(Path("known.json").read_text())
    for entry in known["findings"]:
        entry["savings_us"] = entry["savings_us"] and entry["savings_us"] / 1.3
    Path("known.json").write_text(json.dumps(known))
    config = '[tool.kinetolint]\nbaseline = "known.json"\n'
    Path("pyproject.toml").write_text(config)
    assert run_analyze(naive).returncode == 1  # 30 % is more than the 20 % that may be
    Path("pyproject.toml").write_text(f"{config}baseline-tolerance = 50\n")
    assert run_analyze(naive).returncode == 0
    assert run_analyze(naive, "--baseline-tolerance", "20").returncode == 1
    Path("pyproject.toml").write_text(f"{config}baseline-tolerance = -1\n")
    refused = run_analyze(naive)
    assert refused.returncode == 2
    assert "baseline-tolerance" in refused.stderr


def test_create_says_that_findings_are_known_in_any_trace(
    naive: Path, run_analyze: RunAnalyze
) -> None:
    anywhere = run_analyze("baseline", "create", naive, "-o", "any.json")
    assert "2 of them are known in any trace" in anywhere.stdout
    by_name = run_analyze("baseline", "create", naive, "--by-trace", "-o", "named.json")
    assert "any trace" not in by_name.stdout


def test_a_tolerance_is_a_number(naive: Path, run_analyze: RunAnalyze) -> None:
    """Nothing is ever worse by more than ``nan``."""
    known(run_analyze, naive)
    for command in ([naive, "--baseline", "baseline.json"], ["baseline", "update", naive]):
        done = run_analyze(*command, "--baseline-tolerance", "nan")
        assert (done.returncode, done.stdout) == (2, "")
        assert "nan is no number" in done.stderr
    Path("pyproject.toml").write_text("[tool.kinetolint]\nbaseline-tolerance = nan\n")
    refused = run_analyze(naive)
    assert refused.returncode == 2
    assert "baseline-tolerance" in refused.stderr


def created(monkeypatch: pytest.MonkeyPatch, trace: Path, *failing: str) -> Result:
    """Run ``analyze baseline create`` with rules that fail; none named are all."""
    compile_rule = Rule.compile

    def fail(rule: Rule, facts: Any = None) -> Any:
        if not failing or rule.code in failing:
            raise ZeroDivisionError("boom")
        return compile_rule(rule, facts)

    monkeypatch.setattr(Rule, "compile", fail)
    return CliRunner().invoke(create, [str(trace), "--isolated"])


def test_where_every_rule_failed_nothing_is_known(
    naive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = created(monkeypatch, naive)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "every rule failed" in done.stderr
    assert not Path("baseline.json").exists()


def test_rules_that_failed_are_named(naive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = created(monkeypatch, naive, "COPY101")
    assert done.exit_code == 0
    assert "COPY101 hidden-memcpy failed, so baseline.json does not hold" in done.stderr
    assert done.stderr.count("\n") == 1
    entries = json.loads(Path("baseline.json").read_text())["findings"]
    assert [entry["code"] for entry in entries] == ["ATTN103"]


def test_a_second_of_two_like_findings_is_new(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    """Template arguments do not count, yet two findings are not one."""

    def trace(name: str, *ops: str) -> Path:
        events = [
            event
            for at, op in enumerate(ops)
            for event in (
                {"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": 1000 * at,
                 "dur": 900},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 1,
                 "tid": 1, "ts": 1000 * at + 5, "dur": 800},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1,
                 "tid": 1, "ts": 1000 * at + 1, "dur": 2, "args": {"correlation": at + 1}},
                {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
                 "ts": 1000 * at + 10, "dur": 700,
                 "args": {"device": 0, "stream": 7, "correlation": at + 1}},
            )
        ]  # fmt: skip
        path = tmp_path / name
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return path

    one, two = trace("one.json", "Node<A>"), trace("two.json", "Node<A>", "Node<B>")
    rules = tmp_path / "rule.yaml"
    rules.write_text(
        "version: 1\ncode: MINE101\nname: syncs\ntitle: t\nguess: g\nfrom: syncs\n"
        "group_by: [op_chain]\nmeasure: {n: count()}\nexpect: n == 0\nmessage: m\n"
    )
    options = ("--isolated", "--rules", rules, "--select", "MINE101")
    file = tmp_path / "known.json"
    assert run_analyze("baseline", "create", one, "-o", file, *options).returncode == 0
    done = run_analyze(two, *options, "--baseline", file, "--format", "json")
    states = {f["group"]["op_chain"]: f["baseline"] for f in json.loads(done.stdout)["findings"]}
    assert states == {"Node<A>": "known", "Node<B>": "new"}
