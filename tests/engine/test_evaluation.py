from collections.abc import Callable
from typing import Any

import pytest

from analyze.engine.rule import Rule
from analyze.engine.run import RuleResult

Check = Callable[..., RuleResult]
Row = dict[str, Any]

COPIES = """\
from: copies
where: {copy_kind: DtoD}
measure: {n: count(), us: sum(dur_us), share: us / forward.gpu_busy_us}
expect: n == 0
severity: [{level: error, when: share >= pct(15)}, {level: warning}]
savings: {us: us}
message: "{n:int} copies, {us:us}, {share:pct}"
"""

BY_NAME = """\
from: kernels
group_by: [short_name]
measure: {n: count(), us: sum(dur_us), share: us / forward.gpu_busy_us}
expect: n == 0 or share < 0.1
message: "{short_name}: {share:pct}"
"""


def copy(forward: int | None, us: float = 10.0, **more: Any) -> Row:
    return {"copy_kind": "DtoD", "dur_us": us, "forward": forward, **more}


def kernel(name: str | None, us: float = 10.0, forward: int | None = 0, **more: Any) -> Row:
    return {"short_name": name, "dur_us": us, "forward": forward, **more}


def units(*busy: float | None) -> list[Row]:
    return [{"index": index, "gpu_busy_us": value} for index, value in enumerate(busy)]


def test_a_mismatch_in_every_unit(check: Check) -> None:
    found = check(COPIES, [copy(0), copy(0), copy(1), copy(1)], units(100, 100))
    finding = found.findings[0]
    assert found.state == finding.state == "mismatch"
    assert finding.message == "2 copies, 20 us, 20 %"
    assert finding.measures == {"n": 2, "us": 20.0, "share": 0.2}
    assert (finding.units_mismatching, finding.units_total) == (2, 2)
    assert (finding.savings_us, finding.savings_share) == (20.0, 0.2)
    assert finding.savings_kind == "upper_bound"
    assert finding.guess == "it holds"
    assert finding.gates


def test_no_mismatch_is_a_pass(check: Check) -> None:
    found = check(COPIES, [copy(0, copy_kind="HtoD")], units(100))
    assert (found.state, found.findings) == ("pass", [])


def test_work_outside_every_unit_is_judged_only_per_trace(check: Check) -> None:
    assert check(COPIES, [copy(None)], units(100)).state == "pass"
    per_trace = COPIES.replace("forward.", "trace.") + "per: trace\n"
    found = check(per_trace, [copy(None), copy(0)], facts={"gpu_busy_us": 200.0})
    finding = found.findings[0]
    assert finding.measures == {"n": 2, "us": 20.0, "share": 0.1}
    assert (finding.per, finding.worst_unit, finding.savings_share) == ("trace", None, 0.1)


def test_what_never_appears_mismatches(check: Check) -> None:
    rule = """\
from: kernels
where: {family: attn.fwd}
measure: {n: count(), us: sum(dur_us), longest: max(dur_us)}
expect: n == 1
message: "{n:int} in {us:us}, {longest:us}"
"""
    finding = check(rule, [], units(100, 100)).findings[0]
    assert (finding.state, finding.units_mismatching) == ("mismatch", 2)
    assert finding.message == "0 in 0 us, unknown"
    assert finding.evidence == ()


def test_units_without_matching_rows_count_as_zero(check: Check) -> None:
    rule = COPIES.replace("n == 0", "n >= 1")
    found = check(rule, [copy(0)], units(100, 100, 100))
    assert found.findings[0].units_mismatching == 2
    assert found.findings[0].measures["n"] == 0


@pytest.mark.parametrize(
    ("quorum", "state"), [(0.5, "intermittent"), (0.25, "mismatch"), (1.0, "intermittent")]
)
def test_fewer_mismatching_units_than_the_quorum_are_intermittent(
    check: Check, quorum: float, state: str
) -> None:
    found = check(COPIES + f"quorum: {quorum}\n", [copy(2)], units(100, 100, 100, 100))
    finding = found.findings[0]
    assert (finding.state, finding.units_mismatching, finding.units_total) == (state, 1, 4)
    assert finding.gates == (state == "mismatch")


def test_exactly_the_quorum_is_a_mismatch(check: Check) -> None:
    assert check(COPIES, [copy(0)], units(100, 100)).state == "mismatch"


