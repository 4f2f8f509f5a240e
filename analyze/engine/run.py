"""Run rules on a trace and put together its report. One failing rule never stops the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from analyze.engine.data import Tables, TraceTables
from analyze.engine.doubt import why_in_doubt
from analyze.engine.evaluate import evaluate
from analyze.engine.findings import make_finding
from analyze.engine.fingerprint import fingerprints
from analyze.engine.folding import Chains, fold
from analyze.engine.model import State
from analyze.engine.result import (
    Checked,
    Finding,
    Ignored,
    NotApplicable,
    RuleFailure,
    TraceReport,
    UnitCount,
)
from analyze.engine.rule import Rule
from analyze.engine.selection import EVERYTHING, Selection
from analyze.tables.build import Trace
from analyze.tables.coverage import coverage, quality


@dataclass
class RuleResult:
    """What one rule says about one trace.

    Attributes:
        rule: the rule.
        findings: ranked.
        ignored: benign findings that the rule asks not to report.
        not_applicable: why the trace cannot answer, wholly or for some groups.
        error: why the rule could not be evaluated.
        undecided_rows: rows of which ``where`` could not tell whether they match, or of those that
            do, a ``count`` could not tell whether to count them.
        chains: op chains of the rows behind each finding, by fingerprint.
    """

    rule: Rule
    findings: list[Finding] = field(default_factory=list)
    ignored: list[Finding] = field(default_factory=list)
    not_applicable: str | None = None
    error: str | None = None
    undecided_rows: int = 0
    chains: dict[str, Chains] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """The state of the rule as a whole: of its first finding, if it has any."""
        if self.error is not None:
            return "error"
        first = next(iter([*self.findings, *self.ignored]), None)
        if first is not None:
            return first.state
        return "pass" if self.not_applicable is None else "not_applicable"


def run_rule(rule: Rule, tables: Tables) -> RuleResult:
    """Run one rule; whatever goes wrong in it becomes the state ``error``."""
    try:
        return _run_rule(rule, tables)
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - rules are isolated
        reason = (str(error).splitlines() or [""])[0]
        return RuleResult(rule, error=f"{type(error).__name__}: {reason}")


def _run_rule(rule: Rule, tables: Tables) -> RuleResult:
    program = rule.compile(tables.facts)
    outcome = evaluate(program, tables, rule.model.quorum)
    not_applicable = outcome.not_applicable or outcome.unknown
    if outcome.undecided_rows and not (outcome.judged or not_applicable):
        not_applicable = why_in_doubt(rule, program, tables)
    result = RuleResult(rule, not_applicable=not_applicable, undecided_rows=outcome.undecided_rows)
    identities = fingerprints(rule.code, [judged.group for judged in outcome.judged])
    for judged, identity in zip(outcome.judged, identities, strict=True):
        finding = make_finding(rule, program, judged, tables.facts, identity)
        result.chains[finding.fingerprint] = judged.chains
        ignore = judged.benign is not None and judged.benign.ignore
        (result.ignored if ignore else result.findings).append(finding)
    result.findings.sort(key=lambda finding: finding.rank)
    return result


def run_rules(
    trace: Trace, rules: Sequence[Rule], selection: Selection = EVERYTHING
) -> TraceReport:
    """Run rules on a trace.

    Args:
        trace: the trace with its tables.
        rules: in any order.
        selection: says which rules' findings are ignored.

    Returns:
        The report: findings ranked by severity, state and savings, consequences folded.
    """
    tables = TraceTables(trace)
    everything = [run_rule(rule, tables) for rule in rules]
    results = [result for result in everything if selection.ignored(result.rule) is None]
    findings = [finding for result in results for finding in result.findings]
    explains = {rule.code: rule.model.explains for rule in rules}
    chains = {key: value for result in results for key, value in result.chains.items()}
    return TraceReport(
        trace=trace.name,
        unit=UnitCount(trace.forward_source, trace.table("forwards").height),
        coverage=coverage(trace),
        quality=quality(trace),
        findings=tuple(fold(findings, explains, chains)),
        passed=tuple(_passed(result) for result in results if _has_passed(result)),
        not_applicable=tuple(
            NotApplicable(*_named(result), result.not_applicable, result.rule.category)
            for result in everything
            if result.not_applicable is not None
        ),
        errors=tuple(
            RuleFailure(*_named(result), result.error, result.rule.category)
            for result in everything
            if result.error is not None
        ),
        ignored=tuple(_ignored(everything, selection)),
    )


def _ignored(results: Sequence[RuleResult], selection: Selection) -> Iterator[Ignored]:
    for result in results:
        ignore = selection.ignored(result.rule)
        has_verdict = bool(result.findings) or _has_passed(result)
        if ignore is not None and has_verdict:
            count = len(result.findings)
            yield Ignored(*_named(result), ignore.reason, count, result.rule.category)


def _named(result: RuleResult) -> tuple[str, str]:
    return result.rule.code, result.rule.name


def _has_passed(result: RuleResult) -> bool:
    return not (result.findings or result.not_applicable or result.error)


def _passed(result: RuleResult) -> Checked:
    because = result.ignored[0].because if result.ignored else None
    return Checked(*_named(result), because, result.undecided_rows, result.rule.category)
