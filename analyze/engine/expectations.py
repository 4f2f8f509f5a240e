"""Compare what a rule said with what its test asserts."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyze.engine.data import Tables
from analyze.engine.document import KeyPath
from analyze.engine.evaluate import Evaluation, MeasuredGroup
from analyze.engine.findings import plain
from analyze.engine.judge import middle_values
from analyze.engine.model import Expected, State
from analyze.engine.needs import missing
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.engine.result import Finding
from analyze.engine.rule import Rule
from analyze.engine.run import RuleResult
from analyze.engine.written_tables import InvalidTestError

_TOLERANCE = 1e-6
"""Relative; measures are written with a few digits."""

_MAX_GROUPS_SHOWN = 5


@dataclass(frozen=True)
class Observed:
    """What a test looks at: one finding, or one group in which nothing was found.

    Attributes:
        state: of the group, or of the rule.
        finding: None where nothing was found.
        measures: of the finding, else the medians over the units; None where there is no single
            group to measure.
    """

    state: State
    finding: Finding | None
    measures: Mapping[str, Any] | None


def compare(
    expected: Expected,
    result: RuleResult,
    tables: Tables,
    path: KeyPath,
    reporter: Reporter,
) -> None:
    """Report what differs.

    Args:
        expected: what the test asserts.
        result: what the rule said.
        tables: what the rule was run on.
        path: the place of the assertions in the rule file.
        reporter: collects what differs.

    Raises:
        InvalidTestError: the test selects a group that there is not.
    """
    if result.error is not None and expected.state is None:
        reporter.add(path, f"the rule could not be evaluated: {result.error}")
        return
    observed = _observe(expected, result, tables)
    if expected.state not in (None, observed.state):
        detail = result.error or result.not_applicable
        because = f": {detail}" if detail else ""
        message = f"the state is {observed.state}, not {expected.state}{because}"
        reporter.add((*path, "state"), message)
        return
    if expected.findings not in (None, len(result.findings)):
        message = f"there are {len(result.findings)} findings, not {expected.findings}"
        reporter.add((*path, "findings"), message)
    if observed.finding is not None:
        _compare_finding(expected, observed.finding, path, reporter)
    elif expected.severity or expected.message_contains:
        reporter.add(path, f"there is no finding: the state is {observed.state}")
    _compare_measures(expected.measures, observed, (*path, "measures"), reporter)


def check_assertions(expected: Expected, rule: Rule) -> None:
    """Check that a test asserts something, of groups that the rule can have.

    Raises:
        InvalidTestError: it does not.
    """
    said = dataclasses.replace(expected, group={})
    if said in (Expected(), Expected(message_contains="")):
        help_text = "name a state, findings, severity, measures or message_contains"
        raise InvalidTestError(("expect",), "the test asserts nothing", help_text)
    columns = rule.model.group_by or []
    for column in expected.group:
        if column not in columns:
            message = f"the rule does not group by '{column}'"
            known = did_you_mean(column, columns) or "the rule has no group_by"
            raise InvalidTestError(("expect", "group", column), message, known, key=True)


def _observe(expected: Expected, result: RuleResult, tables: Tables) -> Observed:
    """Return what a test looks at: the group it selects, else the first finding."""
    found = [*result.findings, *result.ignored]
    selected = [finding for finding in found if _is_in(finding.group, expected.group)]
    if selected:
        finding = selected[0]
        state = finding.state if expected.group else result.state
        return Observed(state, finding, finding.measures)
    if result.state in ("error", "not_applicable") and not expected.group:
        return Observed(result.state, None, None)
    return _observe_silence(expected, result, tables)


def _observe_silence(expected: Expected, result: RuleResult, tables: Tables) -> Observed:
    """Return what there is to see of a group, or of a rule, for which nothing was found."""
    if result.error is not None:
        return Observed("error", None, None)
    program = result.rule.compile(tables.facts)
    if missing(program, tables) is not None:
        return Observed("not_applicable", None, None)
    groups = list(Evaluation(program, tables, result.rule.model.quorum).measured_groups())
    selected = [group for group in groups if _is_in(_plain(group.group), expected.group)]
    if expected.group and not selected:
        seen = ", ".join(str(_plain(group.group)) for group in groups[:_MAX_GROUPS_SHOWN])
        message, help_text = "there is no such group", f"there are {seen}" if seen else None
        raise InvalidTestError(("expect", "group"), message, help_text)
    state = _state_of(selected[0]) if expected.group else result.state
    if len(selected) != 1:
        return Observed(state, None, None)
    values = middle_values(selected[0].units)
    return Observed(state, None, {name: plain(values[name]) for name in program.formulas})


def _state_of(group: MeasuredGroup) -> State:
    return "not_applicable" if group.unknown else "pass"


def _is_in(group: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_same(group[name], value) for name, value in wanted.items())


def _plain(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in group.items()}


def _compare_finding(
    expected: Expected, finding: Finding, path: KeyPath, reporter: Reporter
) -> None:
    if expected.severity not in (None, finding.severity):
        message = f"the severity is {finding.severity}, not {expected.severity}"
        reporter.add((*path, "severity"), message)
    contains = expected.message_contains
    for text in [contains] if isinstance(contains, str) else contains:
        if text not in finding.message:
            message = f"the message does not contain '{text}': {finding.message}"
            reporter.add((*path, "message_contains"), message)


def _compare_measures(
    expected: Mapping[str, Any], observed: Observed, path: KeyPath, reporter: Reporter
) -> None:
    if observed.measures is None:
        if expected:
            message = f"nothing was measured: the state is {observed.state}"
            help_text = "of several groups, select one with 'group'"
            reporter.add(path, message, help_text if observed.state == "pass" else None)
        return
    for name, wanted in expected.items():
        if name not in observed.measures:
            known = did_you_mean(name, observed.measures)
            reporter.add((*path, name), f"no measure '{name}'", known)
        elif not _same(observed.measures[name], wanted):
            reporter.add((*path, name), f"{name} is {observed.measures[name]}, not {wanted}")


def _same(value: Any, wanted: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(wanted, int | float)
    if numbers and not isinstance(value, bool) and not isinstance(wanted, bool):
        return math.isclose(value, wanted, rel_tol=_TOLERANCE, abs_tol=1e-9)
    return type(value) is type(wanted) and bool(value == wanted)