def test_a_share_of_units_that_is_the_quorum_to_the_digit_is_a_mismatch(check: Check) -> None:
    rule = COPIES + "quorum: 0.07\n"
    found = check(rule, [copy(index) for index in range(7)], units(*[100.0] * 100))
    assert found.state == "mismatch"
    found = check(rule, [copy(index) for index in range(6)], units(*[100.0] * 100))
    assert found.state == "intermittent"


def test_severity_is_judged_on_the_median_and_the_worst_is_kept(check: Check) -> None:
    finding = check(COPIES, [copy(0, 1), copy(1, 2), copy(2, 90)], units(100, 100, 100)).findings[0]
    assert (finding.severity, finding.worst_severity, finding.worst_unit) == ("warning", "error", 2)
    assert finding.measures["share"] == 0.02


def test_an_unknown_step_of_the_ladder_does_not_apply(check: Check) -> None:
    finding = check(COPIES, [copy(0)], units(None)).findings[0]
    assert finding.severity == "warning"
    assert finding.message == "1 copies, 10 us, unknown"
    assert finding.savings_share is None


def test_an_unknown_expectation_is_never_a_pass(check: Check) -> None:
    rule = COPIES.replace("expect: n == 0", "expect: share < 0.5")
    found = check(rule, [copy(0), copy(1)], units(0, 100))
    assert found.state == "not_applicable"
    assert found.not_applicable == (
        "the expectation is unknown in 1 of 2 forwards: a value it rests on is null"
    )
    finding = check(rule, [copy(0), copy(1, 90)], units(0, 100)).findings[0]
    assert (finding.state, finding.units_total, finding.units_unknown) == ("mismatch", 1, 1)


def test_null_never_matches_a_comparison(check: Check) -> None:
    for where in ("{copy_kind: {ne: HtoD}}", "{copy_kind: {not_in: [HtoD]}}"):
        rule = COPIES.replace("{copy_kind: DtoD}", where)
        found = check(rule, [copy(0), copy(0, copy_kind=None)], units(100))
        assert found.findings[0].measures["n"] == 1


def test_groups_are_separate_findings(check: Check) -> None:
    rows = [kernel("a", 50), kernel("b", 5), kernel("c", 20), kernel(None, 25)]
    found = check(BY_NAME, rows, units(100))
    assert {(item.group["short_name"], item.message) for item in found.findings} == {
        ("a", "a: 50 %"),
        ("c", "c: 20 %"),
        (None, "unknown: 25 %"),
    }
    assert all(len(item.evidence) == 1 for item in found.findings)


def test_a_group_is_absent_from_units_that_count_towards_the_quorum(check: Check) -> None:
    rows = [kernel("a", 50, 0), *(kernel("b", 50, index) for index in range(4))]
    found = check(BY_NAME, rows, units(100, 100, 100, 100))
    states = {item.group["short_name"]: item.state for item in found.findings}
    assert states == {"a": "intermittent", "b": "mismatch"}
    assert found.state == "mismatch"


def test_a_group_must_be_present_where_the_expectation_fails_on_nothing(check: Check) -> None:
    rule = BY_NAME.replace("n == 0 or share < 0.1", "n == 1")
    rows = [kernel("a", 10, 0), kernel("a", 10, 1), kernel("b", 10, 1)]
    finding = check(rule, rows, units(100, 100)).findings[0]
    assert (finding.group, finding.units_mismatching) == ({"short_name": "b"}, 1)
    assert finding.measures["n"] == 0


def test_an_informative_rule_reports_what_it_sees(check: Check) -> None:
    rule = COPIES.replace("expect: n == 0\n", "")
    finding = check(rule, [copy(0), copy(1)], units(100, 100)).findings[0]
    assert (finding.state, finding.gates) == ("informative", False)
    assert check(rule, [], units(100)).state == "pass"
    by_name = BY_NAME.replace("expect: n == 0 or share < 0.1\n", "")
    found = check(by_name, [kernel("a"), kernel("b")], units(100))
    assert [item.severity for item in found.findings] == ["info", "info"]


def test_an_informative_rule_counts_units_in_which_a_group_is_absent(check: Check) -> None:
    rule = BY_NAME.replace("expect: n == 0 or share < 0.1\n", "")
    found = check(rule, [kernel("a", 30, 0)], units(100, 100, 100))
    alone = check(rule.replace("group_by: [short_name]\n", "").replace("{short_name}", "all"),
                  [kernel("a", 30, 0)], units(100, 100, 100))  # fmt: skip
    for finding in (*found.findings, *alone.findings):
        assert (finding.units_total, finding.units_mismatching) == (3, 3)
        assert finding.measures["n"] == 0


