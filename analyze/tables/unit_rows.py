"""The units of repetition with the amounts of the work launched in them."""

import dataclasses
from typing import NamedTuple

import polars as pl

from analyze.tables.facts import Facts
from analyze.tables.regions import gpu_amounts, no_work_is_zero
from analyze.tables.units import WHOLE_TRACE, Units

UNIT_OF_ROW = "#unit_of_row"
"""Column of :class:`UnitWork` with the index of the unit that a row belongs to."""


class UnitWork(NamedTuple):
    """Units of one kind, and what was launched in them.

    Attributes:
        units: the intervals.
        facts: the facts, whose ops, API calls and GPU work have the column ``#unit_of_row``; null
            where a row belongs to none.
    """

    units: Units
    facts: Facts

    def rows(self) -> pl.DataFrame:
        """Return one row a unit with the amounts of the work launched in it."""
        return unit_rows(self.units, UNIT_OF_ROW, self.facts)


def work_in(units: Units, facts: Facts) -> UnitWork:
    """Tell which unit each op, API call and GPU op belongs to.

    Args:
        units: the intervals.
        facts: the facts of the trace they are in.
    """
    of_calls = units.index_at(facts.api_calls)
    located = dataclasses.replace(
        facts,
        gpu_ops=_with_unit(facts.gpu_ops, of_calls.gather(facts.gpu_ops["api_row"])),
        ops=_with_unit(facts.ops, units.index_at(facts.ops)),
        api_calls=_with_unit(facts.api_calls, of_calls),
    )
    return UnitWork(units, located)


def _with_unit(frame: pl.DataFrame, index: pl.Series) -> pl.DataFrame:
    return frame.with_columns_seq(index.alias(UNIT_OF_ROW))


def unit_rows(units: Units, key: str, facts: Facts) -> pl.DataFrame:
    """Return one row a unit with the amounts of the work launched in it.

    Where the file may hold only a part of that work they are null, and the period where
    ``analyze trim`` may have left out the next unit; those of the whole trace are those of the
    file.
    """
    gpu = gpu_amounts(facts.gpu_ops.drop_nulls(key), [key])
    calls = (
        facts.api_calls.drop_nulls(key)
        .group_by(key)
        .agg(
            launches=pl.col("is_launch").sum().cast(pl.Int64),
            syncs=(pl.col("is_sync") & ~pl.col("profiler_own")).sum().cast(pl.Int64),
        )
    )
    self_times = facts.ops.drop_nulls(key).group_by(key).agg(op_self_ns=pl.col("self_ns").sum())
    amounts = ["gpu_busy_ns", "gpu_span_ns", "gpu_sum_ns", "gpu_ops", "kernels", "copies"]
    rows = units.intervals.with_columns_seq(cpu_ns=pl.col("end_ns") - pl.col("start_ns"))
    if units.source == WHOLE_TRACE:
        rows = _span_of_everything(rows, facts)
    for part in (gpu, calls, self_times):
        rows = rows.join(part, left_on="index", right_on=key, how="left", maintain_order="left")
    rows = rows.with_columns_seq(
        *no_work_is_zero(amounts),
        pl.col("launches", "syncs", "op_self_ns").fill_null(0),
        period_ns=pl.col("start_ns").shift(-1).over("pid") - pl.col("start_ns"),
    )
    if units.source == WHOLE_TRACE:
        return rows
    next_start = pl.col("start_ns") + pl.col("period_ns")
    return rows.with_columns_seq(
        *facts.kept.known_in((*amounts, "launches", "syncs"), pl.col("end_ns")),
        *facts.kept.of_ops().known_in(["period_ns"], next_start),
    )


def _span_of_everything(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    length = pl.lit(whole_span_ns(facts), dtype=pl.Int64)
    return rows.with_columns_seq(start_ns=pl.lit(0, dtype=pl.Int64), end_ns=length, cpu_ns=length)


def whole_span_ns(facts: Facts) -> int | None:
    """Return the time from the first to the last moment of ops, API calls and GPU work.

    None where the CPU recorded neither ops nor calls: the span of GPU work alone is no CPU time.
    """
    if facts.ops.is_empty() and facts.api_calls.is_empty():
        return None
    intervals = [
        frame.select_seq("start_ns", "dur_ns")
        for frame in (facts.ops, facts.api_calls, facts.gpu_ops)
    ]
    end = pl.col("start_ns") + pl.col("dur_ns")
    span = pl.concat(intervals).drop_nulls().select_seq(end.max() - pl.col("start_ns").min())
    length: int | None = span.item()
    return length
