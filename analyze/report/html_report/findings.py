"""Findings as the page shows them: what stands open, what is folded, where they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analyze.engine.result import Finding, Place
from analyze.kernels.display import shorten
from analyze.report.finding_words import (
    MARKS,
    Pair,
    evidence_label,
    evidence_word,
    savings,
    sentences,
    state_word,
)
from analyze.words import counted, printable, visible

MAX_FINDINGS = 200
MOST_OPEN = 3
"""Findings that stand open; of the others the heading and what was observed."""


@dataclass(frozen=True)
class Evidence:
    """Rows of evidence, without the columns in which none has something to say.

    Attributes:
        title: how many there are.
        headings: of the columns.
        numeric: places of the columns of numbers.
        rows: the cells in words.
    """

    title: str
    headings: list[str]
    numeric: frozenset[int]
    rows: list[list[str]]


@dataclass(frozen=True)
class FindingCard:
    """One finding.

    Attributes:
        css: class of its severity or state.
        mark, state: sign and word for it.
        is_open: it stands open.
        brief: what was observed, or why that is benign, or why it was accepted.
        said: labelled sentences.
        evidence: its rows.
        number: of the finding on the page, see :class:`Marks`.
        drawn: how many of its places are in the timeline.
        where: how many places there are, and the user's line.
    """

    css: str
    mark: str
    state: str
    code: str
    name: str
    title: str
    is_open: bool
    brief: str
    said: list[Pair]
    evidence: Evidence
    number: int
    drawn: int
    where: str


Window = tuple[float, float]
"""Start and end of a timeline, in microseconds from the trace start."""


def cards(
    findings: Sequence[Finding],
    window: Window | None,
    numbers: Iterator[int],
    *,
    most_open: int = MOST_OPEN,
) -> list[FindingCard]:
    """Return findings as cards, the first problems open.

    Args:
        findings: ranked.
        window: of the timeline; None where there is none.
        numbers: of the findings.
        most_open: how many problems stand open.
    """
    problems = [finding for finding in findings if finding.state != "benign"][:most_open]
    return [
        _card(finding, window, number, is_open=finding in problems)
        for finding, number in zip(findings, numbers, strict=False)
    ]


def css_of(finding: Finding) -> str:
    """Return the class of a finding: its severity; ``benign`` also where a baseline knows it."""
    return "benign" if finding.state == "benign" or finding.is_known else finding.severity


def _card(finding: Finding, window: Window | None, number: int, *, is_open: bool) -> FindingCard:
    said = list(sentences(finding, verbose=True))
    is_benign = finding.state == "benign"
    drawn = sum(_is_in(place, window) for place in finding.places)
    return FindingCard(
        css=css_of(finding),
        mark="\N{CHECK MARK}" if is_benign else MARKS[finding.severity],
        state=state_word(finding),
        code=finding.code,
        name=printable(finding.name),
        title=printable(finding.title),
        is_open=is_open,
        brief=_brief(finding),
        said=[pair for pair in said if pair[0] != "evidence"],
        evidence=_evidence(finding.evidence),
        number=number,
        drawn=drawn,
        where=_where(finding, None if window is None else drawn),
    )


def _evidence(rows: Sequence[dict[str, Any]]) -> Evidence:
    known = [(name, value) for row in rows for name, value in row.items() if value is not None]
    texts = {name for name, value in known if isinstance(value, str)}
    columns = list(dict.fromkeys(name for name, _ in known))
    return Evidence(
        title=f"evidence, {counted(len(rows), 'row')}",
        headings=[_heading(name, columns) for name in columns],
        numeric=frozenset(place for place, name in enumerate(columns) if name not in texts),
        rows=[[_cell(name, row.get(name)) for name in columns] for row in rows],
    )


def _heading(column: str, columns: Sequence[str]) -> str:
    """Return the heading of a column; a time of what another column names says that it is one."""
    words = evidence_label(column)
    is_of_another = column.endswith("_us") and column.removesuffix("_us") in columns
    return f"{words} time" if is_of_another else words


def _cell(column: str, value: object) -> str:
    return "" if value is None else evidence_word(column, value)


def _is_in(place: Place, window: Window | None) -> bool:
    """Whether a part of a place is in the window."""
    if window is None:
        return False
    start_us, end_us = window
    return place.start_us <= end_us and place.start_us + (place.dur_us or 0) >= start_us


def _brief(finding: Finding) -> str:
    reason = finding.baseline_reason if finding.is_known else None
    accepted = f"; accepted because: {reason}" if reason else ""
    because = finding.because if finding.state == "benign" else None
    return printable(f"{because or finding.message}{accepted}")


def _where(finding: Finding, drawn: int | None) -> str:
    """Say how many places there are, how many of them are drawn, and the line of most time.

    What is about the whole trace has no place.

    Args:
        finding: whose places.
        drawn: how many are in the timeline; None where there is none.
    """
    total, kept = finding.places_total, len(finding.places)
    said = [counted(total, "place")] if kept else []
    if 0 < kept < total:
        said.append(f"{kept:,} of them listed")
    if drawn is not None and drawn < kept:
        said.append(f"{drawn:,} of them in the timeline" if drawn else "none in the timeline")
    if finding.source:
        at = "most time at" if total > 1 else "at"
        said.append(f"{at} {printable(finding.source)}")
    return ", ".join(said)


@dataclass(frozen=True)
class Marks:
    """Where the findings of one rule are in the timeline.

    Attributes:
        code, level: of the rule, and the class of its severity.
        places: start and duration from the start of the window.
        events: what is there, and on which lane.
        numbers: of the finding of each place, on the page.
        titles, messages, savings: of that finding.
    """

    code: str
    level: str
    places: list[tuple[float, float]]
    events: list[str]
    numbers: list[int]
    titles: list[str]
    messages: list[str]
    savings: list[str]


def marks(findings: Sequence[Finding], window: Window) -> list[Marks]:
    """Return where findings are in a timeline, a rule at a time.

    Args:
        findings: those that the page shows, in the order of their numbers.
        window: of the timeline.
    """
    found: dict[tuple[str, str], Marks] = {}
    for number, finding in enumerate(findings):
        key = finding.code, css_of(finding)
        for place in finding.places:
            if not _is_in(place, window):
                continue
            marked = found.setdefault(key, Marks(*key, [], [], [], [], [], []))
            marked.places.append((round(place.start_us - window[0], 3), place.dur_us or 0.0))
            marked.events.append(_event(place))
            marked.numbers.append(number)
            marked.titles.append(visible(finding.title))
            marked.messages.append(visible(finding.message))
            marked.savings.append(savings(finding) or "")
    return list(found.values())


def _event(place: Place) -> str:
    """Return the name of the event of a place and where it is, as the timeline names its lanes."""
    stream = "" if place.stream is None else f" stream {place.stream}"
    lanes = {f"GPU {place.device}{stream}": place.device, f"thread {place.tid}": place.tid}
    on = [lane for lane, known in lanes.items() if known is not None]
    return visible(", ".join([shorten(place.name), *on]))
