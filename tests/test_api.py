"""``import analyze``: what notebooks and tests use."""

import dataclasses
import gzip
import json
import math
import os
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mypy import api as mypy

import analyze
from analyze.errors import AnalyzeError
from analyze.report import html_repr
from analyze.tables.catalogue import TABLES
from tests.conftest import ROOT, RunAnalyze

README = (Path(__file__).parents[1] / "README.md").read_text()
(RECIPE,) = re.findall(r"```python\n(# test_forward\.py\n.*?)```", README, flags=re.DOTALL)

SOFTMAX_RULE = """\
version: 1
code: MINE101
name: unfused-softmax
title: A softmax kernel of its own
guess: Attention is fused, so no softmax kernel runs by itself.
from: kernels
where: {family: softmax}
measure: {n: count()}
expect: n == 0
message: "{n:int} softmax kernels per {unit}"
"""


@pytest.fixture(scope="module")
def naive() -> analyze.Trace:
    return analyze.load(ROOT / "sample_traces" / "synthetic-naive.json.gz")


@pytest.fixture(scope="module")
def flash() -> analyze.Trace:
    return analyze.load(ROOT / "sample_traces" / "synthetic-sdpa-flash.json.gz")


def test_every_public_name_is_there() -> None:
    for name in analyze.__all__:
        assert getattr(analyze, name).__name__ == name
        assert name in dir(analyze)
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        _ = analyze.lod  # type: ignore[attr-defined]


