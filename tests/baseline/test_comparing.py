"""What is known, new, worse, better and gone beside a baseline."""

import dataclasses
from typing import Any

import pytest

from analyze.baseline.comparing import compared
from analyze.baseline.model import Baseline
from analyze.baseline.updating import Acceptance, create, update
from analyze.engine.result import Checked, Finding, TraceReport
from analyze.report.baseline_text import render_update
from tests.baseline.made import NAIVE, finding, report

TODAY = Acceptance("2026-01-02", "known since then")
HOLDS = (Checked("COPY101", "hidden-memcpy"),)


def baseline_of(*reports: TraceReport, by_trace: bool = False) -> Baseline:
    return create(reports, TODAY, by_trace=by_trace)


def beside(baseline: Baseline, *reports: TraceReport, tolerance: float = 0.2) -> list[Finding]:
    """The findings of all reports as a baseline knows them."""
    return [
        found
        for each in compared(reports, baseline, "baseline.json", tolerance)
        for found in each.findings
    ]


KNOWN = baseline_of(report(finding()))


@pytest.mark.parametrize(
    ("changed", "state", "words"),
    [
        ({}, "known", ""),
        ({"savings_us": 119.0, "savings_share": 0.12}, "known", ""),
        ({"savings_us": 130.0, "savings_share": 0.13}, "worse", "saves 100 us -> 130 us (+30 %)"),
        ({"savings_us": 50.0, "savings_share": 0.05}, "better", "saves 100 us -> 50 us (-50 %)"),
        ({"severity": "error"}, "worse", "severity warning -> error"),
        ({"severity": "info"}, "better", "severity warning -> info"),
        ({"units_mismatching": 10}, "worse", "seen in 5 of 10 (50 %) -> 10 of 10 forwards"),
        ({"units_mismatching": 3}, "better", "seen in 5 of 10 (50 %) -> 3 of 10 forwards"),
        # As often, though there are more forwards.
        ({"units_mismatching": 50, "units_total": 100}, "known", ""),
        ({"state": "intermittent"}, "better", "mismatch -> intermittent"),
        # A fifth more of next to nothing, as a share of its forward.
        ({"savings_us": 130.0, "savings_share": 0.0013}, "known", ""),
        # The share grew because the rest got faster; the finding itself is as it was.
        ({"savings_share": 0.9}, "known", ""),
        # Worse in one thing and better in another is worse.
        ({"severity": "error", "savings_us": 10.0, "savings_share": 0.01}, "worse", "severity"),
        # Unknown savings are neither.
        ({"savings_us": None, "savings_share": None}, "known", ""),
        ({"fingerprint": "2" * 16}, "new", ""),
    ],
)
def test_a_finding_is_worse_where_its_amounts_say_so(
    changed: dict[str, Any], state: str, words: str
) -> None:
    (found,) = beside(KNOWN, report(finding(**changed)))
    assert found.baseline == state
    assert words in ", ".join(found.baseline_changes)
    assert bool(found.baseline_changes) == bool(words)
    assert found.gates == (state in ("new", "worse"))
    assert found.baseline_reason == (None if state == "new" else "known since then")


@pytest.mark.parametrize(
    ("measures", "state"),
    [
        ({"n": 9, "us": 110.0}, "known"),
        ({"n": 1, "us": 130.0}, "worse"),
        ({"n": 2, "us": None}, "known"),  # not the same amount: nothing can be said
        ({"share": 0.9}, "known"),
    ],
)
def test_without_savings_the_time_it_measures_counts(measures: dict[str, Any], state: str) -> None:
    unknown = {"savings_us": None, "savings_share": None}
    (found,) = beside(
        baseline_of(report(finding(**unknown))), report(finding(measures=measures, **unknown))
    )
    assert found.baseline == state


@pytest.mark.parametrize(
    ("before", "now", "words"), [(2, 3, "n 2 -> 3"), (1000, 1500, "n 1,000 -> 1,500")]
)
def test_without_times_the_count_it_measures_counts(before: int, now: int, words: str) -> None:
    counted = {"savings_us": None, "savings_share": None}
    known = baseline_of(report(finding(measures={"n": before}, **counted)))
    (found,) = beside(known, report(finding(measures={"n": now}, **counted)))
    assert (found.baseline, found.baseline_changes) == ("worse", (f"{words} (+50 %)",))


