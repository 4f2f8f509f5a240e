"""Kept time: stretches of the host's clock, the same for all threads or longer for some."""

from collections.abc import Iterable

import polars as pl

Window = tuple[int, int]
"""First nanosecond, and the first no longer kept, in the file's own time."""

SCHEMA = {"lane": pl.UInt32, "from_ns": pl.Int64, "until_ns": pl.Int64}


def merged(windows: Iterable[Window]) -> list[Window]:
    """Return the windows in the order of time, those that touch made one."""
    result: list[Window] = []
    for start, end in sorted(windows):
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def windows_of_lanes(index: pl.DataFrame, windows: list[Window], ops: pl.Expr) -> pl.DataFrame:
    """Return the kept time of every thread.

    Where an op begins in a window and ends after it, the window of its thread lasts until its end:
    what is kept of an op that was chosen is all of it.

    Args:
        index: see :class:`analyze.trim.index.EventIndex`.
        windows: the kept time of all threads, from :func:`merged`.
        ops: says which rows of ``index`` are ops.
    """
    of_all = {lane: list(windows) for lane in index["lane"].unique()}
    starts = pl.DataFrame(windows, schema=["from_ns", "until_ns"], orient="row")
    beyond = (
        index.filter(ops)
        .drop_nulls(["start_ns", "end_ns"])
        .sort("start_ns")
        .join_asof(starts, left_on="start_ns", right_on="from_ns", strategy="backward")
        .filter((pl.col("start_ns") < pl.col("until_ns")) & (pl.col("end_ns") > pl.col("until_ns")))
    )
    for lane, start, end in beyond.select("lane", "start_ns", "end_ns").iter_rows():
        of_all[lane].append((start, end))
    rows = [(lane, *window) for lane, kept in of_all.items() for window in merged(kept)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def overlapping(events: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Say which events overlap the kept time of their thread, and which reach out of it.

    Args:
        events: columns ``lane``, ``start_ns``, ``end_ns``; without an end an event is a point.
        windows: the result of :func:`windows_of_lanes`.

    Returns:
        ``overlaps``, ``reaches_out`` and ``inside_ns``, how much of it lies in the kept time, in
        the order of ``events``; false, false and 0 where there is no start.
    """
    end = pl.max_horizontal("end_ns", pl.col("start_ns") + 1)
    found = (
        events.select("lane", "start_ns", last_ns=end - 1)
        .with_row_index("row")
        .drop_nulls("start_ns")
        .sort("last_ns")
        .join_asof(
            windows.sort("from_ns"),
            left_on="last_ns",
            right_on="from_ns",
            by="lane",
            strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("start_ns") < pl.col("until_ns"))
        .select(
            "row",
            overlaps=True,
            reaches_out=(pl.col("start_ns") < pl.col("from_ns"))
            | (pl.col("last_ns") >= pl.col("until_ns")),
            inside_ns=pl.min_horizontal(pl.col("last_ns") + 1, "until_ns")
            - pl.max_horizontal("start_ns", "from_ns"),
        )
    )
    rows = pl.DataFrame({"row": pl.int_range(events.height, dtype=pl.UInt32, eager=True)})
    joined = rows.join(found, on="row", how="left", maintain_order="left")
    return joined.select(
        pl.col("overlaps", "reaches_out").fill_null(value=False), pl.col("inside_ns").fill_null(0)
    )
