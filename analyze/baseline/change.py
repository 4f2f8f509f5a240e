"""Whether a known finding got worse or better since it was accepted."""

from collections.abc import Iterator
from dataclasses import dataclass

from analyze.baseline.model import Entry
from analyze.engine.result import LEVELS, Finding
from analyze.words import counted, duration, share, unitless

TOLERANCE = 0.2
"""A fifth: medians of the same program differ by less from run to run on a quiet machine."""

_LEAST_SHARE = 0.01
"""A time that changed by less than this share of its unit's whole time is no news."""

_MOST_CHANGE = 1000.0
"""A change by more times than this is worded without a percentage."""

_TIME, _COUNT = "us", "n"
"""What rules call the time and the number of what they match."""


@dataclass(frozen=True)
class Change:
    """In what a finding is worse and better than its entry, in words."""

    worse: tuple[str, ...]
    better: tuple[str, ...]


def change_since(entry: Entry, finding: Finding, tolerance: float) -> Change:
    """Compare a finding with what was known.

    Severity counts, whether it still is intermittent, and by more than ``tolerance``: its main
    amount and the share of units that mismatch, if both are of the same unit. The main amount is
    what it would save; where a rule states no savings, the time ``us``, else the number ``n``, that
    it measures.

    Args:
        entry: what was known.
        finding: what is found now.
        tolerance: the relative change that is none, 0.2 for 20 %.
    """
    changes = [*_verdict(entry, finding)]
    if entry.per == finding.per:
        changes += [*_amount(entry, finding, tolerance), *_units(entry, finding, tolerance)]
    return Change(
        tuple(words for is_worse, words in changes if is_worse),
        tuple(words for is_worse, words in changes if not is_worse),
    )


def main_amount(measured: Entry | Finding) -> tuple[str, float] | None:
    """Return the amount by which findings are compared, with its name; None where there is none."""
    amounts = {
        "saves": measured.savings_us,
        _TIME: measured.measures.get(_TIME),
        _COUNT: measured.measures.get(_COUNT),
    }
    for name, value in amounts.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            return name, value
    return None


def _verdict(entry: Entry, finding: Finding) -> Iterator[tuple[bool, str]]:
    before, now = LEVELS.index(entry.severity), LEVELS.index(finding.severity)
    if before != now:
        yield now > before, f"severity {entry.severity} -> {finding.severity}"
    if entry.state != finding.state:
        yield finding.state == "mismatch", f"{entry.state} -> {finding.state}"


def _amount(entry: Entry, finding: Finding, tolerance: float) -> Iterator[tuple[bool, str]]:
    before, now = main_amount(entry), main_amount(finding)
    if before is None or now is None or before[0] != now[0]:
        return
    name, was, amount = before[0], before[1], now[1]
    if not _differ(was, amount, tolerance) or (name == "saves" and _is_slight(was, finding)):
        return
    word = f"{unitless(was)} -> {unitless(amount)}" if name == _COUNT else _durations(was, amount)
    yield amount > was, f"{name} {word}{_relative(was, amount)}"


def _relative(was: float, amount: float) -> str:
    """Word a change as a percentage; of what is not worth one the two amounts say enough."""
    change = amount / was - 1 if was > 0 else _MOST_CHANGE
    return f" ({change:+.0%})".replace("%", " %") if change < _MOST_CHANGE else ""


def _durations(before: float, now: float) -> str:
    return f"{duration(before)} -> {duration(now)}"


def _is_slight(was: float, finding: Finding) -> bool:
    """Whether savings changed by next to nothing of their unit's time; unknown is not slight."""
    if not finding.savings_us or not finding.savings_share:
        return False
    whole = finding.savings_us / finding.savings_share
    return abs(finding.savings_us - was) < _LEAST_SHARE * whole


def _units(entry: Entry, finding: Finding, tolerance: float) -> Iterator[tuple[bool, str]]:
    if not entry.units_total or not finding.units_total:
        return
    was = entry.units_mismatching / entry.units_total
    now = finding.units_mismatching / finding.units_total
    if _differ(was, now, tolerance):
        units = counted(finding.units_total, finding.per)
        before = f"{entry.units_mismatching} of {entry.units_total} ({share(was)})"
        yield now > was, f"seen in {before} -> {finding.units_mismatching} of {units}"


def _differ(before: float, now: float, tolerance: float) -> bool:
    return now > before * (1 + tolerance) or now < before / (1 + tolerance)
