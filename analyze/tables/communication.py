"""Communication between GPUs, and how much of it nothing else hides."""

import polars as pl

from analyze.tables.intervals import busy_until, covered_before

_DEVICE = ["device"]


def communicates() -> pl.Expr:
    """Tell which GPU work is communication by its name; what is of no known family is not."""
    return (pl.col("family") == "comm").fill_null(value=False)


def exposed_ns(gpu_ops: pl.DataFrame) -> pl.Series:
    """Return how long each communication kernel ran while its device did nothing else.

    Time in which several of them run counts for the one that began first, so that the sum over the
    kernels of a device is the part of its busy time that is nothing but communication.

    Args:
        gpu_ops: in the order of their starts; columns ``family``, ``device_label``, ``start_ns``
            and ``dur_ns``.

    Returns:
        Int64 nanoseconds in the order of ``gpu_ops``; null for other work, and where its times are
        unknown.
    """
    is_communication = gpu_ops.select_seq(communicates())["family"]
    if not is_communication.any():
        return pl.repeat(None, gpu_ops.height, dtype=pl.Int64, eager=True).alias("exposed_ns")
    timed = gpu_ops.select_seq(
        "start_ns",
        "dur_ns",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        device=pl.col("device_label").fill_null(""),
    ).with_row_index("row")
    others = timed.filter(~is_communication)
    new = (
        timed.filter(is_communication)
        .drop_nulls()
        .with_columns_seq(covered_until=busy_until(*_DEVICE))
        .with_columns_seq(new_ns=pl.min_horizontal("end_ns", _begin_of_new()))
    )
    hidden = _covered(new, "end_ns", others) - _covered(new, "new_ns", others)
    exposed = new.select_seq("row", exposed_ns=pl.col("end_ns") - pl.col("new_ns") - hidden)
    rows = timed.select_seq("row")
    return rows.join(exposed, on="row", how="left", maintain_order="left")["exposed_ns"]


def _begin_of_new() -> pl.Expr:
    """Return from when on no earlier communication runs."""
    return pl.max_horizontal("start_ns", "covered_until")


def _covered(points: pl.DataFrame, column: str, others: pl.DataFrame) -> pl.Series:
    """Return how much other work a device had done before the time in a column."""
    return covered_before(points.select_seq(*_DEVICE, start_ns=column), others, _DEVICE)
