"""GPU time by kernel family, copies and sets among them."""

import polars as pl

from analyze.report.summary import known_sum, microseconds
from analyze.report.views.model import FamilyTime
from analyze.tables.build import Trace


def family_times(trace: Trace) -> list[FamilyTime]:
    """Return the GPU time of each family, most time first."""
    is_kernel = pl.col("kind") == "kernel"
    families = (
        trace.facts.gpu_ops.group_by("kind", family=pl.when(is_kernel).then("family"))
        .agg(
            count=pl.len(),
            total_ns=known_sum("dur_ns"),
            bytes=pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()),
        )
        .sort("total_ns", "kind", "family", descending=[True, False, False], nulls_last=True)
    )
    return [
        FamilyTime(kind, family, count, microseconds(total_ns), size)
        for kind, family, count, total_ns, size in families.iter_rows()
    ]