@pytest.mark.parametrize("known", [1e300, -1e300, 1e-300, 5e-324])
def test_an_amount_that_is_a_slip_is_worded_in_short(known: float) -> None:
    """Baselines are edited by hand."""
    (entry,) = KNOWN.findings
    slip = KNOWN.with_findings([entry.model_copy(update={"savings_us": known})])
    (found,) = beside(slip, report(finding()))
    assert found.baseline in ("worse", "better")
    assert all(len(words) < 60 for words in found.baseline_changes)


def test_amounts_of_different_units_are_not_compared() -> None:
    of_a_trace = finding(per="trace", savings_us=1000.0, units_total=1, units_mismatching=1)
    assert [found.baseline for found in beside(KNOWN, report(of_a_trace))] == ["known"]
    severe = dataclasses.replace(of_a_trace, severity="error")
    assert [found.baseline for found in beside(KNOWN, report(severe))] == ["worse"]


def test_the_tolerance_is_the_users() -> None:
    slower = report(finding(savings_us=130.0, savings_share=0.13))
    assert beside(KNOWN, slower, tolerance=0.5)[0].baseline == "known"
    assert beside(KNOWN, slower, tolerance=0.0)[0].baseline == "worse"


def test_benign_and_informative_findings_are_no_business_of_a_baseline() -> None:
    harmless = report(finding(state="benign"), finding(state="informative"))
    assert baseline_of(harmless).findings == []
    assert [found.baseline for found in beside(KNOWN, harmless)] == [None, None]


def test_a_trace_may_have_any_name() -> None:
    (found,) = beside(KNOWN, report(finding(), trace="elsewhere/ci-1234.json.gz"))
    assert found.baseline == "known"


def test_captures_do_not_hide_each_other() -> None:
    known = baseline_of(report(finding(), capture=NAIVE))
    assert known.findings[0].scope == "naive-forward-b2h4kv4s128skv128d32-bf16-causal"
    for changed in ({"name": "sdpa-math"}, {"phase": "backward"}, {"seq": 4096}, {"causal": False}):
        other = report(finding(), capture={**NAIVE, **changed})
        assert beside(known, other)[0].baseline == "new", changed
    assert beside(known, report(finding(), capture=NAIVE, trace="x.json"))[0].baseline == "known"


def test_by_trace_the_name_of_the_file_counts_but_not_its_folder() -> None:
    known = baseline_of(report(finding(), trace="a/one.json"), by_trace=True)
    assert beside(known, report(finding(), trace="b/one.json"))[0].baseline == "known"
    assert beside(known, report(finding(), trace="a/two.json"))[0].baseline == "new"


def test_of_several_traces_the_worst_is_known() -> None:
    slow, fast = finding(savings_us=200.0, savings_share=0.2), finding()
    for traces in ((report(slow), report(fast)), (report(fast), report(slow))):
        known = baseline_of(*traces)
        assert [entry.savings_us for entry in known.findings] == [200.0]
        assert {found.baseline for found in beside(known, *traces)} <= {"known", "better"}


def gone(*reports: TraceReport, known: Baseline = KNOWN) -> list[list[str]]:
    """Per report, the codes of what it says is found no more."""
    return [[entry.code for entry in each.vanished] for each in compared(reports, known, "b.json")]


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([report(passed=HOLDS)], [["COPY101"]]),
        ([report(finding())], [[]]),
        # What could not be checked proves nothing.
        ([report()], [[]]),
        ([report(not_applicable=("COPY101",))], [[]]),
        ([report(passed=HOLDS, not_applicable=("COPY101",))], [[]]),
        ([report(passed=(Checked("COPY101", "x", undecided_rows=3),))], [[]]),
        ([report(passed=HOLDS, truncated=True)], [[]]),
        ([report(passed=HOLDS, events_lost=1)], [[]]),
        # Another group of the rule is found, so the rule was answered.
        ([report(finding(fingerprint="2" * 16))], [["COPY101"]]),
        # Of several traces all must say so, and the first does.
        ([report(passed=HOLDS), report(finding())], [[], []]),
        ([report(passed=HOLDS), report()], [[], []]),
        ([report(passed=HOLDS), report(passed=HOLDS)], [["COPY101"], []]),
        # A trace without forwards is of another program than the one judged per forward.
        ([report(passed=HOLDS, forward_is="ProfilerStep")], [[]]),
        ([report(passed=HOLDS, forward_is="trace")], [[]]),
        # Another workload says nothing about this one.
        ([report(passed=HOLDS, capture=NAIVE)], [[]]),
    ],
)
def test_only_what_was_answered_is_gone(
    reports: list[TraceReport], expected: list[list[str]]
) -> None:
    assert gone(*reports) == expected


