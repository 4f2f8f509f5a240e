"""GPU work that lies across other work of its stream, which viewers cannot nest."""

import polars as pl

from analyze.tables.intervals import busy_until

_STREAM = ("device_label", "stream_label")
_STARTS_INSIDE = pl.col("start_ns") < busy_until(*_STREAM)


def overlaps_earlier() -> pl.Expr:
    """Tell which GPU work starts inside other work of its stream; null where that is not known.

    Rows are in the order of their starts, with columns ``start_ns``, ``end_ns``, ``device_label``
    and ``stream_label``.
    """
    return _where_known(_STARTS_INSIDE)


def crosses_earlier() -> pl.Expr:
    """Tell which GPU work starts inside other work of its stream and ends after it, likewise."""
    return _where_known(_STARTS_INSIDE & (pl.col("end_ns") > busy_until(*_STREAM)))


def _where_known(overlaps: pl.Expr) -> pl.Expr:
    known = pl.all_horizontal(pl.col(_STREAM).is_not_null())
    return pl.when(known).then(overlaps.fill_null(value=False))
