"""Findings in GitHub Markdown: for the summary of a CI run, a pull request or an issue.

Texts of a trace or a rule stand in code spans or are escaped, see
:mod:`analyze.report.markdown_words`: they link nothing, notify nobody and embed nothing.
"""

from collections.abc import Iterable, Iterator, Sequence

from analyze.engine.result import Finding, TraceReport, uncaptured, unread
from analyze.report.baseline_words import REMOVE, baseline_lines
from analyze.report.captures_text import side_by_side, traces_title
from analyze.report.compare_words import absence, unsteady_latencies
from analyze.report.coverage_text import coverage_lines
from analyze.report.finding_words import (
    MARKS,
    Pair,
    called,
    closing_line,
    savings,
    sentences,
    state_word,
    unanswered,
)
from analyze.report.formats import Rendering
from analyze.report.markdown_words import code, in_html, markdown_table, plain
from analyze.report.verdict import Group, groups, order_of, verdict
from analyze.words import counted

MOST_BYTES = 1_000_000
"""Bytes of the whole; the summary of a step of GitHub Actions takes 1 MiB (1,048,576)."""

_ROOM_FOR_LAST_WORDS = 1_000
_MOST_IN_TABLE = 50
_MOST_IN_DETAIL = 25


def write_markdown(reports: Sequence[TraceReport], rendering: Rendering) -> str:
    """Return reports as Markdown, traces side by side first where there are several.

    What does not fit into :data:`MOST_BYTES` is left out block by block from the end, and the last
    sentence says how much.
    """
    blocks = [*_unread(reports), *_side_by_side(reports)]
    for report in reports:
        blocks += _report(report, verbose=rendering.verbose)
    kept = _fitting(blocks)
    if len(kept) < len(blocks):
        left_out = counted(len(blocks) - len(kept), "block")
        kept.append(f"**Cut here**, to keep below {MOST_BYTES:,} bytes: {left_out} left out.")
    return "\n\n".join(kept) + "\n"


def _fitting(blocks: Sequence[str]) -> list[str]:
    room = MOST_BYTES - _ROOM_FOR_LAST_WORDS
    for number, block in enumerate(blocks):
        room -= len(block.encode()) + len("\n\n")
        if room < 0:
            return list(blocks[:number])
    return list(blocks)


def _unread(reports: Sequence[TraceReport]) -> Iterator[str]:
    failed = unread(reports)
    lines = [f"- {plain(entry.message)}" for entry in failed[:_MOST_IN_TABLE]]
    if len(failed) > _MOST_IN_TABLE:
        lines.append(f"- and {len(failed) - _MOST_IN_TABLE:,} more")
    if failed:
        yield f"**Not checked: {counted(len(failed), 'trace')}**"
        yield "\n".join(lines)


def _side_by_side(reports: Sequence[TraceReport]) -> Iterator[str]:
    absent = uncaptured(reports)
    if len(reports) + len(absent) < 2:
        return
    columns, rows = side_by_side(reports)
    cells = ([code(row["name"]), *(plain(cell(row)) for cell in columns.values())] for row in rows)
    yield f"## {traces_title(rows)}"
    yield markdown_table(["trace", *columns], cells).rstrip()
    below = [f"- {note}" for note in unsteady_latencies(rows, code)]
    below += [f"- {plain(absence(each.name, each.status, each.reason))}" for each in absent]
    if below:
        yield "\n".join(below)


def _report(report: TraceReport, *, verbose: bool) -> Iterator[str]:
    """Yield the blocks of one trace; each is whole by itself."""
    order = order_of(report)
    found = (*order.problems, *order.minor)
    yield f"## {code(report.trace)}"
    yield f"**{plain(verdict(report))}**"
    if found:
        yield _findings_table(found)
    if order.bound_by is not None and order.minor:
        names = ", ".join(dict.fromkeys(called(finding) for finding in order.minor))
        yield f"Of little weight while {plain(called(order.bound_by))} holds: {plain(names)}."
    for finding in found[:_MOST_IN_DETAIL]:
        yield _details(_title(finding), sentences(finding, verbose=verbose))
    if len(found) > _MOST_IN_DETAIL:
        yield f"Without details: {counted(len(found) - _MOST_IN_DETAIL, 'more finding')}."
    if order.benign:
        yield _details("benign: looks wrong and is not", map(_benign, groups(order.benign)))
    yield _details("coverage", coverage_lines(report.coverage, report.quality))
    unsaid = [*baseline_lines(report), *unanswered(report)]
    if unsaid:
        yield _details("not answered", unsaid)
    yield plain(closing_line(report))


def _findings_table(found: Sequence[Finding]) -> str:
    rows = [
        [
            f"{MARKS[finding.severity]} {state_word(finding)}",
            code(_title(finding)),
            plain(finding.message),
            plain(savings(finding) or "unknown"),
        ]
        for finding in found[:_MOST_IN_TABLE]
    ]
    if len(found) > _MOST_IN_TABLE:
        rows.append(["", "", f"and {counted(len(found) - _MOST_IN_TABLE, 'more finding')}", ""])
    return markdown_table(["level", "rule", "what", "saves"], rows).rstrip()


def _title(finding: Finding) -> str:
    return f"{finding.code} {finding.name}"


def _benign(group: Group) -> Pair:
    times = f" x{group.count:,}" if group.count > 1 else ""
    return f"{_title(group.first)}{times}", group.first.because or group.first.message


def _details(title: str, pairs: Iterable[Pair]) -> str:
    """Return labelled sentences below a title that opens them.

    The title is inside HTML, where Markdown has no effect and its escapes would show.
    """
    lines = "\n".join(f"- {_bold(label)}{_shown(label, words)}" for label, words in pairs)
    return f"<details><summary>{in_html(title)}</summary>\n\n{lines}\n\n</details>"


def _shown(label: str, words: str) -> str:
    return code(words) if label == REMOVE else plain(words)


def _bold(label: str) -> str:
    """Return a label in bold with a blank behind it; nothing bold at all would be a rule."""
    return f"**{plain(label)}** " if label.strip() else ""
