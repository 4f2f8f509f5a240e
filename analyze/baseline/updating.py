"""Make a baseline from reports, and bring one up to date without hiding anything new."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from analyze.baseline.change import change_since, main_amount
from analyze.baseline.comparing import held, is_of_other_program, vanished
from analyze.baseline.model import Baseline, Entry, Key
from analyze.baseline.scope import distinct_traces, scope_of
from analyze.engine.result import LEVELS, Finding, TraceReport
from analyze.words import printable


@dataclass(frozen=True)
class Acceptance:
    """When findings were accepted, and why.

    Attributes:
        date: of today, as year-month-day.
        reason: why; None where nobody says so.
    """

    date: str
    reason: str | None = None


@dataclass(frozen=True)
class Found:
    """A finding with the entry that would be written for it."""

    finding: Finding
    entry: Entry


@dataclass(frozen=True)
class Step:
    """What becomes of one entry, or of one finding that has none.

    Attributes:
        kind: ``left out``: a finding that is new or worse and was not accepted; ``unproven``: an
            entry that was not found, while the traces do not prove that it is gone.
        shown: the entry as it is now, or as it was where it is gone.
        written: what stands in the file afterwards; None for nothing.
    """

    kind: Literal["kept", "unproven", "added", "removed", "tightened", "raised", "left out"]
    shown: Entry
    written: Entry | None


@dataclass(frozen=True)
class Update:
    """A baseline brought up to date, and how.

    Attributes:
        baseline: what is to be written.
        steps: one for each entry and each new finding.
        traces: those that were checked.
        is_of_other_program: that is what their findings tell, so that none is taken as gone.
    """

    baseline: Baseline
    steps: Sequence[Step]
    traces: Sequence[str]
    is_of_other_program: bool


def create(reports: Sequence[TraceReport], acceptance: Acceptance, *, by_trace: bool) -> Baseline:
    """Return a baseline of everything that is found.

    Args:
        reports: of the traces.
        acceptance: of the findings.
        by_trace: see :class:`Baseline`.
    """
    found = _found(reports, acceptance, by_trace=by_trace)
    baseline = Baseline(traces=_without_scope(reports, by_trace=by_trace), by_trace=by_trace)
    return baseline.with_findings([each.entry for each in found.values()])


def update(
    baseline: Baseline,
    reports: Sequence[TraceReport],
    tolerance: float,
    acceptance: Acceptance,
    *,
    accept: bool,
) -> Update:
    """Remove what is gone and note what is better; what is new or worse only if it is accepted.

    Args:
        baseline: as it was.
        reports: of the traces.
        tolerance: the relative change of an amount that is none.
        acceptance: of what is new or worse.
        accept: whether that is accepted.
    """
    found = _found(reports, acceptance, by_trace=baseline.by_trace)
    gone = {entry.key for _, entry in vanished(reports, baseline)}
    steps = [
        Step("removed", entry, None)
        if entry.key in gone
        else _kept(entry, found.get(entry.key), tolerance, accept=accept)
        for entry in baseline.findings
    ]
    new = [each.entry for key, each in found.items() if key not in baseline.by_key]
    steps += [
        Step("added", entry, entry) if accept else Step("left out", entry, None) for entry in new
    ]
    written = [step.written for step in steps if step.written is not None]
    traces = max(baseline.traces, _without_scope(reports, by_trace=baseline.by_trace))
    renewed = baseline.model_copy(update={"traces": traces})
    checked = list(dict.fromkeys(report.trace for report in reports))
    return Update(
        renewed.with_findings(written), steps, checked, is_of_other_program(reports, baseline)
    )


def _without_scope(reports: Sequence[TraceReport], *, by_trace: bool) -> int:
    return distinct_traces([r for r in reports if scope_of(r, by_trace=by_trace) is None])


def _kept(entry: Entry, found: Found | None, tolerance: float, *, accept: bool) -> Step:
    if found is None:
        return Step("unproven", entry, entry)
    change = change_since(entry, found.finding, tolerance)
    reason = found.entry.reason if change.worse and found.entry.reason else entry.reason
    changed = found.entry.model_copy(update={"date": entry.date, "reason": reason})
    if change.worse:
        return Step("raised", changed, changed) if accept else Step("left out", changed, entry)
    return Step("tightened", changed, changed) if change.better else Step("kept", entry, entry)


def _found(
    reports: Sequence[TraceReport], acceptance: Acceptance, *, by_trace: bool
) -> dict[Key, Found]:
    """Return the findings by what identifies them; of several traces the worst."""
    found: dict[Key, Found] = {}
    for report in reports:
        scope = scope_of(report, by_trace=by_trace)
        for finding in held(report):
            entry = _entry(finding, scope, acceptance)
            other = found.get(entry.key)
            if other is None or _badness(finding) > _badness(other.finding):
                found[entry.key] = Found(finding, entry)
    return found


def _badness(finding: Finding) -> tuple[int, bool, float]:
    amount = main_amount(finding)
    severity = LEVELS.index(finding.severity)
    return severity, finding.state == "mismatch", amount[1] if amount else 0.0


def _entry(finding: Finding, scope: str | None, acceptance: Acceptance) -> Entry:
    return Entry(
        code=finding.code,
        name=finding.name,
        scope=scope,
        fingerprint=finding.fingerprint,
        severity=finding.severity,
        state=finding.state,
        message=printable(finding.message),
        group={name: _short(value) for name, value in finding.group.items()},
        per=finding.per,
        units_mismatching=finding.units_mismatching,
        units_total=finding.units_total,
        savings_us=finding.savings_us,
        savings_share=finding.savings_share,
        measures={name: _short(value) for name, value in finding.measures.items()},
        date=acceptance.date,
        reason=acceptance.reason,
    )


def _short(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value
