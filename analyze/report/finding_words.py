"""What every report says about a finding: labelled sentences, safe to print.

They are plain text in one line each; a format with markup escapes them once more.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from analyze.engine.result import Finding, Level, TraceReport
from analyze.kernels.display import shorten
from analyze.report.baseline_words import beside_baseline
from analyze.words import UNKNOWN, counted, duration, percentage, printable, share, size

MARKS: dict[Level, str] = {"error": "\u2717", "warning": "!", "info": "i"}

Pair = tuple[str, str]
"""A label and a sentence."""

_FEW_ROWS = 3
_MANY_RULES = 4
_LONG_NAME = 60
_COLUMN_WORDS = {"short_name": "kernel", "parent": "ops in", "op_us": "in that op"}
"""Columns whose names alone would be misread: by column, what is said before the value."""

_LONGEST_CELL = 100
"""Characters of one value of a row of evidence in a short report."""


def state_word(finding: Finding) -> str:
    """Return the severity of a mismatch, the state of anything else."""
    return finding.severity if finding.state == "mismatch" else finding.state


def called(finding: Finding) -> str:
    """Return the name of the rule, which says something to people, and its code."""
    return printable(f"{finding.name} ({finding.code})")


def sentences(finding: Finding, *, verbose: bool) -> Iterator[Pair]:
    """Yield what is said about a finding as (label, sentence) pairs."""
    yield from _what_is_so(finding)
    yield from _of(finding)
    yield from _what_to_do(finding)
    rows = finding.evidence if verbose else _differing(finding.evidence)[:_FEW_ROWS]
    yield from (("evidence", _row(row)) for row in rows)
    yield from _what_it_rests_on(finding)
    if finding.state != "benign":
        yield from (("mind", printable(problem)) for problem in finding.known_problems)
    if verbose:
        yield from (("see", printable(reference)) for reference in finding.references)


def short_sentences(finding: Finding) -> Iterator[Pair]:
    """Yield what a reader needs to act on a finding; of the evidence the first row."""
    yield from _what_is_so(finding)
    known = [str(value) for value in finding.group.values() if value is not None]
    if not all(value in finding.message for value in known):
        yield from _of(finding)
    yield from _what_to_do(finding)
    for row in finding.evidence[:1]:
        yield "evidence", _row(row, _LONGEST_CELL)
    yield from _what_it_rests_on(finding)


def _what_is_so(finding: Finding) -> Iterator[Pair]:
    yield "expected", printable(finding.guess)
    yield "observed", printable(finding.message)


def _of(finding: Finding) -> Iterator[Pair]:
    group = ", ".join(
        f"{evidence_label(key)} {_group_word(value)}" for key, value in finding.group.items()
    )
    if group:
        yield "of", group


def _group_word(value: object) -> str:
    return UNKNOWN if value is None else printable(str(value))


def _what_to_do(finding: Finding) -> Iterator[Pair]:
    if finding.because:
        yield "benign", printable(finding.because)
    if finding.fix and finding.state != "benign":
        yield "do", printable(finding.fix)
    saved = savings(finding)
    if saved:
        yield "saves", saved
    yield "seen in", _units(finding)
    known = beside_baseline(finding)
    if known:
        yield "baseline", known


def _what_it_rests_on(finding: Finding) -> Iterator[Pair]:
    for reason in finding.uncertain:
        yield "unsure", printable(reason)
    for consequence in finding.folded:
        yield "explains", printable(f"{consequence.code} {consequence.message}")


def savings(finding: Finding) -> str | None:
    """Word what could be saved, and of whose time; None where that is unknown or benign.

    Time that is more than the whole is no share of it: a wait can lie between the units.
    """
    if finding.savings_us is None or finding.state == "benign":
        return None
    most = "at most " if finding.savings_kind == "upper_bound" else "about "
    sentence = f"{most}{duration(finding.savings_us)} per {printable(finding.per)}"
    if finding.savings_share is None or finding.savings_share > 1:
        return sentence
    whole = "CPU time" if finding.savings_of == "cpu" else "GPU busy time"
    return f"{sentence}, {share(finding.savings_share)} of its {whole}"


def savings_in_short(finding: Finding) -> str:
    """Word what could be saved and whose time, for a line; empty where that is unknown."""
    if finding.savings_us is None or finding.state == "benign":
        return ""
    most = "up to" if finding.savings_kind == "upper_bound" else "about"
    whole = "CPU" if finding.savings_of == "cpu" else "GPU"
    return f"saves {most} {duration(finding.savings_us)} {whole}"


def _units(finding: Finding) -> str:
    per = printable(finding.per)
    units = counted(finding.units_total, per)
    sentence = f"{finding.units_mismatching} of {units}; confidence {finding.confidence}"
    if finding.worst_severity != finding.severity and finding.worst_unit is not None:
        sentence += f"; worst in {per} {finding.worst_unit}: {finding.worst_severity}"
    return sentence


def _row(row: dict[str, Any], longest: int | None = None) -> str:
    """Word a row of evidence, each value cut to ``longest`` characters.

    A text at its front names what the row is; everything else says what it is.
    """
    known = [(name, value) for name, value in row.items() if value is not None]
    words = []
    for number, (name, value) in enumerate(known):
        cell = _cut(evidence_word(name, value), longest)
        is_named = number == 0 and isinstance(value, str)
        words.append(cell if is_named else f"{evidence_label(name)} {cell}")
    return "; ".join(words)


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    return text[: longest - 1] + "\u2026"


def evidence_label(column: str) -> str:
    """Word the name of a column of evidence, or of a group; its unit stands with the values."""
    if column in _COLUMN_WORDS:
        return _COLUMN_WORDS[column]
    return printable(column).removesuffix("_us").removesuffix("_bytes").replace("_", " ")


def _differing(evidence: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that say something else than the one before, numbers aside."""
    kept: list[dict[str, Any]] = []
    for row in evidence:
        if not kept or _words(row) != _words(kept[-1]):
            kept.append(row)
    return kept


