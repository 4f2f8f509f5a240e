"""A rule that found nothing has not passed where it could not look at most of what it is about."""

from collections.abc import Callable
from typing import Any

import pytest

from analyze.engine.run import RuleResult

Check = Callable[..., RuleResult]

RULE = """\
from: kernels
where: {family: gemm, op_chain: {contains: layer_norm}}
params: {most: 0}
measure: {n: count()}
expect: n <= params.most
"""
UNITS = [{"index": 0}]


def gemms(known: int, unknown: int) -> list[dict[str, Any]]:
    row = {"family": "gemm", "forward": 0}
    return [{**row, "op_chain": "aten::mm"}] * known + [row] * unknown


def test_where_most_rows_are_unknown_nothing_found_is_no_pass(check: Check) -> None:
    found = check(RULE, gemms(known=1, unknown=97), UNITS)
    assert found.state == "not_applicable"
    assert found.not_applicable == (
        "op_chain is not known for 97 of the 98 rows of kernels it decides on"
    )
    assert found.undecided_rows == 97


def test_up_to_half_of_the_rows_may_be_unknown(check: Check) -> None:
    found = check(RULE, gemms(known=5, unknown=5), UNITS)
    assert (found.state, found.undecided_rows) == ("pass", 5)
    assert check(RULE, gemms(known=4, unknown=5), UNITS).state == "not_applicable"


def test_only_rows_that_the_other_conditions_leave_are_asked_for(check: Check) -> None:
    others = [{"family": "norm", "forward": 0, "op_chain": "aten::mm"}] * 50
    found = check(RULE, [*others, *gemms(known=0, unknown=2)], UNITS)
    assert found.not_applicable == (
        "op_chain is not known for any of the 2 rows of kernels it decides on"
    )


def test_what_holds_even_if_all_of_them_match_is_a_pass(check: Check) -> None:
    lenient = RULE.replace("most: 0", "most: 3")
    assert check(lenient, gemms(known=1, unknown=3), UNITS).state == "pass"
    assert check(lenient, gemms(known=1, unknown=4), UNITS).state == "not_applicable"


def test_what_is_found_is_found_however_much_is_unknown(check: Check) -> None:
    seen = {"family": "gemm", "forward": 0, "op_chain": "aten::layer_norm"}
    assert check(RULE, [seen, *gemms(known=0, unknown=9)], UNITS).state == "mismatch"


@pytest.mark.parametrize(
    "where", ["{any: [{op_chain: {exists: false}}, {family: norm}]}", "{op_chain: {exists: true}}"]
)
def test_asking_whether_a_value_is_known_decides(check: Check, where: str) -> None:
    rule = RULE.replace("{family: gemm, op_chain: {contains: layer_norm}}", where)
    assert check(rule, gemms(known=1, unknown=9), UNITS).undecided_rows == 0


def test_a_rule_that_expects_nothing_has_not_found_nothing_either(check: Check) -> None:
    rule = RULE.replace("expect: n <= params.most\n", "")
    assert check(rule, gemms(known=3, unknown=1), UNITS).state == "pass"
    assert check(rule, gemms(known=1, unknown=3), UNITS).state == "not_applicable"
