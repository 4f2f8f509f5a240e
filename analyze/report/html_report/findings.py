"""Findings as the page shows them: what stands open, what is folded, where they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from analyze.engine.result import Finding, Place
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
        brief: what was observed, or why that is benign.
        said: labelled sentences.
        evidence: its rows.
        places: JSON of where it is in the timeline: start and duration in microseconds from the
            trace start, device.
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
    places: str
    where: str


Window = tuple[float, float]
"""Start and end of a timeline, in microseconds from the trace start."""


def cards(findings: Sequence[Finding], window: Window | None) -> list[FindingCard]:
    """Return the findings that are no consequence of another, the first problems open.

    Args:
        findings: ranked.
        window: of the timeline; None where there is none.
    """
    top = top_level(findings)[:MAX_FINDINGS]
    problems = [finding for finding in top if finding.state != "benign"][:MOST_OPEN]
    return [_card(finding, window, is_open=finding in problems) for finding in top]


def top_level(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are no consequence of another."""
    return [finding for finding in findings if finding.explained_by is None]


def css_of(finding: Finding) -> str:
    """Return the class of a finding: its severity, or ``benign``."""
    return "benign" if finding.state == "benign" else finding.severity


def _card(finding: Finding, window: Window | None, *, is_open: bool) -> FindingCard:
    said = list(sentences(finding, verbose=True))
    is_benign = finding.state == "benign"
    return FindingCard(
        css=css_of(finding),
        mark="\N{CHECK MARK}" if is_benign else MARKS[finding.severity],
        state=state_word(finding),
        code=finding.code,
        name=printable(finding.name),
        title=printable(finding.title),
        is_open=is_open,
        brief=printable((finding.because if is_benign else None) or finding.message),
        said=[pair for pair in said if pair[0] != "evidence"],
        evidence=_evidence(finding.evidence),
        places=orjson.dumps([_place(p) for p in finding.places if _is_in(p, window)]).decode(),
        where=_where(finding),
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


def _place(place: Place) -> list[float | int | None]:
    return [place.start_us, place.dur_us or 0, place.device]


def _is_in(place: Place, window: Window | None) -> bool:
    """Whether a part of a place is in the window."""
    if window is None:
        return False
    start_us, end_us = window
    return place.start_us <= end_us and place.start_us + (place.dur_us or 0) >= start_us


def _where(finding: Finding) -> str:
    places = counted(finding.places_total, "place") if finding.places_total else ""
    at = f"at {printable(finding.source)}" if finding.source else ""
    return ", ".join(part for part in (places, at) if part)


@dataclass(frozen=True)
class Marks:
    """Where the findings of one rule are in the timeline.

    Attributes:
        code, level: of the rule, and the class of its severity.
        places: start and duration from the start of the window.
        titles, messages, savings: of the finding of each place.
    """

    code: str
    level: str
    places: list[tuple[float, float]]
    titles: list[str]
    messages: list[str]
    savings: list[str]


def marks(findings: Sequence[Finding], window: Window) -> list[Marks]:
    """Return where findings are in a timeline, a rule at a time."""
    found: dict[tuple[str, str], Marks] = {}
    for finding in top_level(findings)[:MAX_FINDINGS]:
        key = finding.code, css_of(finding)
        for place in finding.places:
            if not _is_in(place, window):
                continue
            marked = found.setdefault(key, Marks(*key, [], [], [], []))
            marked.places.append((round(place.start_us - window[0], 3), place.dur_us or 0.0))
            marked.titles.append(visible(finding.title))
            marked.messages.append(visible(finding.message))
            marked.savings.append(savings(finding) or "")
    return list(found.values())
