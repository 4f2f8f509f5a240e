"""The rules of a SARIF run: what results and notifications refer to."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from analyze.engine.result import (
    CONFIDENCES,
    LEVELS,
    Finding,
    Ignored,
    NotApplicable,
    RuleFailure,
    TraceReport,
)
from analyze.report.sarif_results import kind_and_level
from analyze.report.sarif_text import first_said, labelled, message
from analyze.words import printable

Data = dict[str, Any]

_LEVELS = ("note", "warning", "error")
"""Levels of rules that code scanning knows, the mildest first."""

_LONGEST_NAME = 255
"""Characters of a rule's name that code scanning takes."""

_PROBLEM_SEVERITIES = {"error": "error", "warning": "warning", "info": "recommendation"}
"""Words of code scanning for findings that are not about security."""

_GUESS = "GUESS"
"""How the codes of guesses begin: nobody wrote an explanation of them."""

_ADDRESS = re.compile(r"https?://[\w.~:/?#@!$&'()*+,;=%-]+", re.ASCII)


def rules_of(reports: Sequence[TraceReport]) -> list[Data]:
    """Return the descriptors of all rules that found something or could not answer, by code."""
    findings: dict[str, list[Finding]] = {}
    for report in reports:
        for finding in report.findings:
            findings.setdefault(finding.code, []).append(finding)
    names = dict(_unanswered(reports))
    codes = sorted(findings.keys() | names.keys())
    return [
        _described(findings[code]) if code in findings else _named(code, names[code])
        for code in codes
    ]


def _unanswered(reports: Sequence[TraceReport]) -> Iterator[tuple[str, str]]:
    for report in reports:
        rules: tuple[NotApplicable | RuleFailure | Ignored, ...] = (
            *report.not_applicable,
            *report.errors,
            *report.ignored,
        )
        yield from ((rule.code, rule.name) for rule in rules)


def _named(code: str, name: str) -> Data:
    """Return a rule of which a result knows no more than its name."""
    words = message(first_said(_in_words(name), code))
    return {
        "id": code,
        "name": printable(name)[:_LONGEST_NAME],
        "shortDescription": words,
        "fullDescription": words,
        "help": words,
    }


def _described(findings: Sequence[Finding]) -> Data:
    """Return a rule by what its findings say of it.

    Args:
        findings: of the one rule, at least one.
    """
    first = findings[0]
    severest = max((finding.severity for finding in findings), key=LEVELS.index)
    surest = max((finding.confidence for finding in findings), key=CONFIDENCES.index)
    levels = {_LEVELS[0], *(kind_and_level(finding)[1] for finding in findings)} - {"none"}
    title = first_said(first.title, _in_words(first.name), first.code)
    addresses = [text for text in first.references if _ADDRESS.fullmatch(text)]
    return {
        "id": first.code,
        "name": printable(first.name)[:_LONGEST_NAME],
        "shortDescription": message(title),
        "fullDescription": message(first_said(first.guess, title)),
        "help": _help(first, title),
        **({"helpUri": addresses[0]} if addresses else {}),
        "defaultConfiguration": {"level": max(levels, key=_LEVELS.index)},
        "properties": {
            "tags": [printable(first.category)],
            "category": printable(first.category),
            "precision": surest,
            "problem.severity": _PROBLEM_SEVERITIES[severest],
            "status": first.status,
        },
    }


def _in_words(name: str) -> str:
    return name.replace("-", " ")


def _help(finding: Finding, title: str) -> Data:
    """Return what holds for all findings of a rule; what one of them says is in its message."""
    pairs = [("expected", finding.guess)]
    pairs += [("mind", problem) for problem in finding.known_problems]
    pairs += [("see", reference) for reference in finding.references]
    if not finding.code.startswith(_GUESS):  # the guess itself is all there is to say
        pairs += [("more", f"analyze explain {finding.code}")]
    return labelled(title, pairs)
