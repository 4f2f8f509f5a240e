"""GPU work that lies across other work of its stream, which viewers cannot nest."""

import polars as pl


def crosses_earlier(gpu_ops: pl.DataFrame) -> pl.Series:
    """Tell which GPU work starts inside other work of its stream and ends after it.

    Args:
        gpu_ops: in the order of their starts; columns ``start_ns``, ``end_ns``, ``device_label``,
            ``stream_label``.
    """
    busy_until = pl.col("end_ns").cum_max().shift(1).over("device_label", "stream_label")
    crosses = (pl.col("start_ns") < busy_until) & (pl.col("end_ns") > busy_until)
    return gpu_ops.select(crosses.fill_null(value=False).alias("crosses_earlier"))[
        "crosses_earlier"
    ]
