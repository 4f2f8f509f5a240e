"""Whether a trimmed trace says the same about its steps as the whole trace does."""

from collections.abc import Collection

import polars as pl

from analyze.tables.build import Trace

TABLES = ("gpu_ops", "ops", "api_calls")
NEIGHBOURS = (
    "gap_before_us", "gap_cause", "crosses_earlier", "exposed_us", "call_index", "position",
    "by_hand",
)  # fmt: skip
"""Columns that count, or say something about, the work around, which may not be kept."""

UNIT_AMOUNTS = (
    "gpu_busy_us", "gpu_sum_us", "gpu_span_us", "gpu_ops", "kernels", "copies", "launches",
    "cpu_us", "op_self_us",
)  # fmt: skip


def rows_of_units(trace: Trace, table: str, unit: str, numbers: Collection[int]) -> pl.DataFrame:
    """Return the rows that belong to units, times as in the file."""
    rows = trace.table(table).filter(pl.col(unit).is_in(list(numbers)))
    shift = trace.clock.origin_ns
    times = [column for column in ("start_us", "api_start_us") if column in rows.columns]
    exact = rows.with_columns(
        ((pl.col(time) * 1000).round().cast(pl.Int64) + shift).alias(time) for time in times
    )
    kept = [c for c in exact.columns if c not in (*NEIGHBOURS, "forward", "step")]
    return exact.select(kept).sort(kept)


def amounts_of_units(trace: Trace, unit: str, numbers: Collection[int]) -> pl.DataFrame:
    """Return what was launched in units."""
    rows = trace.table(f"{unit}s")
    return rows.filter(pl.col("index").is_in(list(numbers))).select(UNIT_AMOUNTS)


def regions_inside(trace: Trace, windows: Collection[tuple[int, int]]) -> pl.DataFrame:
    """Return the regions that lie whole within stretches of the file's time."""
    shift = trace.clock.origin_ns
    start = (pl.col("start_us") * 1000).round().cast(pl.Int64) + shift
    rows = trace.table("regions").with_columns(start_us=start)
    end = pl.col("start_us") + (pl.col("dur_us") * 1000).round().cast(pl.Int64)
    inside = [(pl.col("start_us") >= a) & (end <= b) for a, b in windows]
    return rows.filter(pl.any_horizontal(inside)).sort(rows.columns)
