"""From judged groups to findings: texts rendered, values made plain JSON."""

import math
from collections.abc import Mapping
from typing import Any

from analyze.engine.judge import Judged
from analyze.engine.per import UNIT_WORD, unit_in_words
from analyze.engine.program import Program
from analyze.engine.result import CONFIDENCES, Confidence, Finding
from analyze.engine.rule import Rule

_DIGITS = 12
"""Significant digits that are written: enough for nanoseconds, without the noise of float64."""


def make_finding(
    rule: Rule, program: Program, judged: Judged, facts: Mapping[str, Any], fingerprint: str
) -> Finding:
    """Return the finding of one judged group.

    Args:
        rule: the rule.
        program: the rule as it was compiled for the trace.
        judged: the group.
        facts: the row of the table ``trace``.
        fingerprint: of the finding.
    """
    model, benign = rule.model, judged.benign
    values = {
        UNIT_WORD: unit_in_words(program.per, facts.get("forward_is")),
        **_values(rule, judged, facts),
    }
    savings = None if benign else judged.savings_us
    return Finding(
        code=rule.code,
        name=rule.name,
        title=model.title,
        category=rule.category,
        state="benign" if benign else judged.state,
        severity="info" if benign else judged.severity,
        worst_severity="info" if benign else judged.worst_severity,
        worst_unit=judged.worst_unit if program.per.word != "trace" else None,
        guess=model.guess,
        message=program.message.render(values),
        fix=program.fix.render(values) if program.fix else None,
        measures={name: plain(judged.values.get(name)) for name in program.formulas},
        group={name: plain(value) for name, value in judged.group.items()},
        per=unit_in_words(program.per, facts.get("forward_is")),
        units_total=judged.total,
        units_mismatching=judged.mismatching,
        units_unknown=judged.unknown,
        savings_us=plain(savings),
        savings_kind=model.savings.kind if model.savings and savings is not None else None,
        savings_of=judged.savings_of if savings is not None else None,
        savings_share=None if benign else plain(judged.savings_share),
        confidence=_confidence(rule, judged),
        status=model.status,
        because=benign.because if benign else None,
        uncertain=tuple(verdict.because for verdict in judged.uncertain),
        evidence=tuple(
            {name: plain(value) for name, value in row.items()} for row in judged.evidence
        ),
        places=judged.places,
        places_total=judged.rows,
        source=judged.source,
        known_problems=rule.known_problems,
        references=rule.references,
        fingerprint=fingerprint,
    )


def plain(value: Any) -> Any:
    """Return a value as plain JSON: no infinite numbers, no noise digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _values(rule: Rule, judged: Judged, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what templates may insert; measures come before key columns of the same name."""
    return {
        **{f"trace.{name}": value for name, value in facts.items()},
        **{f"params.{name}": value for name, value in rule.params.items()},
        **judged.group,
        **judged.values,
    }


def _confidence(rule: Rule, judged: Judged) -> Confidence:
    levels = [rule.model.confidence, *(verdict.confidence for verdict in judged.uncertain)]
    return min(levels, key=CONFIDENCES.index)
