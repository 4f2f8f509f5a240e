"""A finding as a SARIF result."""

from pathlib import Path
from typing import Any

from analyze.engine.result import BaselineState, Finding, Level
from analyze.report.finding_words import short_sentences
from analyze.report.sarif_locations import source_location, trace_location
from analyze.report.sarif_text import bounded, first_said, labelled
from analyze.tables.host import CHAIN_SEPARATOR
from analyze.words import printable

Data = dict[str, Any]

FINGERPRINT = "kinetolintFingerprint/v1"
"""Raised when the same finding gets another fingerprint."""

_CODE_SCANNING_FINGERPRINT = "primaryLocationLineHash"
"""The one that GitHub tells alerts apart by. Its own is made from the text of the line, so that two
findings of a rule in one trace would be one alert."""

SARIF_LEVELS: dict[Level, str] = {"error": "error", "warning": "warning", "info": "note"}

_BASELINE_STATES: dict[BaselineState, str] = {
    "new": "new",
    "known": "unchanged",
    "better": "updated",
    "worse": "updated",
}

_CHAIN = "op_chain"
_MOST_CHAINS = 10
_MOST_SENTENCES = 20


def kind_and_level(finding: Finding) -> tuple[str, str]:
    """Return kind and level of a result.

    Only what can make a check fail has the level of its severity. What a rule just reports fails
    nothing, and has no level.
    """
    if finding.state == "informative":
        return "informational", "none"
    if finding.state != "mismatch" or finding.status == "preview":
        return "fail", "note"
    return "fail", SARIF_LEVELS[finding.severity]


def make_result(
    finding: Finding, occurrence: int, rule_index: int, trace: Data, root: Path
) -> Data:
    """Return a result.

    Args:
        finding: what was found.
        occurrence: how many results of the run have the same fingerprint, with this one: those of
            the same finding in several traces.
        rule_index: of its rule in the driver's rules.
        trace: location of the trace.
        root: of the sources, absolute.
    """
    kind, level = kind_and_level(finding)
    identity = f"{finding.fingerprint}:{occurrence}"
    result = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "kind": kind,
        "level": level,
        "message": _message(finding),
        **_locations(finding, trace, root),
        "partialFingerprints": {FINGERPRINT: identity, _CODE_SCANNING_FINGERPRINT: identity},
        "suppressions": _suppressions(finding),
        "properties": _properties(finding),
    }
    if finding.savings_share is not None:
        result["rank"] = min(max(100 * finding.savings_share, 0.0), 100.0)
    return result


def baseline_state(finding: Finding) -> str:
    """Return how a finding compares with a baseline; one that a baseline does not hold is no news.

    Either all results of a run have a state, or none has (SARIF 2.1.0, section 3.27.24).
    """
    return _BASELINE_STATES[finding.baseline] if finding.baseline else "unchanged"


def _message(finding: Finding) -> Data:
    sentences = [pair for pair in short_sentences(finding) if pair[0] != "observed"]
    said = first_said(finding.message, finding.title, finding.code)
    return labelled(printable(said), sentences[:_MOST_SENTENCES])


def _locations(finding: Finding, trace: Data, root: Path) -> Data:
    """Return where the finding is, and which trace shows it where that is another file."""
    source = source_location(finding.source, root)
    location: Data = {"physicalLocation": source or trace_location(trace)}
    logical = _logical_locations(finding)
    if logical:
        location["logicalLocations"] = logical
    return {"locations": [location], **({"analysisTarget": trace} if source else {})}


def _logical_locations(finding: Finding) -> list[Data]:
    """Return the distinct op chains of the evidence."""
    chains = (row.get(_CHAIN) for row in finding.evidence)
    distinct = list(dict.fromkeys(chain for chain in chains if isinstance(chain, str)))
    return [_logical_location(chain) for chain in distinct[:_MOST_CHAINS]]


def _logical_location(chain: str) -> Data:
    shown = printable(chain)
    return {
        "name": shown.rpartition(CHAIN_SEPARATOR)[2],
        "fullyQualifiedName": shown,
        "kind": "function",
    }


def _suppressions(finding: Finding) -> list[Data]:
    """Return why nobody has to act: it is harmless by nature, or a baseline accepts it.

    It is empty rather than absent: a run says it of all its results or of none (section 3.27.23).
    """
    if finding.state == "benign":
        reason = finding.because or "known to be harmless"
    elif finding.is_known:
        reason = finding.baseline_reason or "known before, by the baseline"
    else:
        return []
    return [{"kind": "external", "status": "accepted", "justification": printable(reason)}]


def _properties(finding: Finding) -> Data:
    return {
        "state": finding.state,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "status": finding.status,
        "per": printable(finding.per),
        "unitsTotal": finding.units_total,
        "unitsMismatching": finding.units_mismatching,
        "unitsUnknown": finding.units_unknown,
        "savingsUs": finding.savings_us,
        "savingsKind": finding.savings_kind,
        "savingsOf": finding.savings_of,
        "savingsShare": finding.savings_share,
        "measures": bounded(finding.measures),
        "group": bounded(finding.group),
        "rows": finding.places_total,
        "source": bounded(finding.source),
        "explainedBy": finding.explained_by,
        "baselineChanges": bounded(finding.baseline_changes),
    }
