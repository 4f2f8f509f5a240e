"""The report of one trace as text: coverage, then findings ranked, then what could not be said."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.engine.result import Checked, Finding, TraceReport
from analyze.kernels.display import shorten
from analyze.report.captures_text import render_captures
from analyze.report.console import buffer_console, rendered
from analyze.report.coverage_text import coverage_lines
from analyze.report.formats import Rendering
from analyze.report.summary_text import print_pairs
from analyze.words import counted, duration, percentage, printable, share, size

_MARKS = {"error": "\u2717", "warning": "!", "info": "i"}
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_BRIEF_EVIDENCE = 3
_LONG_NAME = 60


def write_text(reports: Sequence[TraceReport], rendering: Rendering) -> str:
    """Return reports of findings as text, captures side by side below them; the format ``text``."""
    verbose, color = rendering.verbose, rendering.color
    texts = [render_report(report, verbose=verbose, color=color) for report in reports]
    return "\n".join(texts) + render_captures(reports, rendering.absent, color=color)


def render_report(report: TraceReport, *, verbose: bool = False, color: bool = False) -> str:
    """Return the report as text.

    Args:
        report: the result to render.
        verbose: all evidence, all columns, and the rules that passed.
        color: use terminal colours; the text says the same without them.
    """
    console = buffer_console(color=color)
    console.print(Text(printable(report.trace), style="bold"))
    print_pairs(console, coverage_lines(report.coverage, report.quality))
    top_level = [finding for finding in report.findings if finding.explained_by is None]
    for finding in top_level:
        console.print()
        print_finding(console, finding, verbose=verbose)
    _print_unanswered(console, report)
    if verbose and report.passed:
        passed = ", ".join(map(_passed, report.passed))
        console.print(Text(f"\nAs guessed: {passed}"))
    console.print(Text("\n" + closing_line(report), style="bold"))
    return rendered(console)


def _passed(rule: Checked) -> str:
    undecided = f" ({rule.undecided_rows:,} rows undecided)" if rule.undecided_rows else ""
    return f"{rule.code} {rule.name}{undecided}"


def closing_line(report: TraceReport) -> str:
    """Return the tally: findings, benign ones, rules that could not be answered."""
    benign = sum(finding.state == "benign" for finding in report.findings)
    findings = len(report.findings) - benign
    tally = [
        counted(findings, "finding"),
        f"{benign} benign",
        f"{len(report.not_applicable)} not applicable",
    ]
    ignored = sum(rule.findings for rule in report.ignored)
    if ignored:
        tally.append(f"{ignored} ignored")
    if report.errors:
        tally.append(counted(len(report.errors), "rule") + " failed")
    return ", ".join(tally)


def print_finding(console: Console, finding: Finding, *, verbose: bool) -> None:
    """Print one finding: what was expected, observed and is to do, with its evidence."""
    heading = Text()
    style = _STYLES[finding.severity]
    state = finding.severity if finding.state == "mismatch" else finding.state
    heading.append(f"{_MARKS[finding.severity]} {state}", style=style)
    heading.append(f"  {finding.code} {finding.name}", style="bold")
    heading.append(f"  {finding.title}")
    console.print(heading)
    print_pairs(console, sentences(finding, verbose=verbose))


def sentences(finding: Finding, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """Yield what is said about a finding as (label, sentence) pairs."""
    yield "expected", printable(finding.guess)
    yield "observed", printable(finding.message)
    group = ", ".join(f"{key} {printable(str(value))}" for key, value in finding.group.items())
    if group:
        yield "of", group
    if finding.because:
        yield "benign", printable(finding.because)
    if finding.fix and finding.state != "benign":
        yield "do", printable(finding.fix)
    if finding.savings_us is not None and finding.state != "benign":
        yield "saves", _savings(finding)
    yield "seen in", _units(finding)
    yield from _evidence(finding, verbose=verbose)
    for reason in finding.uncertain:
        yield "unsure", printable(reason)
    for consequence in finding.folded:
        yield "explains", f"{consequence.code} {printable(consequence.message)}"
    if finding.state != "benign":
        yield from (("mind", printable(problem)) for problem in finding.known_problems)
    if verbose:
        yield from (("see", printable(reference)) for reference in finding.references)


def _savings(finding: Finding) -> str:
    most = "at most " if finding.savings_kind == "upper_bound" else "about "
    sentence = f"{most}{duration(finding.savings_us)} per {finding.per}"
    if finding.savings_share is None:
        return sentence
    whole = "CPU time" if finding.savings_of == "cpu" else "GPU busy time"
    return f"{sentence}, {share(finding.savings_share)} of its {whole}"


def _units(finding: Finding) -> str:
    units = counted(finding.units_total, finding.per)
    sentence = f"{finding.units_mismatching} of {units}; confidence {finding.confidence}"
    if finding.worst_severity != finding.severity and finding.worst_unit is not None:
        sentence += f"; worst in {finding.per} {finding.worst_unit}: {finding.worst_severity}"
    return sentence


def _evidence(finding: Finding, *, verbose: bool) -> Iterator[tuple[str, str]]:
    rows = finding.evidence if verbose else _differing(finding.evidence)[:_BRIEF_EVIDENCE]
    for row in rows:
        known = [(name, value) for name, value in row.items() if value is not None]
        words = [
            _cell(name, value) if number == 0 else f"{_label(name)} {_cell(name, value)}"
            for number, (name, value) in enumerate(known)
        ]
        yield "evidence", "; ".join(words)


def _label(column: str) -> str:
    return column.removesuffix("_us").removesuffix("_bytes").replace("_", " ")


def _differing(evidence: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that say something else than the one before, numbers aside."""
    kept: list[dict[str, Any]] = []
    for row in evidence:
        if not kept or _words(row) != _words(kept[-1]):
            kept.append(row)
    return kept


def _words(row: dict[str, Any]) -> list[str]:
    return [value for value in row.values() if isinstance(value, str)]


def _cell(column: str, value: object) -> str:
    if isinstance(value, str):
        is_long_name = column == "name" and len(value) > _LONG_NAME
        return printable(shorten(value) if is_long_name else value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return _number(column, value)


def _number(column: str, value: float) -> str:
    if column.endswith("_us"):
        return duration(value)
    if column.endswith("bytes"):
        return size(value)
    if column.startswith("occupancy"):
        return percentage(value)
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _print_unanswered(console: Console, report: TraceReport) -> None:
    if report.not_applicable or report.errors or report.ignored:
        console.print()
    print_pairs(console, unanswered(report))


def unanswered(report: TraceReport) -> Iterator[tuple[str, str]]:
    """Yield the rules that are not applicable, ignored or failed, as (label, sentence) pairs."""
    reasons: dict[str, list[str]] = {}
    for rule in report.not_applicable:
        reasons.setdefault(rule.reason, []).append(f"{rule.code} {rule.name}")
    pairs = [("not applicable", f"{', '.join(rules)}: {why}") for why, rules in reasons.items()]
    pairs += [
        ("ignored", f"{rule.code} {rule.name} ({rule.findings}): {rule.reason}")
        for rule in report.ignored
        if rule.findings
    ]
    pairs += [("failed", f"{rule.code} {rule.name}: {rule.message}") for rule in report.errors]
    return ((label, printable(sentence)) for label, sentence in pairs)
