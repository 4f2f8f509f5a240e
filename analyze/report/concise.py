"""Findings in one line each, for grep and for editors: ``trace: level CODE name: message``.

Consequences and benign findings have lines too, and say so; so has what makes findings less than
sure, and what a baseline holds and is found no more. A whole, clean trace in which nothing was
found has no line.
"""

from collections.abc import Iterator, Sequence

from analyze.engine.result import Finding, TraceReport, Unread, unread
from analyze.report.baseline_words import beside_baseline, vanished_sentence
from analyze.report.coverage_text import reservations
from analyze.report.finding_words import savings, state_word
from analyze.report.formats import Rendering
from analyze.words import inert_to_ci, printable, visible


def write_concise(reports: Sequence[TraceReport], _rendering: Rendering) -> str:
    """Return a line for each finding, ranked within its trace, and for each rule that failed."""
    lines = [_unread(entry) for entry in unread(reports)]
    lines += [line for report in reports for line in _lines(report)]
    return "".join(f"{inert_to_ci(line)}\n" for line in lines)


def _unread(entry: Unread) -> str:
    why = entry.message.removeprefix(f"{entry.trace}: ")
    return f"{visible(entry.trace)}: failed: {visible(why)}"


def _lines(report: TraceReport) -> Iterator[str]:
    trace = visible(report.trace)
    for label, sentence in reservations(report.coverage, report.quality):
        note = sentence if label == "note" else f"{label}: {sentence}"
        yield f"{trace}: note: {visible(note)}"
    codes = {finding.fingerprint: finding.code for finding in report.findings}
    for finding in report.findings:
        what = printable(f"{state_word(finding)} {finding.code} {finding.name}")
        words = [printable(finding.message), *_asides(finding, codes)]
        yield f"{trace}: {what}: {'  '.join(words)}"
    for failure in report.errors:
        what = printable(f"failed {failure.code} {failure.name}")
        yield f"{trace}: {what}: {printable(failure.message)}"
    for gone in report.vanished:
        yield f"{trace}: gone {visible(vanished_sentence(gone, report))}"


def _asides(finding: Finding, codes: dict[str, str]) -> Iterator[str]:
    if finding.because:
        yield f"[benign: {printable(finding.because)}]"
    saved = savings(finding)
    if saved:
        yield f"[saves {saved}]"
    known = beside_baseline(finding)
    if known:
        yield f"[baseline: {known}]"
    if finding.explained_by is not None:
        cause = codes.get(finding.explained_by, "another finding")
        yield f"[explained by {printable(cause)}]"
