"""Compare reports with a baseline: what is new, known, worse, better, and what is gone."""

import dataclasses
from collections.abc import Iterator, Sequence

from analyze.baseline.change import TOLERANCE, change_since
from analyze.baseline.model import Baseline, Entry
from analyze.baseline.scope import distinct_traces, scope_of
from analyze.engine.result import Finding, TraceReport, Vanished
from analyze.tables.units import unit_name

_MARKED = ("step", "forward")
"""Units that a trace marks or does not."""

_ENOUGH_TO_TELL = 3
"""Findings that are all gone at once where others are found: of fewer that is no wonder."""

_HELD = ("mismatch", "intermittent")
"""States of findings that a baseline holds: what somebody may want to repair."""


def compared(
    reports: Sequence[TraceReport], baseline: Baseline, file: str, tolerance: float = TOLERANCE
) -> list[TraceReport]:
    """Return the reports with what a baseline knows of their findings.

    Args:
        reports: of all traces of the run.
        baseline: what is known.
        file: its path, as given.
        tolerance: the relative change of an amount that is none.
    """
    gone = list(vanished(reports, baseline))
    return [
        dataclasses.replace(
            report,
            findings=tuple(
                _compared(finding, report, baseline, tolerance) for finding in report.findings
            ),
            baseline=file,
            vanished=tuple(_vanished(entry) for first, entry in gone if first is report),
        )
        for report in reports
    ]


def held(report: TraceReport) -> Iterator[Finding]:
    """Yield the findings of a report that a baseline holds."""
    return (finding for finding in report.findings if finding.state in _HELD)


def vanished(
    reports: Sequence[TraceReport], baseline: Baseline
) -> Iterator[tuple[TraceReport, Entry]]:
    """Yield the entries that are found no more, each with the first report that it is about.

    An entry is gone only where every trace that it is about was read in full and answers its rule:
    what could not be checked this time proves nothing, nor does a trace without the steps or
    forwards that the entry is judged per, which is of another program. What may be about any trace
    is gone only where as many traces are checked as the baseline was made from, and where these
    are of the same program, as far as their findings tell.
    """
    is_of_other = is_of_other_program(reports, baseline)
    for entry in baseline.findings:
        if entry.scope is None and is_of_other:
            continue
        about = [r for r in reports if scope_of(r, by_trace=baseline.by_trace) == entry.scope]
        expected = baseline.traces if entry.scope is None else 1
        is_whole_run = about and distinct_traces(about) >= expected
        if is_whole_run and all(_is_absent(entry, report) for report in about):
            yield about[0], entry


def is_of_other_program(reports: Sequence[TraceReport], baseline: Baseline) -> bool:
    """Whether traces share no finding with a baseline of several, but have others.

    Only what may be about any trace is looked at; what ``capture`` wrote says itself what it is.

    Args:
        reports: of all traces of the run.
        baseline: what is known.
    """
    known = {entry.fingerprint for entry in baseline.findings if entry.scope is None}
    about = [r for r in reports if scope_of(r, by_trace=baseline.by_trace) is None]
    found = {finding.fingerprint for report in about for finding in held(report)}
    return len(known) >= _ENOUGH_TO_TELL and bool(found) and known.isdisjoint(found)


def _compared(
    finding: Finding, report: TraceReport, baseline: Baseline, tolerance: float
) -> Finding:
    if finding.state not in _HELD:
        return finding
    scope = scope_of(report, by_trace=baseline.by_trace)
    entry = baseline.by_key.get((scope, finding.fingerprint))
    if entry is None:
        return dataclasses.replace(
            finding, baseline="new", baseline_changes=(), baseline_reason=None
        )
    change = change_since(entry, finding, tolerance)
    return dataclasses.replace(
        finding,
        baseline="worse" if change.worse else "better" if change.better else "known",
        baseline_changes=change.worse or change.better,
        baseline_reason=entry.reason,
    )


def _is_absent(entry: Entry, report: TraceReport) -> bool:
    if any(finding.fingerprint == entry.fingerprint for finding in held(report)):
        return False
    is_whole = not report.quality["truncated"] and not report.quality["events_lost"]
    return is_whole and _has_units(entry, report) and _has_full_verdict(entry.code, report)


def _has_units(entry: Entry, report: TraceReport) -> bool:
    """Whether a trace has what an entry is judged per: a whole trace and its regions always are."""
    unit = unit_name(report.coverage["forward_is"])
    return entry.per not in _MARKED or entry.per == unit


def _has_full_verdict(code: str, report: TraceReport) -> bool:
    """Whether a rule was run, all rows were decided, and no group was left unanswered."""
    unanswered = {rule.code for rule in report.not_applicable}
    unanswered |= {rule.code for rule in report.errors}
    passed = {rule.code for rule in report.passed if not rule.undecided_rows}
    found = {finding.code for finding in report.findings}
    return code in passed | found and code not in unanswered


def _vanished(entry: Entry) -> Vanished:
    return Vanished(
        code=entry.code,
        name=entry.name,
        fingerprint=entry.fingerprint,
        severity=entry.severity,
        message=entry.message,
        scope=entry.scope,
        date=entry.date,
        reason=entry.reason,
    )
