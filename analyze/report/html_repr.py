"""What a notebook shows of a trace or a report: plain HTML that stands alone.

No scripts, no styles or files from elsewhere, and no colour of its own for text or background, so
that it reads in light and dark notebooks alike. Names come from the trace: each is escaped.
"""

from collections.abc import Iterable, Iterator
from html import escape

from analyze.engine.result import Finding, Level, TraceReport
from analyze.report.coverage_text import Data, coverage_in_short, coverage_lines
from analyze.report.finding_words import (
    MARKS,
    closing_line,
    of_little_weight,
    sentences,
    state_word,
    unanswered,
)
from analyze.report.next_command import next_command
from analyze.report.verdict import order_of, verdict
from analyze.words import counted, printable, visible

MAX_FINDINGS = 50
"""Findings that are shown; the number of the others is said."""

_SHOWN = ("expected", "observed", "of", "benign", "do", "saves")
"""Labels of what stands open; how sure it is and what it rests on is one click away."""

_ACCENTS: dict[Level, str] = {"error": "#d1442f", "warning": "#b47a00", "info": "#3b8ea5"}
"""Seen on white and on black (contrast of 3 and more); the word beside it says the same."""

_CELL = "text-align:left;vertical-align:top;padding:0 0.75em 0 0"
_LABEL = f"{_CELL};white-space:nowrap"
_SENTENCE = f"{_CELL};white-space:normal;overflow-wrap:anywhere"
"""A notebook breaks words in cells, or keeps lines whole, as its own style has it."""

_WHOLE = "overflow-wrap:anywhere"
"""A path or a command can be longer than the notebook is wide."""

_FINDING = "margin:0.6em 0;padding-left:0.6em;border-left:3px solid"


def report_html(report: TraceReport) -> str:
    """Return a report as HTML: the verdict, findings, the next command; the rest folded away."""
    order = order_of(report)
    top_level = [finding for finding in report.findings if finding.explained_by is None]
    shown = top_level[:MAX_FINDINGS]
    minor = [finding for finding in shown if finding in order.minor]
    parts = [_pairs(_in_short(report))]
    parts += [_finding(finding) for finding in shown if finding not in minor]
    if order.bound_by and minor:
        parts.append(_folded(of_little_weight(order.bound_by), "".join(map(_finding, minor))))
    if len(top_level) > MAX_FINDINGS:
        parts.append(f"<p>and {counted(len(top_level) - MAX_FINDINGS, 'more finding')}</p>")
    parts.append(_next(report))
    parts.append(_folded("coverage", _pairs(coverage_lines(report.coverage, report.quality))))
    left = list(unanswered(report))
    if left:
        parts.append(_folded("not answered", _pairs(left)))
    return _titled(report.trace, closing_line(report), parts)


def _in_short(report: TraceReport) -> Iterator[tuple[str, str]]:
    yield from coverage_in_short(report.coverage, report.quality)
    yield "verdict", printable(verdict(report))


def _next(report: TraceReport) -> str:
    step = next_command(report)
    if step is None:
        return ""
    command, shows = step
    return f"<p>Next: <code>{_text(command)}</code> shows {_text(shows)}.</p>"


def trace_html(name: str, coverage: Data, quality: Data, tables: Iterable[str]) -> str:
    """Return what was recorded in a trace, and which tables there are, as HTML."""
    pairs = [*coverage_lines(coverage, quality), ("tables", ", ".join(tables))]
    return _titled(name, "", [_pairs(pairs)])


def _titled(name: str, tally: str, parts: Iterable[str]) -> str:
    title = f"<strong>{_text(printable(name))}</strong>" + (f"<br>{_text(tally)}" if tally else "")
    return f'<div style="{_WHOLE}"><p>{title}</p>{"".join(parts)}</div>'


def _finding(finding: Finding) -> str:
    accent = _ACCENTS[finding.severity]
    heading = (
        f'<span style="color:{accent}">{MARKS[finding.severity]}</span>'
        f" {_text(state_word(finding))}"
        f" <strong>{_text(finding.code)} {_text(finding.name)}</strong> {_text(finding.title)}"
    )
    said = list(sentences(finding, verbose=False))
    shown = [pair for pair in said if pair[0] in _SHOWN]
    rest = [pair for pair in said if pair[0] not in _SHOWN]
    body = _pairs(shown) + _folded("evidence", _pairs(rest))
    return f'<div style="{_FINDING} {accent}">{heading}{body}</div>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{body}</details>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = (
        f'<tr style="background:none"><td style="{_LABEL}">{_text(label)}</td>'
        f'<td style="{_SENTENCE}">{_text(sentence)}</td></tr>'
        for label, sentence in pairs
    )
    return f'<table style="border:none;margin:0">{"".join(rows)}</table>'


def _text(text: str) -> str:
    return escape(visible(text))
