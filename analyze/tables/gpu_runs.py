"""GPU work in runs: what one annotation launched, one after the other, apart from all other work.

What was launched inside is asked of every annotation around a launch. A run answers for all its
work in one row, so that deep nesting does not cost a look at every kernel for every level.
"""

import polars as pl

from analyze.tables.intervals import busy_until, covered_ns

_NO_MARKS = pl.Series(dtype=pl.Int64)


def runs_of_work(work: pl.DataFrame, marks: pl.Series = _NO_MARKS) -> pl.DataFrame:
    """Join what follows on each other on its device and was launched in the same annotation.

    Work stays by itself where work of another annotation overlaps it, where annotations of several
    threads are around its launch, where it runs across a mark, and where its times are unknown.

    Args:
        work: as of :func:`analyze.tables.regions.work_of_regions`.
        marks: points of time, in ns: all of a run is before one or all is after it.

    Returns:
        One row a run: ``run`` (its number; the same for the same work in annotations of several
        threads), ``region_row``, ``elsewhere``, ``device_label``, ``start_ns``, ``end_ns`` (first
        start, last end; null where unknown), ``idle_ns`` (how much of that no work covers),
        ``sum_ns`` (durations added up), ``gpu_ops``, ``kernels``, ``copies``.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    placed = work.with_columns_seq(end_ns=end).sort("device_label", "start_ns", "gpu_row")
    timed = placed.filter(pl.col("end_ns").is_not_null())
    untimed = placed.filter(pl.col("end_ns").is_null())
    begun = pl.concat(
        [
            _with_begins(timed, marks),
            untimed.with_columns_seq(begins=True, gap_ns=pl.lit(0, dtype=pl.Int64)),
        ]
    )
    return (
        begun.group_by(pl.col("begins").cum_sum(), maintain_order=True)
        .agg(
            pl.col("region_row", "elsewhere", "device_label").first(),
            run=pl.col("gpu_row").first(),
            start_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            idle_ns=pl.col("gap_ns").filter(~pl.col("begins")).sum(),
            sum_ns=pl.col("dur_ns").filter(pl.col("end_ns").is_not_null()).sum(),
            gpu_ops=pl.len().cast(pl.Int64),
            kernels=(pl.col("kind") == "kernel").sum().cast(pl.Int64),
            copies=(pl.col("kind") == "memcpy").sum().cast(pl.Int64),
        )
        .drop("begins")
    )


def _with_begins(timed: pl.DataFrame, marks: pl.Series) -> pl.DataFrame:
    """Add ``begins`` (a run begins here) and ``gap_ns`` (how long nothing ran before it)."""
    marks = marks.drop_nulls().sort()
    covered_until = busy_until("device_label")
    gap = (pl.col("start_ns") - covered_until).fill_null(0)
    placed = timed.with_columns_seq(
        gap_ns=gap.clip(0),
        place=pl.struct("device_label", "region_row", "elsewhere").rank("dense"),
        mark=marks.search_sorted(timed["start_ns"], side="right"),
        mark_at_end=marks.search_sorted(timed["end_ns"], side="left"),
        several=pl.col("gpu_row").is_duplicated(),
        cluster=(pl.col("start_ns") >= covered_until).fill_null(value=True).cum_sum(),
    )
    across = pl.col("mark") != pl.col("mark_at_end")
    mixed = pl.col("place").min() != pl.col("place").max()
    alone = placed.select_seq(
        (mixed | pl.col("several").any() | across.any()).over("cluster").alias("alone")
    )
    stays = pl.col("alone") | pl.col("alone").shift(1)
    other = pl.any_horizontal(pl.col("place", "mark") != pl.col("place", "mark").shift(1))
    begins = (stays | other).fill_null(value=True)
    return placed.hstack(alone).select_seq(*timed.columns, begins=begins, gap_ns="gap_ns")


def amounts_of_runs(runs: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return counts and times of runs per group, none of which is twice in its group.

    Returns:
        ``by``, ``gpu_busy_ns`` (union on each device, devices added up), ``gpu_sum_ns``,
        ``gpu_ops``, ``kernels``, ``copies``; all Int64. Times are null where there is work, but
        none with usable times.
    """
    spans = runs.with_columns_seq(dur_ns=pl.col("end_ns") - pl.col("start_ns"))
    covered = covered_ns(spans, [by, "device_label"]).group_by(by).agg(pl.col("busy_ns").sum())
    sums = runs.group_by(by).agg(pl.col("gpu_ops", "kernels", "copies", "sum_ns", "idle_ns").sum())
    known = pl.col("busy_ns").is_not_null()
    return sums.join(covered, on=by, how="left", nulls_equal=True).select_seq(
        by,
        "gpu_ops",
        "kernels",
        "copies",
        gpu_busy_ns=pl.col("busy_ns") - pl.col("idle_ns"),
        gpu_sum_ns=pl.when(known).then("sum_ns"),
    )
