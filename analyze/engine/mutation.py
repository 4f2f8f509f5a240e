"""Nudge the thresholds of a rule one by one and see which of them no test of the rule notices.

A threshold is a numeric or true/false parameter, or a number that is written out in ``expect``,
``severity``, ``requires``, ``where``, ``benign`` or ``uncertain``. Numbers in measures are no
thresholds. A nudge goes up and down by half; whole numbers stay whole and move by one at least, and
nothing is less than zero.
"""

import ast
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyze.engine.data import Tables
from analyze.engine.document import KeyPath
from analyze.engine.keys import Keys
from analyze.engine.model import RuleModel, RuleTest
from analyze.engine.problems import Location
from analyze.engine.reporting import Reporter
from analyze.engine.rule import Rule
from analyze.engine.rule_tests import Samples, run_on, run_rule_test, tables_of
from analyze.engine.syntax import parse

FACTOR = 1.5

Threshold = bool | int | float

_BRANCHES = ("all", "any")
_ORDERINGS = ("lt", "lte", "gt", "gte")


@dataclass(frozen=True)
class Unnoticed:
    """A threshold that could be another one as far as the tests of its rule go.

    Attributes:
        code: of the rule.
        threshold: in words: ``params.min_share``, or the key it stands in.
        where: its position.
        value: as it is.
        nudges: the values that no test notices in its place.
    """

    code: str
    threshold: str
    where: Location
    value: Threshold
    nudges: tuple[Threshold, ...]


@dataclass(frozen=True)
class _Site:
    """A threshold in a rule file, and how to make the rule with another one."""

    name: str
    where: Location
    value: Threshold
    changed: Callable[[Threshold], Rule]


def unnoticed_thresholds(rules: Iterable[Rule], samples: Samples) -> list[Unnoticed]:
    """Return the thresholds whose nudges no test notices, in the order they are written.

    Only tests that pass as things are can notice anything.
    """
    return [found for rule in rules for found in _unnoticed_of(rule, samples)]


def thresholds(rule: Rule) -> list[str]:
    """Return what is nudged in a rule, in words."""
    return [site.name for site in _sites(rule)]


def _unnoticed_of(rule: Rule, samples: Samples) -> Iterator[Unnoticed]:
    inputs = _passing_tests(rule, samples)
    for site in _sites(rule):
        nudges = tuple(
            value for value in nudged(site.value) if not _is_noticed(site.changed(value), inputs)
        )
        if nudges:
            yield Unnoticed(rule.code, site.name, site.where, site.value, nudges)


def nudged(value: Threshold) -> list[Threshold]:
    """Return the values that a threshold is replaced by."""
    if isinstance(value, bool):
        return [not value]
    if value == 0:
        return [1]
    if not float(value).is_integer():
        return [value * FACTOR, value / FACTOR]
    sign, size = (1 if value > 0 else -1), abs(value)
    return [sign * math.ceil(size * FACTOR), sign * math.floor(size / FACTOR)]


def _passing_tests(rule: Rule, samples: Samples) -> dict[int, Tables]:
    """Return the inputs of the tests that pass, by position."""
    return {
        index: tables_of(rule, test, samples)
        for index, test in enumerate(rule.model.tests)
        if _passes(rule, index, test, samples)
    }


def _passes(rule: Rule, index: int, test: RuleTest, samples: Samples) -> bool:
    return not test.todo and run_rule_test(rule, index, samples).status == "passed"


def _is_noticed(rule: Rule, inputs: Mapping[int, Tables]) -> bool:
    for index, tables in inputs.items():
        reporter = Reporter(rule.document)
        run_on(rule, index, tables, reporter)
        if reporter.problems:
            return True
    return False


def _sites(rule: Rule) -> Iterator[_Site]:
    for name in rule.model.params:
        value = rule.params[name]
        if isinstance(value, Threshold):
            where = rule.document.locate(("params", name))
            yield _Site(f"params.{name}", where, value, _changed_param(rule, name))
    yield from _sites_in_expressions(rule)
    yield from _sites_in_matchers(rule)


