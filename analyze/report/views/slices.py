"""Few enough slices to draw: short ones of a lane that lie together become one."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

_CELLS = tuple(1 << power for power in range(14, 3, -1))
"""Into how many cells of equal length a window is cut, finest first."""

ALONE = "#alone"


@dataclass(frozen=True)
class Condensed:
    """Slices as they are drawn.

    Attributes:
        slices: one row each, by lane and start: the columns of the longest slice in it, but
            ``start_ns`` and ``end_ns`` from the first start to the last end; ``count``: how many
            there are in it; ``sum_ns``: their durations, summed; ``members``: their ids.
        left_out: how many slices are not drawn.
        left_out_ns: their durations, summed.
    """

    slices: pl.DataFrame
    left_out: int
    left_out_ns: int


def condense(
    rows: pl.DataFrame, lane: list[str], most: int, length_ns: int, sums: Sequence[str] = ()
) -> Condensed:
    """Draw slices together until there are at most ``most``.

    The window is cut into cells; slices shorter than a cell that start in the same cell of the same
    lane become one. The finest cells that suffice are used, and none where there are few slices.

    Args:
        rows: columns ``id``, ``start_ns``, ``end_ns``, ``dur_ns`` without nulls, and those of
            ``lane``.
        lane: what slices must have in common.
        most: how many slices to return at most.
        length_ns: length of the window.
        sums: columns of which one slice has the sum of all in it.
    """
    rows = rows.with_row_index("#row")
    keyed = rows.with_columns(_keys(None))
    for cells in _CELLS:
        if _count(keyed, lane) <= most:
            break
        keyed = rows.with_columns(_keys(max(length_ns // cells, 1)))
    slices = _together(keyed, lane, sums)
    kept = slices.top_k(most, by="sum_ns")
    left_out = slices.filter(~pl.col("#row").is_in(kept["#row"].implode()))
    return Condensed(
        kept.sort(*lane, "start_ns", "#row").drop("#row", "#cell", ALONE),
        int(left_out["count"].sum()),
        int(left_out["sum_ns"].sum()),
    )


def _keys(cell_ns: int | None) -> list[pl.Expr]:
    """Return the cell of each short slice, and the row of each other one."""
    row = pl.col("#row")
    if cell_ns is None:
        return [pl.lit(None, pl.Int64).alias("#cell"), row.alias(ALONE)]
    is_short = pl.col("dur_ns") < cell_ns
    return [
        pl.when(is_short).then(pl.col("start_ns") // cell_ns).alias("#cell"),
        pl.when(~is_short).then(row).alias(ALONE),
    ]


def _count(keyed: pl.DataFrame, lane: list[str]) -> int:
    return keyed.select(*lane, "#cell", ALONE).n_unique() if keyed.height else 0


def _together(keyed: pl.DataFrame, lane: list[str], sums: Sequence[str]) -> pl.DataFrame:
    groups = keyed.group_by(*lane, "#cell", ALONE).agg(
        pl.col("start_ns").min(),
        pl.col("end_ns").max(),
        pl.col("#row").sort_by("dur_ns", "#row", descending=[True, False]).first(),
        members=pl.col("id"),
        count=pl.len(),
        sum_ns=pl.col("dur_ns").sum(),
        **{name: pl.col(name).sum() for name in sums},
    )
    others = [name for name in keyed.columns if name not in groups.columns]
    return groups.hstack(keyed.select(others)[groups["#row"]])
