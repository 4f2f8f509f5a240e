"""The result of checking one trace: plain, versioned data that every writer renders.

Times are microseconds, sizes bytes, shares 0 to 1; null is unknown.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

SCHEMA_VERSION = 1
"""Raised when a key is renamed, removed or changes its meaning; new keys do not raise it."""

Level = Literal["info", "warning", "error"]
FindingState = Literal["mismatch", "benign", "intermittent", "informative"]
Confidence = Literal["low", "medium", "high"]
BaselineState = Literal["new", "known", "better", "worse"]

LEVELS: tuple[Level, ...] = ("info", "warning", "error")
"""Severities, mildest first."""

CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")
"""Confidences, lowest first."""

_OF_THE_RECORDING = "trace"
"""Category of the rules on the recording itself: what they find puts the rest in doubt."""

_STATES: tuple[FindingState, ...] = ("mismatch", "intermittent", "informative", "benign")


@dataclass(frozen=True)
class Folded:
    """A consequence in short, as its cause lists it."""

    code: str
    title: str
    message: str
    fingerprint: str


@dataclass(frozen=True)
class Place:
    """An event, or a span of time, in which a finding can be seen.

    Attributes:
        name: of the event; of a span what it is, such as ``gap`` or ``forward``.
        start_us: from the trace start; to the nanosecond, as all times.
        dur_us: duration; null where the event has none.
        device, stream: of GPU work, and the device of a gap.
        pid, tid: process and thread of a host event, as the file writes them.
    """

    name: str
    start_us: float
    dur_us: float | None
    device: int | None
    stream: int | None
    pid: str | None
    tid: str | None


@dataclass(frozen=True)
class Finding:
    """What one rule found for one group.

    Attributes:
        code, name, title, category: of the rule.
        state: ``mismatch``; ``benign``: known to be harmless, see ``because``; ``intermittent``:
            too few units mismatch; ``informative``: the rule expects nothing.
        severity: judged on the medians of the mismatching units.
        worst_severity: the severest of any single unit.
        worst_unit: index of that unit.
        guess: the hypothesis that did not hold.
        message, fix: what was seen, and one action.
        measures: medians over the mismatching units.
        group: the columns the rule groups by, with their values.
        per: the unit of repetition in words.
        units_total: units that could be judged.
        units_mismatching: those that mismatch (of an informative rule: all that were judged).
        units_unknown: units in which the expectation could not be evaluated.
        savings_us: median per mismatching unit.
        savings_kind: ``upper_bound`` or ``estimate``.
        savings_of: ``gpu`` or ``cpu``: whose time.
        savings_share: the same as a share of the unit's GPU busy time, or of its CPU time.
        confidence: of the rule, lowered where ``uncertain`` says why.
        status: of the rule: ``stable``, ``preview`` or ``deprecated``.
        because: why it is benign.
        uncertain: what the finding rests on without knowing it.
        evidence: rows of the table.
        places: where the rows that evidence is about are in the trace, in its order, at most 100.
        places_total: how many such rows there are.
        source: the user's source line that most of their time goes to, ``file:line`` as recorded.
        known_problems, references: of the rule.
        fingerprint: stable across runs and machines.
        explained_by: fingerprint of the cause it is folded under. Its savings are part of the
            cause's and must not be added to them.
        folded: the consequences folded under this finding.
        baseline: beside a baseline: ``new``; ``known``; ``better`` or ``worse`` than it was known.
            Null where there is no baseline, and of a finding that a baseline does not hold (it is
            benign or informative).
        baseline_changes: in what it is better or worse, in words.
        baseline_reason: why it was accepted, as the baseline says.
    """

    code: str
    name: str
    title: str
    category: str
    state: FindingState
    severity: Level
    worst_severity: Level
    worst_unit: int | None
    guess: str
    message: str
    fix: str | None
    measures: dict[str, Any]
    group: dict[str, Any]
    per: str
    units_total: int
    units_mismatching: int
    units_unknown: int
    savings_us: float | None
    savings_kind: str | None
    savings_of: str | None
    savings_share: float | None
    confidence: Confidence
    status: str
    because: str | None
    uncertain: tuple[str, ...]
    evidence: tuple[dict[str, Any], ...]
    places: tuple[Place, ...]
    places_total: int
    source: str | None
    known_problems: tuple[str, ...]
    references: tuple[str, ...]
    fingerprint: str
    explained_by: str | None = None
    folded: tuple[Folded, ...] = ()
    baseline: BaselineState | None = None
    baseline_changes: tuple[str, ...] = ()
    baseline_reason: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether a baseline knows it, and it is no worse than that."""
        return self.baseline in ("known", "better")

    @property
    def gates(self) -> bool:
        """Whether it can make a check fail, severity permitting."""
        return self.state == "mismatch" and self.status != "preview" and not self.is_known

    @property
    def is_about_recording(self) -> bool:
        """Whether it is about the recording rather than the program."""
        return is_about_recording(self)

    @property
    def rank(self) -> tuple[int, int, bool, float, str, str]:
        """Sort key: severest first, then by state, then by what could be saved.

        Of equals, what puts the recording itself in doubt comes first.
        """
        return (
            -LEVELS.index(self.severity),
            _STATES.index(self.state),
            not self.is_about_recording,
            -(self.savings_us or 0.0),
            self.code,
            self.fingerprint,
        )


class OfRule(Protocol):
    """What a rule came to: it says of which rule, and of which category that is."""

    @property
    def code(self) -> str:
        """The rule's code."""

    @property
    def category(self) -> str | None:
        """The rule's category; null in results that were stored without it."""


