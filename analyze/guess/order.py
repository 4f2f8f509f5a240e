"""How the GPU ops of a forward differ from a guessed order: missing, unexpected, in another place.

The longest common sequence is what stays; an item that is missing in one place and fits an
unexpected GPU op in another has moved.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from analyze.engine.findings import plain
from analyze.engine.result import Finding, TraceReport
from analyze.guess.rules import WRONG_WORD, Guessed
from analyze.guess.words import members
from analyze.tables.build import Trace
from analyze.words import counted

Change = Literal["missing", "unexpected", "moved"]

MAX_CHANGES = 50
"""Differences that a finding lists."""

_MAX_CELLS = 1_000_000
"""Pairs that are compared at most; beyond it, each item goes with the next GPU op that fits."""

_SHOWN = ("short_name", "family", "op_chain", "dur_us", "start_us")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        change: what happened to the item or the GPU op.
        expected_at: position in the guessed order, from 0; None of what is unexpected.
        position: position in the forward, from 0; None of what is missing.
        item: as guessed; None of what is unexpected.
        row: the GPU op; None of what is missing.
    """

    change: Change
    expected_at: int | None
    position: int | None
    item: str | None
    row: Row | None

    def to_evidence(self) -> dict[str, Any]:
        """Return it as a row of evidence."""
        shown = {name: plain(self.row[name]) for name in _SHOWN} if self.row else {}
        return {
            "change": self.change,
            "guessed": self.item,
            "guessed_position": self.expected_at,
            "position": self.position,
            **shown,
        }


def fits(item: str, row: Row) -> bool:
    """Whether a GPU op is what an item of an order names, as its rule decides it."""
    return _fits(item, row["short_name"], row["family"] or row["kind"])


@lru_cache(maxsize=100_000)
def _fits(item: str, name: str | None, what: str) -> bool:
    families = members(item)
    if families:
        return name == item or what in families
    if item.lower().startswith(("memcpy ", "memset ")):
        return name is not None and name.startswith(item)
    return name == item


def differences(items: Sequence[str], rows: Sequence[Row]) -> list[Difference]:
    """Return how the GPU ops of a forward differ from a guessed order, in their order."""
    pairs = _common(items, rows)
    kept_items, kept_rows = {item for item, _ in pairs}, {row for _, row in pairs}
    unexpected = [number for number in range(len(rows)) if number not in kept_rows]
    changes = []
    for number, item in enumerate(items):
        if number in kept_items:
            continue
        place = next((place for place in unexpected if fits(item, rows[place])), None)
        if place is None:
            changes.append(Difference("missing", number, None, item, None))
        else:
            unexpected.remove(place)
            changes.append(Difference("moved", number, place, item, rows[place]))
    changes += [Difference("unexpected", None, place, None, rows[place]) for place in unexpected]
    return sorted(changes, key=lambda change: _place(change, pairs))


def _place(change: Difference, pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return where in the forward a difference is; what is missing comes after what it follows."""
    if change.position is not None:
        return change.position, 1
    before = [row for item, row in pairs if item < (change.expected_at or 0)]
    return max(before, default=-1), 2


def _common(items: Sequence[str], rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the longest common sequence as pairs of positions in items and rows."""
    start = 0
    while start < min(len(items), len(rows)) and fits(items[start], rows[start]):
        start += 1
    end = 0
    while end < min(len(items), len(rows)) - start and fits(items[-1 - end], rows[-1 - end]):
        end += 1
    middle = _longest(items[start : len(items) - end], rows[start : len(rows) - end])
    tail = ((len(items) - n, len(rows) - n) for n in range(end, 0, -1))
    head = ((n, n) for n in range(start))
    return [*head, *((start + item, start + row) for item, row in middle), *tail]


def _longest(items: Sequence[str], rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    if len(items) * len(rows) > _MAX_CELLS:
        yield from _next_that_fits(items, rows)
        return
    lengths = [[0] * (len(rows) + 1) for _ in range(len(items) + 1)]
    equal = [[fits(item, row) for row in rows] for item in items]
    for i in range(len(items) - 1, -1, -1):
        for j in range(len(rows) - 1, -1, -1):
            skipped = max(lengths[i + 1][j], lengths[i][j + 1])
            lengths[i][j] = max(skipped, 1 + lengths[i + 1][j + 1]) if equal[i][j] else skipped
    i = j = 0
    while i < len(items) and j < len(rows):
        if equal[i][j] and lengths[i][j] == 1 + lengths[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1


def _next_that_fits(items: Sequence[str], rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Yield a common sequence, though not the longest: each item with the next row that fits."""
    start = 0
    for number, item in enumerate(items):
        place = next((j for j in range(start, len(rows)) if fits(item, rows[j])), None)
        if place is not None:
            yield number, place
            start = place + 1


def with_differences(finding: Finding, guessed: Guessed, trace: Trace) -> Finding:
    """Return the finding of a wrong order, with what differs in the first forward that does.

    Its evidence are the differences, and its surprise counts them.
    """
    assert isinstance(guessed.guess, tuple)  # noqa: S101 - of an order
    items = guessed.guess
    for rows in forwards_in_order(trace):
        changes = differences(items, rows)
        if changes:
            break
    else:
        return finding
    counts: dict[Change, int] = {
        kind: sum(change.change == kind for change in changes) for kind in _WORDS
    }
    measures = {
        "observed": len(rows),
        **{str(kind): count for kind, count in counts.items()},
        "surprise": plain(WRONG_WORD * min(1, len(changes) / max(len(items), len(rows)))),
    }
    return dataclasses.replace(
        finding,
        message=f"{counted(len(rows), 'GPU op')} per {finding.per}: {_in_words(counts)}",
        measures=measures,
        evidence=tuple(change.to_evidence() for change in changes[:MAX_CHANGES]),
    )


_WORDS: Mapping[Change, str] = {
    "missing": "missing",
    "unexpected": "unexpected",
    "moved": "in another place",
}


def _in_words(counts: Mapping[Change, int]) -> str:
    return ", ".join(f"{counts[kind]:,} {words}" for kind, words in _WORDS.items() if counts[kind])


def add_differences(report: TraceReport, guesses: Sequence[Guessed], trace: Trace) -> TraceReport:
    """Return a report in which findings about orders say what differs."""
    orders = {guess.rule.code: guess for guess in guesses if guess.quantity.kind == "order"}
    findings = tuple(
        with_differences(finding, orders[finding.code], trace)
        if finding.code in orders
        else finding
        for finding in report.findings
    )
    return dataclasses.replace(report, findings=findings)


def forwards_in_order(trace: Trace) -> Iterator[list[dict[str, Any]]]:
    """Yield, per forward, its GPU ops in the order of their start; empty where it has none.

    Forwards of which the file may hold only a part are left out.
    """
    columns = ["forward", "kind", *_SHOWN]
    rows = trace.table("gpu_ops").select(columns).drop_nulls("forward")
    by_forward = rows.partition_by("forward", as_dict=True, maintain_order=True)
    for index in trace.table("forwards").drop_nulls("launches")["index"]:
        found = by_forward.get((index,))
        yield [] if found is None else found.to_dicts()
