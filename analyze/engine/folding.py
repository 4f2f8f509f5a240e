"""Fold the findings that a cause explains under it."""

import dataclasses
from collections.abc import Mapping, Sequence

from analyze.report.result import Finding, Folded

_CAUSES = ("mismatch", "intermittent")


def fold(findings: Sequence[Finding], explains: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Return the findings ranked, consequences marked and listed by their cause.

    A consequence of a consequence is folded under the first cause. Folding changes neither
    severities nor what makes a check fail.

    Args:
        findings: of one trace, at most one per fingerprint that is folded.
        explains: per rule, the codes of the rules whose findings are consequences of its own.
    """
    ranked = sorted(findings, key=lambda finding: finding.rank)
    causes = _causes(ranked, explains)
    roots = {code: _root(code, causes) for code in causes}
    leading = {finding.code: finding for finding in reversed(ranked) if finding.state in _CAUSES}
    folded: dict[str, list[Finding]] = {}
    result = []
    for finding in ranked:
        root = roots.get(finding.code, finding.code)
        if root != finding.code and finding.state in _CAUSES:
            folded.setdefault(root, []).append(finding)
            cause = leading[root].fingerprint
            result.append(dataclasses.replace(finding, explained_by=cause))
        else:
            result.append(finding)
    return [
        _with_folded(finding, folded.get(finding.code, ()))
        if leading.get(finding.code) is finding
        else finding
        for finding in result
    ]


def _causes(ranked: Sequence[Finding], explains: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the cause of each rule that has one: the highest ranked that does not close a ring."""
    causes: dict[str, str] = {}
    for finding in ranked:
        if finding.state not in _CAUSES:
            continue
        for code in explains.get(finding.code, ()):
            if code not in causes and _root(finding.code, causes) != code:
                causes[code] = finding.code
    return causes


def _root(code: str, causes: Mapping[str, str]) -> str:
    while code in causes:
        code = causes[code]
    return code


def _with_folded(finding: Finding, consequences: Sequence[Finding]) -> Finding:
    short = tuple(
        Folded(item.code, item.title, item.message, item.fingerprint) for item in consequences
    )
    return dataclasses.replace(finding, folded=short)
