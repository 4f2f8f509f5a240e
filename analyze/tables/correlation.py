"""Which API call caused GPU work: the one with its correlation id.

Within a process an id is that of one call. Where several processes wrote one file, two calls may
bear the same id; work is then that of the last of them that had begun before it.

Some ROCm files hold no correlation id at all. There a call and its work bear the same
``External id``, which is also the number of the arrow (``ac2g``) between them. Elsewhere the id may
be that of an op with several calls, so it serves only where it leaves no choice.
"""

import polars as pl

from analyze.tables.api import GPU_WORK_PATTERN, GRAPH_LAUNCH_PATTERN


def calls_of(work: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Find the API call that caused each piece of GPU work.

    Args:
        work: columns ``correlation`` and ``start_ns`` (may be null).
        calls: columns ``correlation``, ``start_ns`` and ``row``; ids that are not positive name
            nothing.

    Returns:
        In the order of ``work``: ``row`` of the call, null where the file has none; ``ambiguous``,
        whether other calls bear the same id.
    """
    known = calls.select_seq("correlation", "start_ns", "row").filter(pl.col("correlation") > 0)
    repeated = known.filter(pl.col("correlation").is_duplicated())
    first = known.filter(pl.col("correlation").is_first_distinct()).drop("start_ns")
    asked = work.select_seq("correlation", "start_ns")
    found = asked.join(first, on="correlation", how="left", maintain_order="left")
    if repeated.is_empty():
        return found.select_seq("row", ambiguous=pl.lit(value=False))
    latest = _latest(asked, repeated)
    return found.select_seq(
        pl.coalesce(latest, "row").alias("row"),
        ambiguous=pl.col("correlation").is_in(repeated["correlation"].unique().implode()),
    ).with_columns_seq(pl.col("ambiguous").fill_null(value=False))


def calls_by_external_id(work: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Find the API call of GPU work where neither bears a correlation id.

    The call is the only one that puts work on the GPU and bears the work's ``External id``, it
    begins no later than the work, and no other work bears that id, unless a graph was launched.

    Args:
        work: columns ``correlation``, ``external_id`` and ``start_ns`` (may be null); ids of 0 are
            none.
        calls: the same columns, ``name`` and ``row``.

    Returns:
        In the order of ``work``: ``row`` of the call, null where it is not sure; ``undecided``,
        whether it is not although calls bear the id.
    """
    is_nameless = ~(pl.col("correlation") > 0).fill_null(value=False)
    asked = work.select_seq("external_id", "start_ns", nameless=is_nameless)
    if not asked["nameless"].any():
        return asked.select_seq(row=pl.lit(None, dtype=calls.schema["row"]), undecided="nameless")
    causing = calls.filter(
        (pl.col("external_id") > 0) & pl.col("name").str.contains(GPU_WORK_PATTERN)
    )
    candidates = causing.filter(pl.col("external_id").is_unique() & is_nameless).select_seq(
        *("external_id", "row"),
        call_start_ns="start_ns",
        is_graph=pl.col("name").str.contains(GRAPH_LAUNCH_PATTERN),
    )
    found = asked.join(candidates, on="external_id", how="left", maintain_order="left")
    is_sure = (
        (pl.col("external_id").is_unique() | pl.col("is_graph"))
        & (pl.col("call_start_ns") <= pl.col("start_ns"))
    ).fill_null(value=False)
    is_borne = pl.col("external_id").is_in(causing["external_id"].unique().implode())
    return found.select_seq(
        row=pl.when(pl.col("nameless") & is_sure).then("row"),
        undecided=(pl.col("nameless") & is_borne & ~is_sure).fill_null(value=False),
    )


def _latest(asked: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Return the row of the last call with the same id before each start; null for none."""
    numbered = asked.with_row_index("work")
    placed = numbered.drop_nulls().sort("start_ns")
    before = placed.join_asof(
        calls.drop_nulls("start_ns").sort("start_ns"),
        on="start_ns",
        by="correlation",
        strategy="backward",
        check_sortedness=False,
    )
    rows = numbered.select_seq("work").join(
        before.select_seq("work", "row"), on="work", how="left", maintain_order="left"
    )
    return rows["row"].rename("latest")
