"""Run the tests inside rules: on a shipped sample, on rows, or on raw trace events."""

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

from analyze.engine.data import Tables, TraceTables
from analyze.engine.document import KeyPath
from analyze.engine.expectations import check_assertions, compare
from analyze.engine.model import Expected, RuleTest
from analyze.engine.params import quantity_of, resolve_param
from analyze.engine.problems import InvalidRulesError, Problem, did_you_mean
from analyze.engine.replay import MAX_EVENTS, replay
from analyze.engine.reporting import Reporter
from analyze.engine.rule import Rule
from analyze.engine.run import run_rule
from analyze.engine.syntax import ExpressionError
from analyze.engine.written_tables import InvalidTestError, write_tables
from analyze.errors import AnalyzeError
from analyze.tables.build import load_trace
from analyze.temporary import temporary_folder

Status = Literal["passed", "failed", "known gap", "unexpected pass"]

_INPUTS = ("trace", "rows", "events")
_FIRING = ("mismatch", "benign", "intermittent", "informative")
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class RuleTestOutcome:
    """How one test of a rule went.

    Attributes:
        code, name: of the rule and of the test.
        status: ``known gap`` is a ``todo`` test that fails as expected; ``unexpected pass`` is one
            that passes, so that ``todo`` can go.
        problems: what differs, with positions.
    """

    code: str
    name: str
    status: Status
    problems: tuple[Problem, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it makes the run of the tests fail."""
        return self.status in ("failed", "unexpected pass")


def run_rule_tests(
    rules: Iterable[Rule], samples: "Samples | None" = None
) -> list[RuleTestOutcome]:
    """Run the tests of rules, in the order they are written; samples are read once."""
    samples = samples or Samples()
    return [
        run_rule_test(rule, index, samples)
        for rule in rules
        for index in range(len(rule.model.tests))
    ]


def missing_tests(rule: Rule) -> list[Problem]:
    """Return what the tests of a rule do not show: that it fires, and that it stays silent.

    A known gap shows nothing, and neither does a trace that cannot answer.
    """
    shown = [test.expect for test in rule.model.tests if not test.todo]
    missing = []
    if not any(_fires(expected) for expected in shown):
        missing.append("fires")
    if not any(expected.state == "pass" or expected.findings == 0 for expected in shown):
        missing.append("stays silent (state: pass)")
    where = rule.document.locate(("tests",), key=True)
    return [Problem(where, f"{rule.code} has no test in which it {what}") for what in missing]


def _fires(expected: Expected) -> bool:
    if expected.state is not None:
        return expected.state in _FIRING
    return bool(expected.findings or expected.severity or expected.message_contains)


def sample_traces() -> Path:
    """Return the folder of shipped samples: inside the package, or beside it in a checkout."""
    installed = _PACKAGE / "_sample_traces"
    return installed if installed.is_dir() else _PACKAGE.parent / "sample_traces"


class Samples:
    """The shipped sample traces, by name, read once."""

    def __init__(self) -> None:
        self._files = {path.name.split(".")[0]: path for path in sample_traces().glob("*.json*")}
        self._read: dict[str, Tables] = {}

    def tables(self, name: str) -> Tables:
        """Return the tables of a sample.

        Raises:
            InvalidTestError: there is no such sample.
        """
        if name not in self._files:
            known = did_you_mean(name, self._files)
            raise InvalidTestError(("trace",), f"no sample trace '{name}'", known)
        if name not in self._read:
            self._read[name] = TraceTables(load_trace(self._files[name]))
        return self._read[name]


def run_rule_test(rule: Rule, index: int, samples: Samples) -> RuleTestOutcome:
    """Run one test of a rule, given by its position."""
    test = rule.model.tests[index]
    reporter = Reporter(rule.document)
    with _reporting(("tests", index), reporter):
        check_test(rule, test)
        run_on(rule, index, tables_of(rule, test, samples), reporter)
    problems = tuple(reporter.problems)
    return RuleTestOutcome(rule.code, test.name, _status(test, problems), problems)


def run_on(rule: Rule, index: int, tables: Tables, reporter: Reporter) -> None:
    """Run a rule on the input of one of its tests and report what differs.

    Args:
        rule: the rule.
        index: position of the test.
        tables: the test's input.
        reporter: collects what differs, and what is wrong with the test.
    """
    test, path = rule.model.tests[index], ("tests", index)
    with _reporting(path, reporter):
        rule = _with_params(rule, test)
        compare(test.expect, run_rule(rule, tables), tables, (*path, "expect"), reporter)


@contextmanager
def _reporting(path: KeyPath, reporter: Reporter) -> Iterator[None]:
    """Report what goes wrong inside as problems of the test at ``path``."""
    try:
        yield
    except InvalidTestError as error:
        reporter.add((*path, *error.path), error.message, error.help, key=error.key)
    except InvalidRulesError as error:
        reporter.problems += error.problems
    except AnalyzeError as error:
        reporter.add(path, str(error))


def _status(test: RuleTest, problems: tuple[Problem, ...]) -> Status:
    if test.todo:
        return "known gap" if problems else "unexpected pass"
    return "failed" if problems else "passed"


def check_test(rule: Rule, test: RuleTest) -> None:
    """Check what can be checked of a test without running it.

    Raises:
        InvalidTestError: it has no input, or more than one, or asserts nothing.
    """
    given = [name for name in _INPUTS if getattr(test, name) is not None]
    if len(given) != 1:
        raise InvalidTestError((), f"a test has exactly one of {', '.join(_INPUTS)}")
    check_assertions(test.expect, rule)


def tables_of(rule: Rule, test: RuleTest, samples: Samples) -> Tables:
    """Return the input of a test.

    Raises:
        InvalidTestError: it is not a usable input.
    """
    if test.trace is not None:
        return samples.tables(test.trace)
    if test.rows is not None:
        return write_tables(rule.compile(), test)
    return _replayed(test)


def _with_params(rule: Rule, test: RuleTest) -> Rule:
    params = dict(rule.params)
    for name, written in test.params.items():
        if name not in params:
            known = did_you_mean(name, params)
            message = f"unknown parameter '{name}'"
            raise InvalidTestError(("params", name), message, known, key=True)
        try:
            params[name] = resolve_param(written)
        except ExpressionError as error:
            raise InvalidTestError(("params", name), error.message, error.help) from None
    return dataclasses.replace(rule, params=params)


def _replayed(test: RuleTest) -> Tables:
    events = test.events or []
    if len(events) * test.repeat > MAX_EVENTS:
        raise InvalidTestError(("repeat",), f"more than {MAX_EVENTS} events")
    document = {
        "schemaVersion": 1,
        **test.metadata,
        "traceEvents": replay(events, test.repeat, _every(test)),
    }
    with temporary_folder() as folder:
        file = folder / "events.json"
        try:
            file.write_bytes(orjson.dumps(document))
        except TypeError as error:
            raise InvalidTestError(("events",), f"cannot be written as JSON: {error}") from None
        try:
            return TraceTables(load_trace(file))
        except AnalyzeError as error:
            message = str(error).replace(str(file), "the events")
            raise InvalidTestError(("events",), message) from None


def _every(test: RuleTest) -> float:
    """Return the microseconds between two repetitions."""
    written = test.every
    if written is None and test.repeat > 1:
        message = "'repeat' needs 'every', the microseconds from one start to the next"
        raise InvalidTestError((), message)
    if isinstance(written, str):
        try:
            written = quantity_of(written)
        except ExpressionError as error:
            raise InvalidTestError(("every",), error.message, error.help) from None
        if written is None:
            raise InvalidTestError(("every",), "must be a time, such as 100 or ms(1)")
    return float(written or 0)
