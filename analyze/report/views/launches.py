"""What the launches of a kernel name come to: means by time, and how far they spread.

A name is launched in many configurations, of which the commonest can be the least telling: a
thousand kernels of one block beside ten that fill the device and take the time.
"""

from dataclasses import dataclass

import polars as pl

from analyze.report.summary import DEFAULT_SHARED_MEMORY_LIMIT
from analyze.tables.build import Trace


@dataclass(frozen=True)
class Launches:
    """The launches of one kernel name; null is unknown.

    Attributes:
        occupancy_reported, occupancy, waves: means weighted by duration, of the kernels of which
            they are known; occupancies in percent.
        occupancy_least, occupancy_most: range of the recomputed occupancy.
        limiter: what limits the recomputed occupancy for most of the time.
        reported_zero_share: of the time of the name, that of kernels reported as 0 whose blocks
            have more shared memory than the profiler asks for.
    """

    occupancy_reported: float | None = None
    occupancy: float | None = None
    occupancy_least: float | None = None
    occupancy_most: float | None = None
    limiter: str | None = None
    waves: float | None = None
    reported_zero_share: float = 0.0


NOT_LAUNCHED = Launches()
"""Of kernels whose launches are not in the file."""


def launches_by_name(trace: Trace) -> dict[str | None, Launches]:
    """Return what is known of the launches of each kernel name."""
    kernels = _weighted(trace)
    limiters = _limiters(kernels)
    is_misreported = (pl.col("occupancy_reported") == 0) & (
        pl.col("shared_memory_bytes") > DEFAULT_SHARED_MEMORY_LIMIT
    )
    found = kernels.group_by("name").agg(
        *map(_mean, ("occupancy_reported", "occupancy", "waves")),
        occupancy_least=pl.col("occupancy").min(),
        occupancy_most=pl.col("occupancy").max(),
        reported_zero_share=pl.col("weight").filter(is_misreported).sum() / pl.col("weight").sum(),
    )
    launches = {}
    for row in found.iter_rows(named=True):
        name = row.pop("name")
        launches[name] = Launches(**row, limiter=limiters.get(name))
    return launches


def _weighted(trace: Trace) -> pl.DataFrame:
    """Return the kernels, each with a weight of at least 1 ns: all of them are to count."""
    kernels = trace.facts.gpu_ops.filter(pl.col("kind") == "kernel")
    return kernels.with_columns(weight=pl.col("dur_ns").fill_null(0).clip(lower_bound=1))


def _mean(column: str) -> pl.Expr:
    weight = pl.col("weight").filter(pl.col(column).is_not_null())
    mean = (pl.col(column) * pl.col("weight")).sum() / weight.sum()
    return pl.when(pl.col(column).is_not_null().any()).then(mean.round(6)).alias(column)


def _limiters(kernels: pl.DataFrame) -> dict[str | None, str]:
    known = kernels.filter(pl.col("occupancy_limiter").is_not_null())
    most_time_last = (
        known.group_by("name", "occupancy_limiter")
        .agg(pl.col("weight").sum())
        .sort("weight", "occupancy_limiter")
    )
    return dict(most_time_last.select("name", "occupancy_limiter").iter_rows())
