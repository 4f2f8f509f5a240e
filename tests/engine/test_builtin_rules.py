"""The built-in rules pass their own tests, and each shows that it fires and stays silent."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from analyze.engine.loading import load_rules
from analyze.engine.mutation import unnoticed_thresholds
from analyze.engine.rule import Rule
from analyze.engine.rule_tests import Samples, run_rule_tests
from analyze.tables.api import DRIVER_ALLOCATIONS

RULES = load_rules()
FIRING = {"mismatch", "benign", "intermittent"}

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


@pytest.fixture(scope="module")
def samples_read_once() -> Samples:
    return Samples()


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
def test_every_threshold_is_noticed_by_a_test(rule: Rule, samples_read_once: Samples) -> None:
    assert unnoticed_thresholds([rule], samples_read_once) == []


@every_rule
def test_thresholds_say_where_they_come_from(rule: Rule) -> None:
    text = Path(rule.file).read_text()
    lines = text.split("\nparams:", 1)[1].split("\nmeasure:")[0] if rule.model.params else ""
    for name in rule.model.params:
        assert "#" in lines, f"{rule.code}.{name} has no comment"


def test_rules_and_tables_mean_the_same_calls_for_memory() -> None:
    pack = YAML(typ="safe").load((Path(RULES[0].file).parents[1] / "pack.yaml").read_text())
    assert tuple(pack["lists"]["driver_allocations"]) == DRIVER_ALLOCATIONS


def test_the_catalogue_of_codes() -> None:
    assert [rule.code for rule in RULES] == [
        "ATTN101", "ATTN102", "ATTN103", "COMM101", "COPY101", "COPY102", "FUSE101", "IDLE101",
        "IDLE102", "LAUNCH101", "LAUNCH102", "LAUNCH103", "MEM101", "MEM102", "OCC101", "OCC102",
        "OCC103", "PREC101", "PREC102", "PREC103", "PREC104", "SYNC101", "TRACE101", "TRACE102",
        "TRACE103", "TRACE104", "TRACE105", "TRAIN101",
    ]  # fmt: skip
