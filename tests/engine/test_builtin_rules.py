"""The built-in rules pass their own tests, and each shows that it fires and stays silent."""

from pathlib import Path

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.rule import Rule
from analyze.engine.rule_tests import run_rule_tests

RULES = load_rules()
FIRING = {"mismatch", "benign", "intermittent"}

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


@every_rule
def test_the_rules_own_tests(rule: Rule) -> None:
    outcomes = run_rule_tests([rule])
    assert outcomes
    assert not [(outcome.name, outcome.problems) for outcome in outcomes if outcome.failed]


@every_rule
def test_a_rule_is_shown_to_fire_and_to_stay_silent(rule: Rule) -> None:
    states = {test.expect.state for test in rule.model.tests}
    assert states & FIRING
    assert "pass" in states


@every_rule
def test_thresholds_say_where_they_come_from(rule: Rule) -> None:
    text = Path(rule.file).read_text()
    lines = text.split("\nparams:", 1)[1].split("\nmeasure:")[0] if rule.model.params else ""
    for name in rule.model.params:
        assert "#" in lines, f"{rule.code}.{name} has no comment"


def test_the_catalogue_of_codes() -> None:
    assert [rule.code for rule in RULES] == [
        "ATTN101", "ATTN102", "ATTN103", "COPY101", "COPY102", "IDLE101", "IDLE102", "LAUNCH101",
        "LAUNCH102", "LAUNCH103", "MEM101", "OCC101", "OCC102", "OCC103", "PREC101", "PREC102",
        "SYNC101", "TRACE101", "TRACE102", "TRACE103", "TRACE104", "TRACE105",
    ]  # fmt: skip
