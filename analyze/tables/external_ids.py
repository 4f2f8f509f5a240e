"""Whether a trace's ``External id`` names the op behind GPU work, and the link it gives.

Its meaning changed: up to torch 1.9 and from 2.6 on it is the id of the innermost op; in 1.10 to
2.2 it merely repeats the correlation id; in between it is one or the other, event by event. Small
numbers occur as both, so a repeated correlation id joins to an unrelated op. Some ROCm files hold
it in place of a correlation id; see :mod:`analyze.tables.correlation`.
"""

import polars as pl

from analyze.tables.host import Host

TRUSTED = "op"
REPEATS_CORRELATION = "correlation"
MIXED = "mixed"
NAMES_LAUNCH = "launch"
ABSENT = "absent"

_REPEAT_SHARE = 0.99
_NO_REPEAT_SHARE = 0.01


def external_id_mode(gpu_ops: pl.DataFrame) -> str:
    """Say what External id means on these GPU events.

    Args:
        gpu_ops: columns ``external_id``, ``correlation`` and ``linked_by_external_id``.

    Returns:
        ``op``, ``correlation``, ``mixed``, ``launch`` or ``absent``.
    """
    both = gpu_ops.filter(
        pl.col("external_id").is_not_null() & pl.col("correlation").is_not_null()
    ).filter(pl.col("external_id") > 0)
    if both.is_empty():
        return NAMES_LAUNCH if gpu_ops["linked_by_external_id"].any() else ABSENT
    repeated = (both["external_id"] == both["correlation"]).mean()
    share = repeated if isinstance(repeated, float) else 0.0
    if share >= _REPEAT_SHARE:
        return REPEATS_CORRELATION
    return TRUSTED if share <= _NO_REPEAT_SHARE else MIXED


def op_rows_by_external_id(gpu_ops: pl.DataFrame, host: Host) -> pl.Series:
    """Return the op named by each GPU event without one, as rows of ``host.nodes``.

    Null where no named op is trusted; where the op is known already there may be anything.

    In a mixed trace the link is accepted only where the call that launched the work lies inside the
    op, on the op's own thread.

    Args:
        gpu_ops: columns ``external_id``, ``correlation``, ``linked_by_external_id``, ``op_row``,
            ``lane``, ``api_start_ns``.
        host: the ops and annotations.
    """
    mode = external_id_mode(gpu_ops)
    if mode in (ABSENT, REPEATS_CORRELATION, NAMES_LAUNCH):
        return pl.repeat(None, gpu_ops.height, dtype=pl.UInt32, eager=True)
    ops = (
        host.nodes.select_seq(
            "external_id", "op_row", "is_op", op_lane="lane", op_start="start_ns", op_end="end_ns"
        )
        .join(gpu_ops.filter(pl.col("op_row").is_null()), on="external_id", how="semi")
        .filter(pl.col("is_op") & (pl.col("external_id") > 0))
        .unique("external_id", keep="first", maintain_order=True)
    )
    joined = gpu_ops.select_seq("external_id", "lane", "api_start_ns").join(
        ops, on="external_id", how="left", maintain_order="left"
    )
    if mode == TRUSTED:
        return joined["op_row"]
    launched_inside = (
        (pl.col("lane") == pl.col("op_lane"))
        & (pl.col("api_start_ns") >= pl.col("op_start"))
        & (pl.col("api_start_ns") < pl.col("op_end"))
    )
    return joined.select_seq(pl.when(launched_inside).then("op_row").alias("op_row"))["op_row"]
