import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.engine.fingerprint import fingerprint, fingerprints
from analyze.engine.folding import fold
from analyze.engine.loading import load_rules
from analyze.engine.result import (
    SCHEMA_VERSION,
    Checked,
    Finding,
    NotApplicable,
    OfRule,
    TraceReport,
)
from analyze.engine.rule import Rule
from analyze.engine.run import run_rules
from analyze.errors import AnalyzeError
from analyze.tables.build import load_trace

LoadText = Callable[[str], Rule]


@pytest.fixture(scope="module")
def report(samples: Path) -> TraceReport:
    return run_rules(load_trace(samples / "synthetic-naive.json.gz"), load_rules())


def test_the_hidden_copy_of_the_naive_variant_is_found(report: TraceReport) -> None:
    finding = next(item for item in report.findings if item.code == "COPY101")
    assert (finding.state, finding.severity, finding.units_total) == ("mismatch", "error", 3)
    assert finding.message.startswith("1 DtoD copy per forward, 365 us, 16 %")
    assert finding.evidence[0]["op_chain"] == "aten::masked_fill > aten::clone > aten::copy_"
    assert finding.evidence[0]["bytes"] == 268435456


def test_the_report_is_plain_versioned_json(report: TraceReport) -> None:
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert list(data) == [
        "schema_version",
        "trace",
        "unit",
        "coverage",
        "quality",
        "findings",
        "passed",
        "not_applicable",
        "errors",
        "ignored",
        "uncaptured",
        "unread",
        "views",
        "baseline",
        "vanished",
    ]
    assert data["schema_version"] == SCHEMA_VERSION
    assert data["unit"] == {"name": "attn_fwd", "count": 3}
    expected = {"code", "name", "title", "severity", "state", "guess", "message", "fix"}
    expected |= {"measures", "savings_us", "savings_share", "confidence", "evidence"}
    assert expected <= set(data["findings"][0])


def test_every_rule_comes_to_exactly_one_kind_of_result(report: TraceReport) -> None:
    found = {item.code for item in report.findings}
    passed = {item.code for item in report.passed}
    assert not found & passed
    assert not report.errors
    others = {item.code for item in report.not_applicable}
    assert found | passed | others == {rule.code for rule in load_rules()}
    assert report.checked == len(found | passed)


