"""The ``nn.Module`` call around an op, from the Python frames that torch records of them."""

import polars as pl

from analyze.tables.nesting import Forest, nest

MODULE_PREFIX = "nn.Module: "
"""Frames of module calls are named ``nn.Module: Linear_0``: class, and number of the instance."""


def nest_module_frames(frames: pl.DataFrame) -> Forest:
    """Nest the calls of modules.

    Args:
        frames: the ``frames`` family frame with ``lane``.
    """
    is_module = pl.col("name").str.starts_with(MODULE_PREFIX)
    return nest(
        frames.filter(is_module)
        .select_seq(
            *("lane", "start_ns", "event_index"),
            module=pl.col("name").str.strip_prefix(MODULE_PREFIX),
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        )
        .drop_nulls(["start_ns", "end_ns"])
    )


def modules_at(points: pl.DataFrame, module_frames: Forest) -> pl.Series:
    """Return the innermost module that was being called at each point on its thread.

    Args:
        points: columns ``lane`` and ``start_ns``.
        module_frames: the result of :func:`nest_module_frames`.

    Returns:
        Strings like ``Linear_0``, null outside any module; same order as ``points``.
    """
    modules = module_frames.nodes["module"]
    return modules.gather(module_frames.innermost_at(points)).alias("module")