def test_a_trace_that_shares_nothing_with_many_known_findings_is_of_another_program() -> None:
    many = [finding(fingerprint=str(number) * 16) for number in range(1, 4)]
    known, other = baseline_of(report(*many)), finding(fingerprint="9" * 16)
    assert gone(report(other, passed=HOLDS), known=known) == [[]]
    shared = report(other, many[0], passed=HOLDS)
    assert gone(shared, known=known) == [["COPY101", "COPY101"]]
    assert gone(report(passed=HOLDS), known=known) == [["COPY101"] * 3]
    done = update(known, [report(other, passed=HOLDS)], 0.2, TODAY, accept=False)
    assert done.baseline == known
    assert "may be of another program, and nothing is taken as gone" in render_update("b", done)
    assert "another program" not in render_update(
        "b", update(known, [shared], 0.2, TODAY, accept=False)
    )
    two = baseline_of(report(*many[:2]))
    assert gone(report(other, passed=HOLDS), known=two) == [["COPY101"] * 2]


def test_fewer_traces_than_it_was_made_from_prove_nothing() -> None:
    first, second = report(passed=HOLDS), report(passed=HOLDS, trace="other.json")
    known = baseline_of(report(finding()), second)
    assert gone(first, known=known) == [[]]
    assert gone(first, first, known=known) == [[], []]  # the same file twice is one trace
    assert gone(first, report(passed=HOLDS, trace="./trace.json"), known=known) == [[], []]
    assert gone(first, second, known=known) == [["COPY101"], []]
    assert kinds(known, report(passed=HOLDS)) == ["unproven"]
    assert baseline_of(first, first).traces == 1
    captured = baseline_of(report(finding(), capture=NAIVE), second)
    assert gone(report(passed=HOLDS, capture=NAIVE), known=captured) == [["COPY101"]]


def kinds(baseline: Baseline, *reports: TraceReport, accept: bool = False) -> list[str]:
    later = Acceptance("2027-01-01", "a new reason")
    return [step.kind for step in update(baseline, reports, 0.2, later, accept=accept).steps]


def test_an_update_hides_nothing_new() -> None:
    worse = report(finding(severity="error"), finding(fingerprint="2" * 16))
    later = Acceptance("2027-01-01", "a new reason")
    refused = update(KNOWN, [worse], 0.2, later, accept=False)
    assert refused.baseline == KNOWN
    assert [step.kind for step in refused.steps] == ["left out", "left out"]
    accepted = update(KNOWN, [worse], 0.2, later, accept=True)
    assert [step.kind for step in accepted.steps] == ["raised", "added"]
    raised, added = accepted.baseline.findings
    assert (raised.severity, raised.date, raised.reason) == ("error", "2026-01-02", "a new reason")
    assert (added.date, added.reason) == ("2027-01-01", "a new reason")
    assert {found.baseline for found in beside(accepted.baseline, worse)} == {"known"}


def test_an_update_removes_what_is_gone_and_keeps_reasons() -> None:
    assert kinds(KNOWN, report(passed=HOLDS)) == ["removed"]
    assert kinds(KNOWN, report(not_applicable=("COPY101",))) == ["unproven"]
    better = report(finding(savings_us=50.0, savings_share=0.05))
    tightened = update(KNOWN, [better], 0.2, Acceptance("2027-01-01"), accept=False).baseline
    (entry,) = tightened.findings
    assert (entry.savings_us, entry.reason, entry.date) == (50.0, "known since then", "2026-01-02")
    # As slow as it once was is news again.
    assert beside(tightened, report(finding()))[0].baseline == "worse"


def test_creating_and_updating_with_the_same_traces_changes_nothing() -> None:
    traces = [report(finding(), finding(code="AAA101", fingerprint="3" * 16)), report(finding())]
    known = baseline_of(*traces)
    assert [entry.code for entry in known.findings] == ["AAA101", "COPY101"]  # sorted
    assert update(known, traces, 0.2, TODAY, accept=True).baseline == known