def _words(row: dict[str, Any]) -> list[str]:
    return [value for value in row.values() if isinstance(value, str)]


def evidence_word(column: str, value: object) -> str:
    """Word a value of a column of evidence."""
    if isinstance(value, str):
        is_long_name = column == "name" and len(value) > _LONG_NAME
        return printable(shorten(value) if is_long_name else value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(str(value))
    return _number(column, value)


def _number(column: str, value: float) -> str:
    if column.endswith("_us"):
        return duration(value)
    if column.endswith("bytes"):
        return size(value)
    if column.startswith("occupancy"):
        return percentage(value)
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def closing_line(report: TraceReport) -> str:
    """Return the tally: findings, benign ones, rules that could not be answered."""
    return tally([report])


def tally(reports: Sequence[TraceReport]) -> str:
    """Return the tally of several reports together."""
    findings = [finding for report in reports for finding in report.findings]
    benign = sum(finding.state == "benign" for finding in findings)
    known = sum(finding.is_known for finding in findings)
    words = [
        counted(len(findings) - benign - known, "finding"),
        f"{benign} benign",
        f"{sum(len(report.not_applicable) for report in reports)} not applicable",
    ]
    if known:
        words.insert(1, f"{known} known")
    ignored = sum(rule.findings for report in reports for rule in report.ignored)
    if ignored:
        words.append(f"{ignored} ignored")
    failed = sum(len(report.errors) for report in reports)
    if failed:
        words.append(counted(failed, "rule") + " failed")
    return ", ".join(words)


def unanswered(report: TraceReport) -> Iterator[Pair]:
    """Yield the rules that are not applicable, ignored or failed, as (label, sentence) pairs."""
    for reason, rules in _by_reason(report).items():
        yield "not applicable", f"{', '.join(map(printable, rules))}: {printable(reason)}"
    yield from _ignored_and_failed(report)


def of_little_weight(bound_by: Finding) -> str:
    """Say of findings that they hardly matter; see :attr:`analyze.report.verdict.Order.minor`."""
    return f"of little weight while {called(bound_by)} holds"


def minor_title(bound_by: Finding | None) -> str:
    """Return the title above findings of little weight; nothing where there are none."""
    if bound_by is None:
        return ""
    words = of_little_weight(bound_by)
    return f"{words[:1].upper()}{words[1:]}:"


def unanswered_in_short(report: TraceReport) -> Iterator[Pair]:
    """Yield the same; of rules that are not applicable only a reason that many of them share."""
    few: list[str] = []
    for reason, rules in _by_reason(report).items():
        if len(rules) >= _MANY_RULES:
            yield "not applicable", printable(f"{len(rules)} rules: {reason}")
        else:
            few += [rule.partition(" ")[0] for rule in rules]
    if few:
        yield "not applicable", printable(", ".join(few))
    yield from _ignored_and_failed(report)


def _by_reason(report: TraceReport) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for rule in report.not_applicable:
        reasons.setdefault(rule.reason, []).append(f"{rule.code} {rule.name}")
    return reasons


def _ignored_and_failed(report: TraceReport) -> Iterator[Pair]:
    for rule in report.ignored:
        if rule.findings:
            yield "ignored", printable(f"{rule.code} {rule.name} ({rule.findings}): {rule.reason}")
    for failure in report.errors:
        yield "failed", printable(f"{failure.code} {failure.name}: {failure.message}")
