"""Findings as annotations of a GitHub Actions run: workflow commands on standard output.

GitHub keeps ten annotations of a level per step. The highest ranked of all traces are printed, and
one more says how many are left out. Consequences are told by their cause, and what is benign or
known to a baseline needs no mending: they are not annotated. A trace that could not be read is an
error, one that is not whole a warning; what else makes findings less than sure stands in the log.

Nothing a trace or a rule says can begin a command of its own: every text is in one line, behind
words of ours, and escaped as the toolkit of GitHub Actions does (``escapeData`` and
``escapeProperty`` of ``actions/toolkit``, ``packages/core/src/command.ts``).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analyze.engine.result import Finding, Level, TraceReport, unread
from analyze.report.baseline_words import beside_baseline
from analyze.report.coverage_text import loss_sentences, reservations, trimmed_sentences
from analyze.report.finding_words import closing_line, of_little_weight, savings
from analyze.report.formats import Rendering
from analyze.report.source_line import SourceLine, file_in, source_line, source_root
from analyze.report.verdict import order_of
from analyze.words import counted, printable, visible

MOST_OF_A_LEVEL = 10
"""Annotations of one level that GitHub keeps of a step."""

_MOST_OF_TRACES = 4
"""Annotations of a level that are about traces as such, so that findings keep some."""

_DAMAGE_RULE = "TRACE105"
"""The built-in rule whose finding says that a file is damaged: a warning would say it again."""

_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "info": "notice"}


@dataclass(frozen=True)
class _Found:
    """A finding in a trace; ``bound_by`` is what makes it of little weight."""

    trace: str
    finding: Finding
    bound_by: Finding | None

    @property
    def place(self) -> tuple[object, ...]:
        """Where it stands among the others: what is of little weight comes last."""
        return (self.bound_by is not None, self.finding.rank)


_OLD_COMMAND = "##["
"""What begins a command of the older form, anywhere in a line."""


def write_github(reports: Sequence[TraceReport], _rendering: Rendering) -> str:
    """Return annotations, the severest first, then the tally of each trace as plain lines."""
    root = source_root()
    ranked = sorted(_annotated(reports), key=lambda found: found.place)
    failed = _about_traces("error", [entry.message for entry in unread(reports)])
    partial = _about_traces("warning", [*_partial(reports)])
    shown, left_out = _divided(ranked, {"error": len(failed), "warning": len(partial)})
    lines = [*failed, *partial]
    lines += [_annotation(found, root) for found in shown]
    if left_out:
        lines.append(_more(left_out))
    for report in reports:
        lines += [*_notes(report), _tally(report)]
    return "".join(f"{line}\n" for line in lines)


def annotate_unread(messages: Sequence[str]) -> str:
    """Return annotations for a run in which no trace could be checked."""
    return "".join(f"{line}\n" for line in _about_traces("error", messages))


def _partial(reports: Sequence[TraceReport]) -> Iterator[str]:
    """Yield of each trace that is not whole what is missing."""
    for report in reports:
        is_found = any(finding.code == _DAMAGE_RULE for finding in report.findings)
        lost = [] if is_found else [*loss_sentences(report.quality)]
        missing = [*lost, *(f"trimmed: {words}" for words in trimmed_sentences(report.coverage))]
        if missing:
            yield f"{report.trace}: {'; '.join(missing)}"


def _about_traces(command: str, sentences: Sequence[str]) -> list[str]:
    """Return annotations about traces; of many the last says how many more there are."""
    shown = list(sentences[:_MOST_OF_TRACES])
    more = len(sentences) - len(shown)
    if more:
        shown[-1] = f"{shown[-1]}; and {counted(more, 'more trace')} like these"
    return [_command(command, {"title": "kinetolint"}, visible(each)) for each in shown]


def _annotated(reports: Sequence[TraceReport]) -> Iterator[_Found]:
    for report in reports:
        order = order_of(report)
        yield from (_Found(report.trace, finding, None) for finding in order.problems)
        yield from (_Found(report.trace, finding, order.bound_by) for finding in order.minor)


def _divided(
    ranked: Iterable[_Found], taken: dict[Level, int]
) -> tuple[list[_Found], list[Finding]]:
    """Divide findings into those of which GitHub keeps an annotation, and the others.

    Of the notices one less is taken: one more says what is left out.

    Args:
        ranked: the findings, the highest ranked first.
        taken: how many annotations of a level there are already.
    """
    room = {level: MOST_OF_A_LEVEL - taken.get(level, 0) for level in _COMMANDS}
    room["info"] -= 1
    shown, left_out = [], []
    for found in ranked:
        if room[found.finding.severity]:
            room[found.finding.severity] -= 1
            shown.append(found)
        else:
            left_out.append(found.finding)
    return shown, left_out


def _annotation(found: _Found, root: Path) -> str:
    finding = found.finding
    properties = {"title": f"{finding.code} {finding.name}"}
    line = _line(finding, root)
    if line is not None:
        properties = {"file": line.file, "line": str(line.line), **properties}
    return _command(_COMMANDS[finding.severity], properties, "\n".join(_message(found)))


def _line(finding: Finding, root: Path) -> SourceLine | None:
    line = source_line(finding.source, root)
    file = file_in(root, line.file) if line else None
    return SourceLine(file, line.line) if line and file else None


def _message(found: _Found) -> Iterator[str]:
    finding = found.finding
    yield f"{visible(found.trace)}: {printable(finding.message)}"
    if found.bound_by is not None:
        yield of_little_weight(found.bound_by)
    if finding.source:
        yield f"at: {printable(finding.source)}"
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


def _notes(report: TraceReport) -> Iterator[str]:
    for label, sentence in reservations(report.coverage, report.quality):
        yield _log_line(f"{visible(report.trace)}: {label}: {visible(sentence)}")


def _tally(report: TraceReport) -> str:
    return _log_line(f"{visible(report.trace)}: {closing_line(report)}")


def _log_line(text: str) -> str:
    """Return a plain line of the log: words of ours come first, so it is no command."""
    return f"analyze: {text}".replace(_OLD_COMMAND, "## [")


def _command(name: str, properties: dict[str, str], message: str) -> str:
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
