"""Findings in one line each, for grep and for editors: ``trace: level CODE name: message``.

Consequences and benign findings have lines too, and say so. Nothing else is printed: a trace in
which nothing was found has no line.
"""

from collections.abc import Iterator, Sequence

from analyze.engine.result import Finding, TraceReport
from analyze.report.baseline_words import beside_baseline
from analyze.report.finding_words import savings, state_word
from analyze.report.formats import Rendering
from analyze.words import printable, visible


def write_concise(reports: Sequence[TraceReport], _rendering: Rendering) -> str:
    """Return a line for each finding, ranked within its trace, and for each rule that failed."""
    return "".join(f"{line}\n" for report in reports for line in _lines(report))


def _lines(report: TraceReport) -> Iterator[str]:
    trace = visible(report.trace)
    codes = {finding.fingerprint: finding.code for finding in report.findings}
    for finding in report.findings:
        what = printable(f"{state_word(finding)} {finding.code} {finding.name}")
        words = [printable(finding.message), *_asides(finding, codes)]
        yield f"{trace}: {what}: {'  '.join(words)}"
    for failure in report.errors:
        what = printable(f"failed {failure.code} {failure.name}")
        yield f"{trace}: {what}: {printable(failure.message)}"


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
