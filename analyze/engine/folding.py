"""Fold the findings that a cause explains under it."""

import dataclasses
from collections.abc import Mapping, Sequence

from analyze.engine.result import Finding, Folded
from analyze.tables.host import CHAIN_SEPARATOR

_CAUSES = ("mismatch", "intermittent")


Chains = frozenset[str | None]


def fold(
    findings: Sequence[Finding],
    explains: Mapping[str, Sequence[str]],
    chains: Mapping[str, Chains],
) -> list[Finding]:
    """Return the findings ranked, consequences marked and listed by their cause.

    A consequence of a consequence is folded under the first cause. One that also happened
    elsewhere, under ops that the cause does not cover, is not folded: mending the cause would not
    end it. Folding changes neither severities nor what makes a check fail.

    Args:
        findings: of one trace, at most one per fingerprint that is folded.
        explains: per rule, the codes of the rules whose findings are consequences of its own.
        chains: per fingerprint, the op chains of the rows a finding rests on; empty where its table
            does not say.
    """
    ranked = sorted(findings, key=lambda finding: finding.rank)
    causes = _causes(ranked, explains)
    roots = {code: _root(code, causes) for code in causes}
    leading = {finding.code: finding for finding in reversed(ranked) if finding.state in _CAUSES}
    folded: dict[str, list[Finding]] = {}
    result = []
    for finding in ranked:
        root = roots.get(finding.code, finding.code)
        is_consequence = root != finding.code and finding.state in _CAUSES
        if is_consequence and _lies_under(chains, finding, leading[root]):
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


def _lies_under(chains: Mapping[str, Chains], consequence: Finding, cause: Finding) -> bool:
    """Whether all that a finding rests on happened under the ops of its cause."""
    inner, outer = chains[consequence.fingerprint], chains[cause.fingerprint]
    if not inner or not outer:
        return True
    return all(
        chain is not None and any(_is_under(chain, above) for above in outer) for chain in inner
    )


def _is_under(chain: str, above: str | None) -> bool:
    return above is not None and f"{chain}{CHAIN_SEPARATOR}".startswith(f"{above}{CHAIN_SEPARATOR}")


def _root(code: str, causes: Mapping[str, str]) -> str:
    while code in causes:
        code = causes[code]
    return code


def _with_folded(finding: Finding, consequences: Sequence[Finding]) -> Finding:
    short = tuple(
        Folded(item.code, item.title, item.message, item.fingerprint) for item in consequences
    )
    return dataclasses.replace(finding, folded=short)