def test_a_row_that_a_count_cannot_decide_on_is_undecided(check: Check) -> None:
    rule = COPIES.replace("{n: count()", "{n: count(bytes > 5)")
    found = check(rule, [copy(0, bytes=1), copy(0), copy(0)], units(100))
    assert (found.state, found.undecided_rows) == ("pass", 2)
    shown = COPIES.replace("{n: count()", "{n: count(), large: count(bytes > 5)")
    found = check(shown, [copy(0, copy_kind="HtoD"), copy(0, copy_kind="HtoD")], units(100))
    assert (found.state, found.undecided_rows) == ("pass", 0)


BENIGN = """
benign:
  - {when: {family: [attn.fwd]}, because: fused attention}
  - {when: {family: gemm}, because: tensor cores, severity: ignore}
"""


def test_a_mismatch_is_benign_where_every_row_matches(check: Check) -> None:
    rows = [kernel("a", 50, family="attn.fwd"), kernel("a", 5, family="attn.fwd")]
    finding = check(BY_NAME + BENIGN + "severity: error\n", rows, units(100)).findings[0]
    assert (finding.state, finding.severity, finding.because) == (
        "benign",
        "info",
        "fused attention",
    )
    assert not finding.gates
    assert finding.savings_us is None


@pytest.mark.parametrize("other", ["softmax", None])
def test_one_row_that_does_not_match_is_enough(check: Check, other: str | None) -> None:
    rows = [kernel("a", 50, family="attn.fwd"), kernel("a", 5, family=other)]
    assert check(BY_NAME + BENIGN, rows, units(100)).state == "mismatch"


def test_an_ignored_benign_mismatch_is_not_a_finding(check: Check) -> None:
    found = check(BY_NAME + BENIGN, [kernel("a", 50, family="gemm")], units(100))
    assert (found.state, found.findings) == ("benign", [])
    assert found.ignored[0].because == "tensor cores"


def test_absence_is_never_benign(check: Check) -> None:
    rule = COPIES.replace("n == 0", "n == 1") + "benign: [{when: {}, because: always}]\n"
    assert check(rule, [], units(100)).state == "mismatch"


def test_unknown_inputs_lower_the_confidence(check: Check) -> None:
    rule = (
        BY_NAME
        + """
confidence: high
uncertain:
  - {when: {root_dtype: {exists: false}}, because: dtypes were not recorded}
  - {when: share > 0.9, because: too much to be true, confidence: medium}
"""
    )
    finding = check(rule, [kernel("a", 50, root_dtype="bf16")], units(100)).findings[0]
    assert (finding.confidence, finding.uncertain) == ("high", ())
    finding = check(rule, [kernel("a", 95, root_dtype="bf16")], units(100)).findings[0]
    assert (finding.confidence, finding.uncertain) == ("medium", ("too much to be true",))
    rows = [kernel("a", 50, root_dtype="bf16"), kernel("a", 50)]
    finding = check(rule, rows, units(100)).findings[0]
    assert (finding.confidence, finding.uncertain[0]) == ("low", "dtypes were not recorded")


def test_evidence_is_sorted_limited_and_plain(check: Check) -> None:
    rule = COPIES + "evidence: {columns: [dur_us, bytes], sort: -bytes, limit: 2}\n"
    rows = [copy(0, bytes=1), copy(0, bytes=None), copy(0, bytes=3), copy(0, bytes=2)]
    finding = check(rule, rows, units(100)).findings[0]
    assert finding.evidence == ({"dur_us": 10.0, "bytes": 3}, {"dur_us": 10.0, "bytes": 2})
    finding = check(COPIES, [copy(0, 1), copy(0, 2), copy(0, 3)], units(100)).findings[0]
    assert [row["dur_us"] for row in finding.evidence] == [3.0, 2.0, 1.0]


def test_evidence_comes_from_mismatching_units_only(check: Check) -> None:
    rule = COPIES.replace("n == 0", "us < 50") + "evidence: {columns: [dur_us]}\n"
    finding = check(rule, [copy(0, 10), copy(1, 60)], units(100, 100)).findings[0]
    assert finding.evidence == ({"dur_us": 60.0},)


def test_columns_of_the_unit_can_be_used_per_row(check: Check) -> None:
    rule = COPIES.replace(
        "where: {copy_kind: DtoD}", "where: {expr: dur_us > 0.5 * forward.cpu_us}"
    )
    forwards = [{"index": 0, "cpu_us": 10.0}, {"index": 1, "cpu_us": 100.0}]
    found = check(rule, [copy(0), copy(1)], forwards)
    assert found.findings[0].units_mismatching == 1