def test_one_failing_rule_does_not_stop_the_others(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_rule = Rule.compile

    def fail(rule: Rule, facts: Any = None) -> Any:
        if rule.code == "OCC101":
            message = "boom\nsecond line"
            raise ZeroDivisionError(message)
        return compile_rule(rule, facts)

    monkeypatch.setattr(Rule, "compile", fail)
    report = run_rules(load_trace(samples / "synthetic-naive.json.gz"), load_rules())
    assert [(item.code, item.message) for item in report.errors] == [
        ("OCC101", "ZeroDivisionError: boom")
    ]
    assert "COPY101" in {item.code for item in report.findings}


def test_settings_change_the_verdict(samples: Path) -> None:
    rules = load_rules(settings=["COPY101.min_bytes=GiB(1)", "COPY101.min_share=pct(50)"])
    report = run_rules(load_trace(samples / "synthetic-naive.json.gz"), rules)
    assert "COPY101" in {item.code for item in report.passed}


def test_an_ignored_mismatch_passes_with_its_reason(load_text: LoadText, samples: Path) -> None:
    rule = load_text(
        "from: copies\nmeasure: {n: count()}\nexpect: n == 0\n"
        "benign: [{when: {copy_kind: DtoD}, because: it is meant, severity: ignore}]"
    )
    report = run_rules(load_trace(samples / "synthetic-naive.json.gz"), [rule])
    assert [(item.code, item.because) for item in report.passed] == [("TEST101", "it is meant")]


def test_preview_rules_never_make_a_check_fail(load_text: LoadText, samples: Path) -> None:
    rule = load_text("from: copies\nmeasure: {n: count()}\nexpect: n == 0\nstatus: preview")
    report = run_rules(load_trace(samples / "synthetic-naive.json.gz"), [rule])
    assert report.findings[0].state == "mismatch"
    assert not report.findings[0].gates


def test_the_fingerprint_depends_on_rule_and_group_alone() -> None:
    one = fingerprint("A101", {"name": "k<float, 4>(void*) at 0x7f12"})
    assert one == fingerprint("A101", {"name": "k<half, vec<8> >(void*) at 0xdead"})
    assert one != fingerprint("A102", {"name": "k<float, 4>(void*) at 0x7f12"})
    assert one != fingerprint("A101", {"name": "j<float, 4>(void*) at 0x7f12"})
    assert fingerprint("A101", {"a": 1, "b": None}) == fingerprint("A101", {"b": None, "a": 1})
    assert fingerprint("A101", {"a": "1"}) != fingerprint("A101", {"a": 1})
    assert len(one) == 16


def test_no_two_findings_of_a_rule_have_the_same_fingerprint() -> None:
    groups = [{"name": name} for name in ("n<B>", "other", "n<A>", "n<C>")]
    made = fingerprints("A101", groups)
    assert len(set(made)) == len(made)
    assert made[1] == fingerprint("A101", {"name": "other"})
    assert made[2] == fingerprint("A101", {"name": "n<A>"})  # the first of those that are alike
    assert fingerprints("A101", groups[::-1]) == made[::-1]
    assert fingerprints("A101", []) == []


def finding(report: TraceReport, code: str, **more: Any) -> Finding:
    base = next(item for item in report.findings if item.code == "COPY101")
    return dataclasses.replace(base, code=code, fingerprint=f"print-{code}", **more)


def folded(findings: list[Finding], explains: dict[str, list[str]]) -> dict[str, Any]:
    result = fold(findings, explains, {item.fingerprint: frozenset() for item in findings})
    assert [item.rank for item in result] == sorted(item.rank for item in findings)
    return {
        item.code: (item.explained_by, [consequence.code for consequence in item.folded])
        for item in result
    }


def test_consequences_are_folded_under_their_first_cause(report: TraceReport) -> None:
    findings = [finding(report, code) for code in ("A101", "B101", "C101", "D101")]
    assert folded(findings, {"A101": ["B101"], "B101": ["C101"]}) == {
        "A101": (None, ["B101", "C101"]),
        "B101": ("print-A101", []),
        "C101": ("print-A101", []),
        "D101": (None, []),
    }


def test_a_cause_that_was_not_found_explains_nothing(report: TraceReport) -> None:
    benign = finding(report, "A101", state="benign", severity="info")
    assert folded([benign, finding(report, "B101")], {"A101": ["B101"], "X101": ["B101"]}) == {
        "A101": (None, []),
        "B101": (None, []),
    }


@pytest.mark.parametrize(
    ("chains", "is_folded"),
    [
        ({"sdpa > math > bmm", "sdpa > math"}, True),
        ({"sdpa > math > bmm", "linear"}, False),
        ({"sdpa > mathematics"}, False),
        ({None, "sdpa > math > bmm"}, False),
        (set(), True),
    ],
)
def test_only_what_happened_under_the_cause_is_folded(
    report: TraceReport, chains: set[str | None], is_folded: bool
) -> None:
    findings = [finding(report, "A101"), finding(report, "B101")]
    places = {"print-A101": frozenset({"sdpa > math"}), "print-B101": frozenset(chains)}
    result = {item.code: item for item in fold(findings, {"A101": ["B101"]}, places)}
    assert (result["B101"].explained_by is not None) == is_folded


def test_rules_that_explain_each_other_do_not_vanish(report: TraceReport) -> None:
    findings = [finding(report, code) for code in ("A101", "B101", "C101")]
    explains = {"A101": ["B101"], "B101": ["C101"], "C101": ["A101", "C101"]}
    assert folded(findings, explains)["A101"] == (None, ["B101", "C101"])


def test_findings_are_ranked_by_severity_state_and_savings(report: TraceReport) -> None:
    findings = [
        finding(report, "A101", severity="warning", savings_us=900.0),
        finding(report, "B101", severity="error", savings_us=1.0),
        finding(report, "C101", severity="error", savings_us=5.0),
        finding(report, "D101", severity="error", state="intermittent", savings_us=9.0),
        finding(report, "E101", severity="info", state="benign", savings_us=None),
    ]
    nowhere = {item.fingerprint: frozenset[str | None]() for item in findings}
    assert [item.code for item in fold(findings, {}, nowhere)] == [
        "C101",
        "B101",
        "D101",
        "A101",
        "E101",
    ]


def test_every_real_trace_gets_a_report_without_errors(real_traces: Path) -> None:
    rules = load_rules()
    reports = 0
    for file in sorted(real_traces.glob("*/*")):
        try:
            trace = load_trace(file)
        except AnalyzeError:
            continue
        report = run_rules(trace, rules)
        json.dumps(report.to_dict(), allow_nan=False)
        assert report.errors == (), file.name
        reports += 1
    assert reports > 20


def test_a_sound_recording_alone_is_no_verdict(report: TraceReport) -> None:
    """Which rules are about the recording says their category, whatever their code."""
    about = Checked("LAUNCH103", "cold-launch", category="trace")
    unanswered = NotApplicable("COPY101", "hidden-memcpy", "no GPU work", category="copies")
    silent = dataclasses.replace(
        report, findings=(), passed=(about,), not_applicable=(unanswered,), errors=(), ignored=()
    )
    assert silent.checked == 0
    assert silent.why_nothing == "nothing could be checked: no GPU work"
    of_the_program = dataclasses.replace(about, category="launch")
    assert dataclasses.replace(silent, passed=(of_the_program,)).checked == 1
    assert dataclasses.replace(silent, not_applicable=()).checked == 1


def test_every_rule_says_of_which_category_it_is(report: TraceReport) -> None:
    entries: list[OfRule] = [*report.passed, *report.not_applicable, *report.findings]
    categories = {entry.code: entry.category for entry in entries}
    assert categories["LAUNCH103"] == categories["TRACE105"] == "trace"
    assert categories["COPY101"] == "copies"
    assert None not in categories.values()