def is_about_recording(entry: OfRule) -> bool:
    """Tell whether a rule is about the recording rather than the program."""
    return entry.category == _OF_THE_RECORDING


@dataclass(frozen=True)
class Checked:
    """A rule whose expectation holds, or one that expects nothing and found nothing.

    Attributes:
        code, name: of the rule.
        because: set where a benign mismatch is ignored.
        undecided_rows: rows that might have matched, or been counted: a value is unknown.
        category: of the rule; null in results that were stored without it.
    """

    code: str
    name: str
    because: str | None = None
    undecided_rows: int = 0
    category: str | None = None


@dataclass(frozen=True)
class NotApplicable:
    """A rule, or some of its groups, that this trace cannot answer, and why."""

    code: str
    name: str
    reason: str
    category: str | None = None


@dataclass(frozen=True)
class RuleFailure:
    """A rule that could not be evaluated: a defect of the rule or of this program."""

    code: str
    name: str
    message: str
    category: str | None = None


@dataclass(frozen=True)
class Ignored:
    """A rule whose findings the configuration ignores, why, and how many there were."""

    code: str
    name: str
    reason: str
    findings: int
    category: str | None = None


@dataclass(frozen=True)
class Vanished:
    """A finding of the baseline that is found no more, although its rule came to a verdict.

    Attributes:
        code, name: of the rule.
        fingerprint: of the finding.
        severity, message: as they were.
        scope: the capture, or the trace file, that it was found in; null for any trace.
        date: when it was accepted, as year-month-day.
        reason: why.
    """

    code: str
    name: str
    fingerprint: str
    severity: Level
    message: str
    scope: str | None
    date: str
    reason: str | None


@dataclass(frozen=True)
class Uncaptured:
    """What ``capture`` was to record and wrote no trace of: its name, how it ended, and why."""

    name: str
    status: str
    reason: str | None


@dataclass(frozen=True)
class Unread:
    """A trace that was to be checked with the others and could not be: as named, and why."""

    trace: str
    message: str


@dataclass(frozen=True)
class UnitCount:
    """What a forward is in the trace (an annotation, ``ProfilerStep``, ``trace``), how many."""

    name: str
    count: int


@dataclass(frozen=True)
class TraceReport:
    """Everything that was found in one trace, findings ranked.

    Attributes:
        trace: the path it was read from.
        unit: what a forward is in it.
        coverage, quality: what was recorded and linked, and how sound it is.
        findings: ranked.
        passed: rules whose expectation holds, and those that expect nothing and found nothing.
        not_applicable: rules that the trace cannot answer.
        errors: rules that failed.
        ignored: rules whose findings the configuration ignores.
        uncaptured: what was to be captured into the same folders and has no trace; said once, with
            the first trace of a run.
        unread: traces that were to be checked with this one and could not be; said once, with the
            first trace of a run.
        views: what a report shows beside the findings; see :mod:`analyze.report.views`. Null where
            no format asked for it.
        baseline: the baseline file that the findings were compared with; null without one.
        vanished: findings of the baseline that are found no more. Of several traces that an entry
            is about, the first says so, and only if it is true of all.
    """

    trace: str
    unit: UnitCount
    coverage: dict[str, Any]
    quality: dict[str, Any]
    findings: tuple[Finding, ...] = ()
    passed: tuple[Checked, ...] = ()
    not_applicable: tuple[NotApplicable, ...] = ()
    errors: tuple[RuleFailure, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    uncaptured: tuple[Uncaptured, ...] = ()
    unread: tuple[Unread, ...] = ()
    views: dict[str, Any] | None = None
    baseline: str | None = None
    vanished: tuple[Vanished, ...] = ()
    schema_version: int = field(default=SCHEMA_VERSION)

    @property
    def checked(self) -> int:
        """How many rules came to a verdict.

        That the recording itself is sound is none where no other rule could say anything.
        """
        seen: list[OfRule] = [*self.findings, *self.ignored]
        unanswered: list[OfRule] = [*self.not_applicable, *self.errors]
        found, silent = ({entry.code for entry in entries} for entries in (seen, unanswered))
        entries = [*seen, *unanswered, *self.passed]
        others = {entry.code for entry in entries if not is_about_recording(entry)}
        if others and not found and others <= silent:
            return 0
        return len(found | {entry.code for entry in self.passed})

    @property
    def why_nothing(self) -> str | None:
        """Why no rule came to a verdict; None where one did."""
        if self.checked:
            return None
        if self.errors:
            return "every rule failed"
        reasons = list(dict.fromkeys(rule.reason for rule in self.not_applicable))
        return f"nothing could be checked: {'; '.join(reasons)}"

    def failing(self, level: Level) -> tuple[Finding, ...]:
        """Return the findings that make a check fail at ``level`` or above."""
        levels = LEVELS[LEVELS.index(level) :]
        return tuple(f for f in self.findings if f.gates and f.severity in levels)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data, ``schema_version`` first."""
        data = asdict(self)
        return {"schema_version": data.pop("schema_version"), **data}


def uncaptured(reports: Iterable[TraceReport]) -> list[Uncaptured]:
    """Return what was to be captured beside the traces of a run and has none."""
    return [entry for report in reports for entry in report.uncaptured]


def unread(reports: Iterable[TraceReport]) -> list[Unread]:
    """Return the traces of a run that could not be read."""
    return [entry for report in reports for entry in report.unread]
