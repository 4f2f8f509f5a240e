"""Traces side by side: the table, the bars, and what to know before comparing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from analyze.engine.result import Uncaptured
from analyze.report.compare import add_relative
from analyze.report.compare_words import (
    NUMBERS,
    Cell,
    absence,
    cautions,
    left_out_note,
    medians_of,
    paths,
    relative_note,
    telling,
    unrelated,
)
from analyze.report.html_report.families import Part, parts_of
from analyze.report.html_report.groups import Group
from analyze.report.views.model import Views
from analyze.words import duration, printable

_HEADINGS = {
    "occupancy": "occupancy, reported -> recomputed",
    "precision path": "precision path, its share",
}
"""Of columns whose heading elsewhere does not say all."""

_BROKEN = frozenset({"findings", "precision path", "costliest kernel"})
"""Columns of words, whose cells may be broken into lines."""

_PATH_NOTES = {
    "precision path": (
        "precision path: the costliest precision, with its share of the time of matrix products,"
        " convolutions and attention"
    ),
    "occupancy": "occupancy: that of the costliest kernel, median of its launches",
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """GPU busy time of a forward of one trace, to the scale of all."""

    name: str
    parts: list[Part]
    words: str


@dataclass(frozen=True)
class Comparison:
    """Traces side by side.

    Attributes:
        headings, rows: the table; the first cell of a row is the name, which has no heading.
        amounts: what they are of.
        unbroken: places of the columns whose cells stay in one line.
        bars: one for each trace; none where a trace has no GPU busy time.
        groups: those in the bars, for the legend.
        careful: what makes the numbers hard to compare.
        notes: what columns mean.
        absent: captures without a trace, and why.
    """

    headings: list[str]
    rows: list[list[str]]
    amounts: str
    unbroken: frozenset[int]
    bars: list[Bar]
    groups: list[Group]
    careful: list[str]
    notes: list[str]
    absent: list[str]


def comparison_of(
    columns: Mapping[str, Cell],
    rows: list[Row],
    views: Sequence[Views | None],
    absent: Sequence[Uncaptured],
) -> Comparison | None:
    """Return traces side by side; None where there is only one thing to show.

    Args:
        columns: to show of each trace, by heading.
        rows: the traces at a glance, under names of their own; they are added to.
        views: of the same traces.
        absent: captures without a trace.
    """
    if len(rows) + len(absent) < 2:
        return None
    relative, notes = _relative(rows, views)
    ways, way_notes, careful = _how_they_run(rows, views)
    columns = {**columns, **relative, **ways}
    bars = _bars(rows, views)
    return Comparison(
        headings=[_HEADINGS.get(heading, heading) for heading in columns],
        rows=[
            [printable(row["name"]), *(_together(cell(row)) for cell in columns.values())]
            for row in rows
        ],
        amounts=medians_of(rows),
        unbroken=frozenset(
            place for place, heading in enumerate(columns) if heading not in _BROKEN
        ),
        bars=bars,
        groups=list(dict.fromkeys(part.group for bar in bars for part in bar.parts)),
        careful=careful,
        notes=[*notes, *way_notes],
        absent=[absence(entry.name, entry.status, entry.reason) for entry in absent],
    )


def _together(words: str) -> str:
    """Keep numbers and their percent signs in one line."""
    return words.replace(" %", "\N{NO-BREAK SPACE}%")


def _relative(rows: list[Row], views: Sequence[Views | None]) -> tuple[dict[str, Cell], list[str]]:
    """Return the column of times relative to the fastest trace, where that means something."""
    if len(rows) < 2:
        return {}, []
    shapes = [view.compared.input_shapes if view else None for view in views]
    reasons = unrelated(rows, shapes)
    if reasons:
        return {}, [left_out_note(reasons)]
    base = add_relative(rows, None)
    return {} if base is None else {"relative": NUMBERS["relative"]}, [relative_note(base)]


def _how_they_run(
    rows: list[Row], views: Sequence[Views | None]
) -> tuple[dict[str, Cell], list[str], list[str]]:
    """Return columns of how the work runs, what they mean, and what makes traces incomparable.

    A result that was stored without views says none of it.
    """
    compared = [view.compared for view in views if view is not None]
    if len(compared) < len(rows):
        return {}, [], []
    for row, more in zip(rows, compared, strict=True):
        row.update(asdict(more))
    ways = telling(paths(), rows)
    notes = [note for heading, note in _PATH_NOTES.items() if heading in ways]
    return ways, notes, list(cautions(rows))


def _bars(rows: Sequence[Row], views: Sequence[Views | None]) -> list[Bar]:
    known = [view for view in views if view is not None]
    if len(known) < len(rows) or not all(row["gpu_busy_us"] for row in rows):
        return []
    longest = max(row["gpu_busy_us"] for row in rows)
    return [
        Bar(
            name=printable(row["name"]),
            parts=parts_of(view.families, row["gpu_busy_us"] / longest, with_times=False),
            words=duration(row["gpu_busy_us"]),
        )
        for row, view in zip(rows, known, strict=True)
    ]
