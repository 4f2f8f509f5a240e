"""Findings as annotations of a GitHub Actions run: workflow commands on standard output.

GitHub keeps ten annotations of a level per step. The highest ranked of all traces are printed, and
one more says how many are left out. Consequences are told by their cause, and what is benign or
known to a baseline needs no mending: they are not annotated.

Nothing a trace or a rule says can begin a command of its own: every text is in one line, behind
words of ours, and escaped as the toolkit of GitHub Actions does (``escapeData`` and
``escapeProperty`` of ``actions/toolkit``, ``packages/core/src/command.ts``).
"""

import os
from collections.abc import Iterable, Iterator, Sequence

from analyze.engine.result import Finding, Level, TraceReport
from analyze.report.baseline_words import beside_baseline, shown_findings
from analyze.report.finding_words import closing_line, savings
from analyze.report.formats import Rendering
from analyze.report.source_line import source_line
from analyze.words import counted, printable, visible

_WORKSPACE = "GITHUB_WORKSPACE"
"""Variable that names the checkout in a run of GitHub Actions."""

MOST_OF_A_LEVEL = 10
"""Annotations of one level that GitHub keeps of a step."""

_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "info": "notice"}
_Found = tuple[str, Finding]
"""A trace and a finding in it."""

_OLD_COMMAND = "##["
"""What begins a command of the older form, anywhere in a line."""


def write_github(reports: Sequence[TraceReport], _rendering: Rendering) -> str:
    """Return annotations, the severest first, then the tally of each trace as plain lines."""
    workspace = os.environ.get(_WORKSPACE)
    ranked = sorted(_annotated(reports), key=lambda pair: pair[1].rank)
    shown, left_out = _divided(ranked)
    lines = [_annotation(trace, finding, workspace) for trace, finding in shown]
    if left_out:
        lines.append(_more(left_out))
    return "".join(f"{line}\n" for line in (*lines, *map(_tally, reports)))


def _annotated(reports: Sequence[TraceReport]) -> Iterator[_Found]:
    for report in reports:
        for finding in shown_findings(report, verbose=False):
            if finding.state != "benign":
                yield report.trace, finding


def _divided(ranked: Iterable[_Found]) -> tuple[list[_Found], list[Finding]]:
    """Divide findings into those of which GitHub keeps an annotation, and the others.

    Of the notices one less is taken: one more says what is left out.
    """
    room = dict.fromkeys(_COMMANDS, MOST_OF_A_LEVEL)
    room["info"] -= 1
    shown, left_out = [], []
    for trace, finding in ranked:
        if room[finding.severity]:
            room[finding.severity] -= 1
            shown.append((trace, finding))
        else:
            left_out.append(finding)
    return shown, left_out


def _annotation(trace: str, finding: Finding, workspace: str | None) -> str:
    properties = {"title": f"{finding.code} {finding.name}"}
    line = source_line(finding.source, workspace)
    if line is not None:
        properties = {"file": line.file, "line": str(line.line), **properties}
    return _command(_COMMANDS[finding.severity], properties, "\n".join(_message(trace, finding)))


def _message(trace: str, finding: Finding) -> Iterator[str]:
    yield f"{visible(trace)}: {printable(finding.message)}"
    yield f"expected: {printable(finding.guess)}"
    if finding.fix:
        yield f"do: {printable(finding.fix)}"
    saved = savings(finding)
    if saved:
        yield f"saves: {saved}"
    known = beside_baseline(finding)
    if known:
        yield f"baseline: {known}"
    explained = ", ".join(dict.fromkeys(folded.code for folded in finding.folded))
    if explained:
        yield f"explains: {printable(explained)}"


def _more(left_out: Sequence[Finding]) -> str:
    codes = ", ".join(dict.fromkeys(finding.code for finding in left_out))
    words = f"and {counted(len(left_out), 'more finding')}: {printable(codes)}"
    return _command("notice", {"title": "kinetolint"}, words)


def _tally(report: TraceReport) -> str:
    """Return a plain line of the log: words of ours come first, so it is no command."""
    line = f"analyze: {visible(report.trace)}: {closing_line(report)}"
    return line.replace(_OLD_COMMAND, "## [")


def _command(name: str, properties: dict[str, str], message: str) -> str:
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
