from pathlib import Path

import pytest

from analyze.engine.mutation import unnoticed_thresholds
from analyze.engine.rule_tests import Samples, missing_tests, run_rule_tests
from analyze.engine.starter import free_code, starter_rule
from analyze.tables.catalogue import TABLES
from tests.engine.loaded import load_rule


@pytest.mark.parametrize("table", TABLES)
def test_a_starter_rule_is_valid_and_well_tested(table: str, tmp_path: Path) -> None:
    file = tmp_path / "my-rule.yaml"
    file.write_text(starter_rule("my-rule", "MY001", TABLES[table]))
    rule = load_rule(file)
    assert (rule.code, rule.name, rule.model.table) == ("MY001", "my-rule", table)
    outcomes = run_rule_tests([rule])
    assert [outcome.status for outcome in outcomes] == ["passed", "passed"], outcomes
    assert not missing_tests(rule)
    assert not unnoticed_thresholds([rule], Samples())


@pytest.mark.parametrize("name", ["null", "true", "7", "1e5", "0x1f", "a-b", "3-4"])
def test_a_name_stays_text(name: str, tmp_path: Path) -> None:
    file = tmp_path / "rule.yaml"
    file.write_text(starter_rule(name, "MY001", TABLES["kernels"]))
    assert load_rule(file).name == name


def test_the_next_code_that_is_free() -> None:
    assert free_code([]) == "MY001"
    assert free_code(["version: 1\ncode: MY001\n", "code: COPY002", "code: MY003"]) == "MY002"
