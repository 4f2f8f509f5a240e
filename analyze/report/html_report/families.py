"""GPU time by family: a bar of groups, and a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from analyze.report.html_report.groups import GROUPS, Group, group_of
from analyze.report.summary import sum_of_known
from analyze.report.views.model import FamilyTime
from analyze.words import duration, share, size

_NARROWEST_LABEL = 0.03
"""Share of the bar from which on a part has room for its letter."""


@dataclass(frozen=True)
class Part:
    """A part of the bar; ``x`` and ``width`` in percent of it."""

    group: Group
    x: str
    width: str
    middle: str
    has_label: bool
    words: str


@dataclass(frozen=True)
class FamilyCells:
    """A row of the table."""

    group: Group
    name: str
    count: str
    time: str
    share: str
    bytes: str


@dataclass(frozen=True)
class Families:
    """The bar and the table; of unknown times the bar shows nothing."""

    total: str
    parts: list[Part]
    rows: list[FamilyCells]


def families_of(families: Sequence[FamilyTime]) -> Families | None:
    """Return GPU time by family; None without GPU work."""
    if not families:
        return None
    total = _total_us(families)
    words = "an unknown time" if total is None else duration(total)
    return Families(words, parts_of(families), [_row(f, total) for f in families])


def parts_of(
    families: Sequence[FamilyTime], length: float = 1.0, *, with_times: bool = True
) -> list[Part]:
    """Return the parts of a bar, most time first.

    Args:
        families: GPU time by family.
        length: of the bar, as a share of the width there is.
        with_times: the bar is that of these times, which its parts say beside their shares.
    """
    total = _total_us(families)
    times = [0.0] * len(GROUPS)
    for family in families:
        times[group_of(family.kind, family.family)] += family.total_us or 0.0
    order = sorted(range(len(GROUPS)), key=lambda place: -times[place])
    parts, x = [], 0.0
    for place in order:
        if not times[place] or not total:
            continue
        part = times[place] / total
        width = part * length
        time = f"{duration(times[place])}, " if with_times else ""
        words = f"{GROUPS[place].label}: {time}{share(part)}"
        label = width >= _NARROWEST_LABEL
        middle = _percent(x + width / 2)
        parts.append(Part(GROUPS[place], _percent(x), _percent(width), middle, label, words))
        x += width
    return parts


def _total_us(families: Sequence[FamilyTime]) -> float | None:
    return sum_of_known([family.total_us for family in families])


def _percent(value: float) -> str:
    return f"{value * 100:.3f}%"


def _row(family: FamilyTime, total: float | None) -> FamilyCells:
    is_kernel = family.kind == "kernel"
    return FamilyCells(
        group=GROUPS[group_of(family.kind, family.family)],
        name=(family.family or "unknown") if is_kernel else family.kind,
        count=f"{family.count:,}",
        time=duration(family.total_us),
        share=share(family.total_us / total if family.total_us is not None and total else None),
        bytes="" if is_kernel else size(family.bytes),
    )