def test_importing_it_is_light() -> None:
    code = (
        "import sys, analyze; dir(analyze)\n"
        "heavy = ('polars', 'pydantic', 'orjson', 'click', 'ruamel.yaml', 'torch')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "from analyze import load, check\n"
        "from analyze.cli import analyze as command\n"
        "print(callable(load), callable(check), 'check' in command.names)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\nTrue True True\n"


def test_each_table_is_an_attribute(naive: analyze.Trace) -> None:
    assert naive.tables == tuple(TABLES)
    for name, table in TABLES.items():
        frame = getattr(naive, name)
        assert isinstance(frame, pl.DataFrame)
        assert frame.columns == [column.name for column in table.columns]
        assert frame is naive.table(name)


def test_what_a_trace_says(naive: analyze.Trace, run_analyze: RunAnalyze) -> None:
    assert naive.kernels.filter(pl.col("forward") == 0).height == naive.forwards["kernels"][0] == 5
    assert naive.forward_is == "attn_fwd"
    assert naive.name.endswith("synthetic-naive.json.gz")
    assert re.fullmatch(
        r"<Trace .+synthetic-naive.json.gz: 117 ops, 18 GPU ops, forward is 'attn_fwd'>",
        repr(naive),
    )
    printed = json.loads(run_analyze("summary", naive.name, "--format", "json").stdout)
    assert json.loads(json.dumps(naive.summary())) == printed
    assert (naive.coverage, naive.quality) == (printed["coverage"], printed["quality"])


def test_the_forward_can_be_named() -> None:
    path = ROOT / "sample_traces" / "synthetic-naive.json.gz"
    assert analyze.load(path, "ProfilerStep#2").forward_is == "ProfilerStep#2"
    with pytest.raises(analyze.AnalyzeError, match="none"):
        analyze.load(path, forward="none")


@pytest.mark.parametrize(
    "name", ["synthetic-naive", "synthetic-sdpa-math", "cpu-sdpa-math", "synthetic-sdpa-flash"]
)
def test_a_report_is_that_of_the_command(name: str, samples: Path, run_analyze: RunAnalyze) -> None:
    path = str(samples / f"{name}.json.gz")
    report = analyze.check(path)
    printed = run_analyze("check", path, "--isolated", "--format", "json")
    assert json.loads(json.dumps(report.to_dict())) == json.loads(printed.stdout)
    text = run_analyze("check", path, "--isolated")
    assert str(report) == text.stdout
    assert report.to_text(verbose=True) != text.stdout


def codes(report: analyze.Report) -> list[str]:
    return sorted({finding.code for finding in report.findings})


def test_choosing_rules(naive: analyze.Trace) -> None:
    assert codes(analyze.check(naive, select="COPY")) == ["COPY101"]
    assert codes(analyze.check(naive, select=["COPY", "ATTN"])) == ["ATTN103", "COPY101"]
    assert "COPY101" not in codes(analyze.check(naive, ignore="COPY"))
    with pytest.raises(analyze.AnalyzeError, match="'COPI' selects no rule"):
        analyze.check(naive, select="COPI")


def test_own_rules_and_thresholds(naive: analyze.Trace, tmp_path: Path) -> None:
    file = tmp_path / "softmax.yaml"
    file.write_text(SOFTMAX_RULE)
    assert codes(analyze.check(naive, rules=file, builtin=False)) == ["MINE101"]
    assert "MINE101" in codes(analyze.check(naive, rules=[file], select=("MINE", "COPY")))
    (rule,) = analyze.load_rules([file], builtin=False)
    assert isinstance(rule, analyze.Rule)
    assert codes(analyze.check(naive, rules=rule, builtin=False)) == ["MINE101"]
    changed = {"COPY101": {"min_bytes": "GiB(1)", "min_share": "pct(99)"}}
    assert codes(analyze.check(naive, select="COPY", params=changed)) == []
    with pytest.raises(analyze.AnalyzeError, match=r"check\(\): params.COPY101: unknown parameter"):
        analyze.check(naive, params={"COPY101": {"bytes": 1}})
    file.write_text("version: 1\n")
    with pytest.raises(analyze.RuleError, match=r"softmax\.yaml"):
        analyze.check(naive, rules=file)


def test_rules_that_are_handed_over_run_once(naive: analyze.Trace) -> None:
    rules = analyze.load_rules(tests=False)
    assert analyze.check(naive, rules=rules).to_dict() == analyze.check(naive).to_dict()


def test_a_rule_that_is_handed_over_replaces_the_built_in_one(naive: analyze.Trace) -> None:
    (rule,) = (rule for rule in analyze.load_rules(tests=False) if rule.code == "COPY101")
    milder = rule.with_params({"min_bytes": "GiB(1)", "min_share": "pct(99)"}, "test")
    assert codes(analyze.check(naive, rules=milder, select="COPY")) == []


def test_raise_for_lists_what_is_at_or_above_a_level(naive: analyze.Trace) -> None:
    report = analyze.check(naive)
    with pytest.raises(analyze.FindingsError) as caught:
        report.raise_for()
    assert [finding.code for finding in caught.value.findings] == ["COPY101"]
    assert isinstance(caught.value, AssertionError)
    with pytest.raises(analyze.FindingsError) as caught:
        report.raise_for("warning")
    message = str(caught.value)
    assert message.startswith(f"{naive.name}: 2 findings at or above warning\n  error COPY101 ")
    assert "1 DtoD copy per forward" in message
    assert "    expected: Between its inputs and its outputs" in message
    assert "OCC102" not in message
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (str(again), again.findings) == (message, caught.value.findings)


def test_raise_for_passes_where_nothing_is_wrong(flash: analyze.Trace) -> None:
    report = analyze.check(flash)
    assert [finding.state for finding in report.findings] == ["benign"]
    report.raise_for("info")


def test_raise_for_agrees_with_the_command(samples: Path, run_analyze: RunAnalyze) -> None:
    for name in ("synthetic-naive", "synthetic-sdpa-flash", "cpu-sdpa-math"):
        path = samples / f"{name}.json.gz"
        failed = False
        try:
            analyze.check(path).raise_for("warning")
        except analyze.FindingsError:
            failed = True
        done = run_analyze("check", path, "--isolated", "--fail-on", "warning")
        assert done.returncode == failed, path


def test_what_could_not_be_checked_is_no_success(samples: Path) -> None:
    report = analyze.check(samples / "cpu-naive.json.gz", select="COPY")
    assert (report.checked, report.findings) == (0, ())
    with pytest.raises(analyze.NothingToCheckError, match="nothing could be checked: no GPU work"):
        report.raise_for("error")


def test_an_unknown_level_is_refused(flash: analyze.Trace) -> None:
    report = analyze.check(flash)
    with pytest.raises(ValueError, match="no level 'warn': must be one of info, warning, error"):
        report.raise_for("warn")  # type: ignore[arg-type]


def test_bad_input_is_named(naive: analyze.Trace, tmp_path: Path) -> None:
    with pytest.raises(analyze.TraceError, match=r"none\.json: no such file"):
        analyze.load(tmp_path / "none.json")
    with pytest.raises(analyze.AnalyzeError, match="no table 'kernel'; did you mean 'kernels'"):
        naive.table("kernel")
    with pytest.raises(analyze.AnalyzeError, match="cache=False: must be one of auto, off"):
        analyze.load(naive.name, cache=False)  # type: ignore[arg-type]
    empty = tmp_path / "empty.json"
    empty.write_text('{"schemaVersion": 1, "traceEvents": []}')
    with pytest.raises(analyze.NothingToCheckError, match="nothing was recorded"):
        analyze.check(empty)


def test_the_commands_form_of_a_parameter_is_told_the_right_one(naive: analyze.Trace) -> None:
    given: Any = {"IDLE101.min_share": 0.99}
    with pytest.raises(AnalyzeError, match=r'write {"IDLE101": {"min_share": 0.99}}'):
        analyze.check(naive, params=given)


@pytest.mark.parametrize("tolerance", [math.nan, math.inf, -1])
def test_a_tolerance_by_which_nothing_is_worse_is_refused(
    naive: analyze.Trace, tolerance: float
) -> None:
    with pytest.raises(ValueError, match=r"baseline_tolerance=.*: must be a number, 0 or more"):
        analyze.check(naive, baseline_tolerance=tolerance)


def test_a_large_trace_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyze.cache.reading.MIN_TEXT_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sample = ROOT / "sample_traces" / "synthetic-naive.json.gz"
    analyze.load(sample, cache="off")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("ANALYZE_CACHE", "auto")
    analyze.load(sample)
    assert len(list(tmp_path.rglob("*.events"))) == 1


def test_the_repr_of_a_report(naive: analyze.Trace) -> None:
    lines = repr(analyze.check(naive)).splitlines()
    assert lines[0] == f"<Report {naive.name}: 2 findings, 1 benign, 2 not applicable"
    assert lines[1].startswith("  error COPY101 hidden-memcpy: 1 DtoD copy per forward, 365 us")
    assert lines[-1].startswith("  benign OCC102")
    assert lines[-1].endswith(">")


class Html(HTMLParser):
    """What a browser would make of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data + "\n"


SAFE_TAGS = {
    "div", "p", "strong", "code", "br", "span", "table", "tr", "td", "details", "summary",
}  # fmt: skip


def assert_safe(text: str) -> str:
    """Assert that HTML is well-formed, runs nothing and loads nothing; return its words."""
    html = Html(text)
    assert html.open == []
    assert html.tags <= SAFE_TAGS
    assert html.attributes <= {"style"}
    assert "url(" not in text
    return html.words


@pytest.mark.parametrize("name", ["synthetic-naive", "synthetic-sdpa-math", "cpu-sdpa-math"])
def test_what_a_notebook_shows(name: str, samples: Path) -> None:
    trace = analyze.load(samples / f"{name}.json.gz")
    report = analyze.check(trace)
    words = assert_safe(report._repr_html_())
    for finding in report.findings:
        if finding.explained_by is None:
            assert f"{finding.code} {finding.name}" in words
            assert finding.message in words
    assert "forward" in assert_safe(trace._repr_html_())


HOSTILE = '</td></div><script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m&lt;'


def test_hostile_names_stay_names(tmp_path: Path, samples: Path) -> None:
    text = gzip.decompress((samples / "synthetic-naive.json.gz").read_bytes()).decode()
    hostile = json.dumps(HOSTILE)[1:-1]
    text = text.replace("aten::masked_fill", hostile).replace("A100", hostile)
    path = tmp_path / "<b onclick=x>.json"
    path.write_text(text)
    trace = analyze.load(path)
    report = analyze.check(trace)
    for html in (report._repr_html_(), trace._repr_html_()):
        words = assert_safe(html)
        assert "</td></div><script>alert(1)</script><img src=x" in words
        assert "\\x1b[31m&lt;" in words
        assert "<b onclick=x>.json" in words
        assert "\x1b" not in html


def test_what_matters_little_is_folded_away(naive: analyze.Trace) -> None:
    report = analyze.check(naive)
    first = dataclasses.replace(report.findings[0], state="mismatch", severity="error")
    waiting = dataclasses.replace(first, code="IDLE101", name="gpu-idle", category="idle")
    grid = dataclasses.replace(first, code="OCC103", category="occupancy")
    gpu_time = {**report.coverage["gpu_time"], "idle_share": 0.9}
    coverage = {**report.coverage, "gpu_time": gpu_time}
    bound = analyze.Report(**{**vars(report), "findings": (grid, waiting), "coverage": coverage})
    html = bound._repr_html_()
    little = "<summary>of little weight while gpu-idle (IDLE101) holds</summary>"
    assert html.index("IDLE101 gpu-idle") < html.index(little) < html.index("OCC103 ")
    assert_safe(html)


def test_many_findings_are_cut_and_counted(naive: analyze.Trace) -> None:
    report = analyze.check(naive, select="COPY")
    (finding,) = report.findings
    many = analyze.Report(**{**vars(report), "findings": (finding,) * (html_repr.MAX_FINDINGS + 3)})
    words = assert_safe(many._repr_html_())
    assert words.count("COPY101 hidden-memcpy") == html_repr.MAX_FINDINGS
    assert "and 3 more findings" in words


def run_recipe(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "test_forward.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_forward.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
    )


def test_the_recipe_holds_a_forward_to_its_size(tmp_path: Path) -> None:
    done = run_recipe(RECIPE, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_recipe_fails_when_the_forward_grows(tmp_path: Path) -> None:
    done = run_recipe(RECIPE.replace("model(inputs)", "model(model(inputs))"), tmp_path)
    assert done.returncode == 1
    assert re.search(r"assert \d+ <= 120", done.stdout)


def test_findings_read_well_in_a_failing_test(tmp_path: Path, samples: Path) -> None:
    sample = samples / "synthetic-naive.json.gz"
    done = run_recipe(
        f"import analyze\n\ndef test_it():\n    analyze.check({str(sample)!r}).raise_for()\n",
        tmp_path,
    )
    assert done.returncode == 1
    assert re.search("E +error COPY101 hidden-memcpy: 1 DtoD cop", done.stdout)
    assert "analyze.api.FindingsError: " in done.stdout
    assert "def raise_for" not in done.stdout


def test_types_reach_the_user(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    file.write_text(
        "import analyze\n"
        "trace = analyze.load('x')\n"
        "reveal_type(trace.kernels)\n"
        "reveal_type(analyze.check(trace, select='COPY').findings[0].savings_us)\n"
        "trace.kernel\n"
        "analyze.check(trace).raise_for('warn')\n"
        "analyze.load(1)\n"
        "analyze.lod('x')\n"
    )
    out, _, _ = mypy.run(["--config-file", str(ROOT / "pyproject.toml"), str(file)])
    found = re.findall(r"typed.py:(\d+): (?:note|error): (.*)", out)
    assert [line for line, _ in found] == ["3", "4", "5", "6", "7", "8"], out
    messages = [message for _, message in found]
    assert "polars.dataframe.frame.DataFrame" in messages[0]
    assert messages[1] == 'Revealed type is "float | None"'
    assert '"Trace" has no attribute "kernel"' in messages[2]
    assert 'has no attribute "lod"' in messages[5]


def test_a_baseline_is_compared_with(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    known, trace = tmp_path / "known.json", samples / "synthetic-naive.json.gz"
    assert run_analyze("baseline", "create", trace, "-o", known).returncode == 0
    report = analyze.check(trace, baseline=known)
    assert {finding.baseline for finding in report.findings if finding.gates} == set()
    report.raise_for("info")
    with pytest.raises(analyze.AnalyzeError, match=r"absent\.json"):
        analyze.check(trace, baseline=tmp_path / "absent.json")
