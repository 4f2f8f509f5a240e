"""A guess against a trace: what was wrong, what was right, what nobody guessed about."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from analyze.engine.data import TraceTables
from analyze.engine.findings import plain
from analyze.engine.run import RuleResult, run_rule
from analyze.guess.amounts import Amount
from analyze.guess.observing import observe_by
from analyze.guess.order import with_differences
from analyze.guess.rules import Guessed
from analyze.guess.words import ATTENTION, members
from analyze.report.summary import microseconds
from analyze.tables.build import Trace
from analyze.tables.coverage import coverage, quality

SCHEMA_VERSION = 1

_ORDER_OF_STATES = ("mismatch", "intermittent", "confirmed", "unanswerable", "failed")

Row = dict[str, Any]


def compare_guesses(trace: Trace, guesses: Sequence[Guessed], file: str | None) -> Row:
    """Return guesses against a trace as plain data.

    Times are float microseconds, shares 0 to 1; ``surprise`` is explained in
    :mod:`analyze.guess.rules`.

    Args:
        trace: the trace.
        guesses: what was guessed.
        file: the guess file; None where there is none.
    """
    tables = TraceTables(trace)
    rows = [_guess(guessed, trace, tables) for guessed in guesses]
    rows.sort(key=lambda row: (_ORDER_OF_STATES.index(row["state"]), -(row["surprise"] or 0.0)))
    return {
        "schema_version": SCHEMA_VERSION,
        "trace": trace.name,
        "coverage": coverage(trace),
        "quality": quality(trace),
        "guess_file": file,
        "guesses": rows,
        "not_guessed": _not_guessed(trace, guesses),
    }


def _guess(guessed: Guessed, trace: Trace, tables: TraceTables) -> Row:
    result = run_rule(guessed.rule, tables)
    finding = next(iter(result.findings), None)
    if finding is not None and guessed.quantity.kind == "order":
        finding = with_differences(finding, guessed, trace)
    observed, reason = None, result.error or result.not_applicable
    if finding is not None:
        observed = finding.measures["observed"]
    elif result.error is None:
        seen = observe_by(guessed.rule, guessed.quantity, tables)
        observed, reason = plain(seen.typical), seen.unknown or reason
    return {
        "code": guessed.rule.code,
        "key": guessed.quantity.key,
        "title": guessed.quantity.title,
        "guess": guessed.words,
        "expected": _expected(guessed),
        "unit": guessed.quantity.unit.name.lower() if guessed.quantity.unit else None,
        "state": _state(result),
        "observed": observed,
        "message": finding.message if finding else None,
        "surprise": finding.measures["surprise"] if finding else None,
        "measures": finding.measures if finding else None,
        "per": finding.per if finding else None,
        "units_total": finding.units_total if finding else None,
        "units_mismatching": finding.units_mismatching if finding else None,
        "reason": reason,
        "evidence": list(finding.evidence) if finding else [],
    }


def _state(result: RuleResult) -> str:
    words = {"pass": "confirmed", "not_applicable": "unanswerable", "error": "failed"}
    return words.get(result.state, result.state)


def _expected(guessed: Guessed) -> Row | list[str]:
    if isinstance(guessed.guess, Amount):
        return {"low": guessed.guess.low, "high": guessed.guess.high}
    return list(guessed.guess)


def _not_guessed(trace: Trace, guesses: Sequence[Guessed]) -> Row:
    """Return the GPU work of the families that no guess is about, by time; durations summed."""
    family = pl.when(pl.col("kind") == "kernel").then(pl.col("family").fill_null("kernel"))
    rows = trace.facts.gpu_ops.with_columns(what=pl.coalesce(family, "kind"))
    is_spoken_of = pl.col("what").is_in(sorted(set(_spoken_of(guesses))))
    if any(map(_is_about_attention, guesses)):
        is_spoken_of |= pl.col("by_hand").is_not_null()
    silent = rows.filter(~is_spoken_of)
    by_family = (
        silent.group_by("what")
        .agg(
            pl.len(),
            pl.col("dur_ns").sum(),
            pl.col("short_name").sort_by("dur_ns", descending=True).first(),
        )
        .sort("dur_ns", "what", descending=[True, False])
    )
    whole_ns = rows["dur_ns"].sum()
    return {
        "gpu_sum_us": microseconds(whole_ns),
        "time_us": microseconds(silent["dur_ns"].sum()),
        "families": [
            {
                "family": "unknown" if what == "kernel" else what,
                "count": count,
                "time_us": microseconds(time),
                "share": plain(time / whole_ns) if whole_ns else None,
                "longest": name,
            }
            for what, count, time, name in by_family.iter_rows()
        ],
    }


def _is_about_attention(guessed: Guessed) -> bool:
    guess = guessed.guess
    return guessed.quantity.kind == "families" and isinstance(guess, tuple) and ATTENTION in guess


def _spoken_of(guesses: Sequence[Guessed]) -> Iterator[str]:
    """Yield the families that guesses are about, right or wrong."""
    for guessed in guesses:
        yield from guessed.quantity.speaks_of
        if isinstance(guessed.guess, tuple) and guessed.quantity.kind in ("families", "order"):
            for word in guessed.guess:
                yield from members(word)