def test_other_units_of_repetition(check: Check) -> None:
    per_step = COPIES.replace("forward.", "step.") + "per: step\n"
    rows = [{"copy_kind": "DtoD", "dur_us": 10.0, "step": 7}]
    steps = [{"index": 7, "gpu_busy_us": 40.0}, {"index": 8, "gpu_busy_us": 40.0}]
    finding = check(per_step, rows, steps=steps).findings[0]
    assert (finding.per, finding.worst_unit, finding.measures["share"]) == ("step", 7, 0.25)
    region = COPIES.replace("forward.", "region.") + "per: {region: encoder}\n"
    finding = check(region, [copy(0), copy(None)], units(40)).findings[0]
    assert (finding.per, finding.measures["n"]) == ("region encoder", 1)


def test_units_themselves_can_be_judged(check: Check) -> None:
    rule = """\
from: forwards
measure: {span: first(gpu_span_us), busy: first(gpu_busy_us), idle: span - busy}
expect: idle < 0.5 * span
message: "{idle:us}"
"""
    rows = [{"index": 0, "gpu_span_us": 100, "gpu_busy_us": 10}]
    assert check(rule, rows).findings[0].message == "90 us"


def test_texts_are_tested_on_distinct_names_with_the_same_result(check: Check) -> None:
    rule = COPIES.replace(
        "{copy_kind: DtoD}", "{name: {regex: '^Mem.*D$'}, expr: \"'cpy' in name\"}"
    )
    rows = [
        copy(0, name="Memcpy DtoD"),
        copy(0, name="Memset D"),
        copy(0),
        copy(0, name="Memcpy DtoD"),
    ]
    assert check(rule, rows, units(100)).findings[0].measures["n"] == 2


def test_a_measure_has_no_infinite_values(check: Check) -> None:
    rule = COPIES.replace("us / forward.gpu_busy_us", "us / 1e-300 / 1e-300").replace(
        "expect: n == 0", "expect: n > 5"
    )
    finding = check(rule, [copy(0)], units(100)).findings[0]
    assert finding.measures["share"] is None


def test_a_rule_that_cannot_be_evaluated_is_an_error_of_its_own(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        message = "boom\nmore"
        raise ZeroDivisionError(message)

    monkeypatch.setattr(Rule, "compile", fail, raising=True)
    with pytest.raises(ZeroDivisionError):
        check(COPIES, [], units(100))


def test_a_rule_with_too_many_groups_fails_alone(check: Check) -> None:
    text = "from: kernels\ngroup_by: [start_us]\nmeasure: {n: count()}\nexpect: n == 0"
    rows = [{"start_us": float(start), "forward": 0} for start in range(600)]
    result = check(text, rows)
    assert result.error is not None
    assert "600 groups to report, and 500 are allowed" in result.error
    assert len(check(text, rows[:500]).findings) == 500


def test_a_finding_lists_where_its_rows_are_the_longest_first(check: Check) -> None:
    rows = [copy(0, 5, start_us=1.0, name="a"), copy(0, 7, start_us=2.5, name="b"), copy(0)]
    finding = check(COPIES, rows, units(100)).findings[0]
    assert [(place.name, place.start_us, place.dur_us) for place in finding.places] == [
        ("b", 2.5, 7.0),
        ("a", 1.0, 5.0),
    ]
    assert finding.places_total == 3  # one of them has no start


def test_evidence_may_be_about_some_of_the_rows_that_are_measured(check: Check) -> None:
    rows = [copy(0, us, start_us=us, source=f"f.py:{us}") for us in (9, 2, 40, 1)]
    rule = COPIES + "evidence: {columns: [dur_us], where: {dur_us: {gte: 9}}}\n"
    finding = check(rule, rows, units(100)).findings[0]
    assert finding.measures["n"] == 4
    assert finding.evidence == ({"dur_us": 40.0}, {"dur_us": 9.0})
    assert [place.start_us for place in finding.places] == [40.0, 9.0]
    assert finding.places_total == 2


def test_the_source_line_of_a_finding_is_where_most_of_its_time_goes(check: Check) -> None:
    rows = [copy(0, 1, source="often.py:1"), copy(0, 1, source="often.py:1")]
    rows += [copy(0, 50, source="long.py:2"), copy(0, 900, source=None)]
    assert check(COPIES, rows, units(100)).findings[0].source == "long.py:2"
    assert check(COPIES, [copy(0)], units(100)).findings[0].source is None
