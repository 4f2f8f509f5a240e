"""The outcome of the tests inside rules as text and as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.engine.mutation import Unnoticed
from analyze.engine.problems import Problem
from analyze.engine.rule_tests import RuleTestOutcome
from analyze.report.console import buffer_console, rendered
from analyze.report.json_writer import to_json
from analyze.words import counted, printable, visible

SCHEMA_VERSION = 1
"""Raised when a key is renamed, removed or changes its meaning; new keys do not raise it."""

_MARKS = {"passed": "\u2713", "failed": "\u2717", "known gap": "i", "unexpected pass": "\u2717"}
_STYLES = {
    "passed": "green",
    "failed": "bold red",
    "known gap": "cyan",
    "unexpected pass": "bold red",
}


@dataclass(frozen=True)
class RuleTestReport:
    """What a run of the tests inside rules showed.

    Attributes:
        names: of the rules, by code.
        outcomes: one per test, those of one rule together.
        missing: what the tests of a rule do not show; empty unless asked for.
        thresholds: how many were nudged; None unless asked for.
        unnoticed: those that no test notices.
    """

    names: dict[str, str]
    outcomes: Sequence[RuleTestOutcome]
    missing: Sequence[Problem] = ()
    thresholds: int | None = None
    unnoticed: Sequence[Unnoticed] = ()

    @property
    def failed(self) -> bool:
        """Whether any test failed, or passed although it was not expected to."""
        return any(outcome.failed for outcome in self.outcomes)

    def tally(self) -> dict[str, int]:
        """Return how many tests came out which way."""
        counts = Counter[str](outcome.status for outcome in self.outcomes)
        return {status: counts[status] for status in _MARKS}


def rule_tests_as_text(report: RuleTestReport, *, color: bool = False) -> str:
    """Return the outcome of every test, what is missing, and the tally."""
    console = buffer_console(color=color)
    for code, outcomes in groupby(report.outcomes, lambda outcome: outcome.code):
        console.print(Text(f"{code} {report.names[code]}", style="bold"))
        for outcome in outcomes:
            _print_outcome(console, outcome)
    _print_missing(console, report.missing)
    _print_unnoticed(console, report.unnoticed)
    console.print(Text(f"\n{closing_line(report)}", style="bold"))
    return rendered(console)


def closing_line(report: RuleTestReport) -> str:
    """Return the tally of the tests and of what else was looked at."""
    tally = report.tally()
    words = [
        f"{tally['passed']} passed",
        f"{tally['failed']} failed",
        counted(tally["known gap"], "known gap"),
        counted(tally["unexpected pass"], "unexpected pass", "unexpected passes"),
    ]
    if report.missing:
        words.append(counted(len(report.missing), "missing test"))
    if report.thresholds is not None:
        thresholds = counted(report.thresholds, "threshold")
        words.append(f"{len(report.unnoticed):,} of {thresholds} unnoticed")
    return f"{counted(len(report.names), 'rule')}: {', '.join(words)}"


def _print_outcome(console: Console, outcome: RuleTestOutcome) -> None:
    line = Text("  ")
    line.append(f"{_MARKS[outcome.status]} {outcome.status}", style=_STYLES[outcome.status])
    line.append(f"  {printable(outcome.name)}")
    console.print(line)
    for problem in outcome.problems:
        _print_problem(console, problem)


def _print_problem(console: Console, problem: Problem) -> None:
    """Print a problem unwrapped, so that the caret stays where it points."""
    for line in problem.render().splitlines():
        console.print(Text(f"    {visible(line)}"), soft_wrap=True)


def _print_missing(console: Console, missing: Sequence[Problem]) -> None:
    if missing:
        console.print(Text("\nMissing tests", style="bold"))
    for problem in missing:
        _print_problem(console, problem)


def _print_unnoticed(console: Console, unnoticed: Sequence[Unnoticed]) -> None:
    if unnoticed:
        console.print(Text("\nThresholds that no test notices", style="bold"))
    for found in unnoticed:
        where, others = found.where, " or ".join(map(_number, found.nudges))
        place = f"{where.file}:{where.line}:{where.column}"
        sentence = f"{found.code} {found.threshold}: {_number(found.value)} could be {others}"
        console.print(Text(f"  {visible(place)}: {visible(sentence)}"), soft_wrap=True)


def _number(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) and value < 1000 else f"{value:.0f}"


def rule_tests_as_json(report: RuleTestReport) -> str:
    """Return the same as versioned JSON."""
    return to_json(
        [
            {
                "schema_version": SCHEMA_VERSION,
                "tests": [_outcome(outcome) for outcome in report.outcomes],
                "missing": [_problem(problem) for problem in report.missing],
                "thresholds": report.thresholds,
                "unnoticed": [_threshold(found) for found in report.unnoticed],
                "tally": {
                    status.replace(" ", "_"): count for status, count in report.tally().items()
                },
            }
        ]
    )


def _outcome(outcome: RuleTestOutcome) -> dict[str, Any]:
    return {
        "code": outcome.code,
        "name": outcome.name,
        "status": outcome.status.replace(" ", "_"),
        "problems": [_problem(problem) for problem in outcome.problems],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    where = problem.where
    return {
        "file": where.file,
        "line": where.line,
        "column": where.column,
        "message": problem.message,
        "help": problem.help,
    }


def _threshold(found: Unnoticed) -> dict[str, Any]:
    return {
        "code": found.code,
        "threshold": found.threshold,
        "file": found.where.file,
        "line": found.where.line,
        "column": found.where.column,
        "value": found.value,
        "unnoticed": list(found.nudges),
    }