def _changed_param(rule: Rule, name: str) -> Callable[[Threshold], Rule]:
    return lambda value: dataclasses.replace(rule, params={**rule.params, name: value})


def _sites_in_expressions(rule: Rule) -> Iterator[_Site]:
    model = rule.model
    yield from _sites_in(rule, ("expect",), model.expect)
    for index, requirement in enumerate(model.requires):
        yield from _sites_in(rule, ("requires", index, "that"), requirement.that)
    for index, step in enumerate(model.severity if isinstance(model.severity, list) else ()):
        yield from _sites_in(rule, ("severity", index, "when"), step.when)


def _sites_in_matchers(rule: Rule) -> Iterator[_Site]:
    model = rule.model
    yield from _sites_in_matcher(rule, ("where",), model.where)
    for index, benign in enumerate(model.benign):
        yield from _sites_in_matcher(rule, ("benign", index, "when"), benign.when)
    for index, uncertain in enumerate(model.uncertain):
        path = ("uncertain", index, "when")
        if isinstance(uncertain.when, str):
            yield from _sites_in(rule, path, uncertain.when)
        else:
            yield from _sites_in_matcher(rule, path, uncertain.when)


def _sites_in_matcher(rule: Rule, path: KeyPath, tree: Mapping[str, Any]) -> Iterator[_Site]:
    for key, value in tree.items():
        place = (*path, key)
        if key in _BRANCHES:
            for index, branch in enumerate(value):
                yield from _sites_in_matcher(rule, (*place, index), branch)
        elif key == "not":
            yield from _sites_in_matcher(rule, place, value)
        elif key == "expr":
            yield from _sites_in(rule, place, value)
        elif isinstance(value, dict):
            yield from _sites_in_operators(rule, place, value)
        elif _is_number(value):
            yield _whole_site(rule, place, value)


def _sites_in_operators(rule: Rule, path: KeyPath, tests: Mapping[str, Any]) -> Iterator[_Site]:
    for operator, value in tests.items():
        if _is_number(value):
            yield _whole_site(rule, (*path, operator), value)
        elif operator in _ORDERINGS:
            yield from _sites_in(rule, (*path, operator), value)


def _whole_site(rule: Rule, path: KeyPath, value: Threshold) -> _Site:
    """Return a number that is the whole value of a key."""
    return _Site(
        _words(path),
        rule.document.locate(path),
        value,
        lambda other: _with_value(rule, path, other),
    )


def _sites_in(rule: Rule, path: KeyPath, written: object) -> Iterator[_Site]:
    """Yield the numbers that an expression spells out."""
    if not isinstance(written, str):
        return
    tree, skipped = parse(written)
    line = " ".join(written.split("\n")).encode()
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for node in sorted(constants, key=lambda constant: constant.col_offset):
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            start, end = skipped + node.col_offset, skipped + (node.end_col_offset or 0)
            before, after = line[:start].decode(), line[end:].decode()
            yield _Site(
                _words(path),
                rule.document.locate_in(path, len(before), end - start),
                node.value,
                _spelt(rule, path, before, after),
            )


def _spelt(rule: Rule, path: KeyPath, before: str, after: str) -> Callable[[Threshold], Rule]:
    return lambda value: _with_value(rule, path, f"{before}{value!r}{after}")


def _with_value(rule: Rule, path: KeyPath, value: Any) -> Rule:
    model = _replaced(rule.model, path, value)
    assert isinstance(model, RuleModel)  # noqa: S101 - the path leads into it
    return dataclasses.replace(rule, model=model)


def _replaced(node: Any, path: Sequence[str | int], value: Any) -> Any:
    """Return a copy of keys and values with the one at ``path`` replaced."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(node, Keys):
        name = str(first)
        return dataclasses.replace(node, **{name: _replaced(getattr(node, name), rest, value)})
    if isinstance(node, list):
        return [
            _replaced(item, rest, value) if at == first else item for at, item in enumerate(node)
        ]
    return {**node, first: _replaced(node[first], rest, value)}


def _words(path: KeyPath) -> str:
    return ".".join(str(part) for part in path if isinstance(part, str))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
