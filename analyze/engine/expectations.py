"""Compare what a rule said with what its test asserts."""

import math
from collections.abc import Mapping
from typing import Any

from analyze.engine.model import Expected
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.engine.result import Finding
from analyze.engine.run import RuleResult
from analyze.engine.yaml_file import KeyPath

_TOLERANCE = 1e-6
"""Relative; measures are written with a few digits."""


def compare(expected: Expected, result: RuleResult, path: KeyPath, reporter: Reporter) -> None:
    """Report what differs; severity, measures and message are those of the first finding."""
    if expected.state is not None and result.state != expected.state:
        detail = result.error or result.not_applicable
        because = f": {detail}" if detail else ""
        message = f"the state is {result.state}, not {expected.state}{because}"
        reporter.add((*path, "state"), message)
        return
    if result.error is not None and expected.state is None:
        reporter.add(path, f"the rule could not be evaluated: {result.error}")
        return
    finding = next(iter([*result.findings, *result.ignored]), None)
    if finding is not None:
        _compare_finding(expected, finding, path, reporter)
    elif expected.severity or expected.measures or expected.message_contains:
        reporter.add(path, f"there is no finding: the state is {result.state}")


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
    _compare_measures(expected.measures, finding.measures, (*path, "measures"), reporter)


def _compare_measures(
    expected: Mapping[str, Any], measures: Mapping[str, Any], path: KeyPath, reporter: Reporter
) -> None:
    for name, wanted in expected.items():
        if name not in measures:
            reporter.add((*path, name), f"no measure '{name}'", did_you_mean(name, measures))
        elif not _same(measures[name], wanted):
            reporter.add((*path, name), f"{name} is {measures[name]}, not {wanted}")


def _same(value: Any, wanted: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(wanted, int | float)
    if numbers and not isinstance(value, bool) and not isinstance(wanted, bool):
        return math.isclose(value, wanted, rel_tol=_TOLERANCE, abs_tol=1e-9)
    return type(value) is type(wanted) and bool(value == wanted)
