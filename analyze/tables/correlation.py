"""Which API call caused GPU work: the one with its correlation id.

Within a process an id is that of one call. Where several processes wrote one file, two calls may
bear the same id; work is then that of the last of them that had begun before it.
"""

import polars as pl


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
