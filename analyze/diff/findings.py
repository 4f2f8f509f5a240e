"""Findings of two traces, matched by fingerprint."""

from collections.abc import Iterable
from dataclasses import dataclass

from analyze.engine.result import Finding, TraceReport


@dataclass(frozen=True)
class FindingChanges:
    """What became of the findings, benign ones aside; each list ranked.

    Attributes:
        new: only in AFTER, of rules that BEFORE answers.
        gone: only in BEFORE, of rules that AFTER answers.
        kept: in both, as (before, after).
        unanswered: in one trace only, and the other cannot answer that rule.
        answered: codes of the rules that both traces answer.
    """

    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    kept: tuple[tuple[Finding, Finding], ...]
    unanswered: tuple[Finding, ...]
    answered: frozenset[str]


def compare_findings(before: TraceReport, after: TraceReport) -> FindingChanges:
    """Match findings by fingerprint."""
    ours, theirs = _problems(before.findings), _problems(after.findings)
    answered = _answered(before) & _answered(after)
    gone = [finding for key, finding in ours.items() if key not in theirs]
    new = [finding for key, finding in theirs.items() if key not in ours]
    return FindingChanges(
        new=tuple(finding for finding in new if finding.code in answered),
        gone=tuple(finding for finding in gone if finding.code in answered),
        kept=tuple((finding, theirs[key]) for key, finding in ours.items() if key in theirs),
        unanswered=tuple(finding for finding in [*gone, *new] if finding.code not in answered),
        answered=answered,
    )


def _problems(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.fingerprint: finding for finding in findings if finding.state != "benign"}


def _answered(report: TraceReport) -> frozenset[str]:
    """Return the rules that came to a verdict: a rule may answer for some of its groups only."""
    found = {finding.code for finding in report.findings}
    passed = {rule.code for rule in report.passed}
    ignored = {rule.code for rule in report.ignored}
    return frozenset(found | passed | ignored)
