"""Where in a trace a finding can be seen: the events behind it, for viewers and annotations."""

from typing import Any

import polars as pl

from analyze.engine.data import Tables
from analyze.engine.result import Place
from analyze.tables.catalogue import Table

ROW = "#row"
"""Column with the position of a row in its table."""

MAX_PLACES = 100
"""Places that a finding lists; how many there are in all is said beside them."""

_SOURCE = "source"
_DURATION = "dur_us"
_UNIT_DURATION = "cpu_us"


def places_of(rows: pl.DataFrame, table: Table, tables: Tables) -> tuple[Place, ...]:
    """Return the places of the first rows that have a start.

    Args:
        rows: matched rows with :data:`ROW`, the most important first.
        table: the table they are of.
        tables: where the table is.
    """
    if table.column("start_us") is None:
        return ()
    frame = tables.table(table.name)
    at = rows[ROW]
    if frame["start_us"].has_nulls():
        at = at.filter(frame["start_us"].gather(at).is_not_null())
    shown = frame[at.head(MAX_PLACES)]
    return tuple(_place(row, table) for row in shown.iter_rows(named=True))


def source_of(rows: pl.DataFrame, table: Table, tables: Tables) -> str | None:
    """Return the user's source line that most of the rows' time goes to; None where none is known.

    Where rows have no duration it is the line of most rows.

    Args:
        rows: see :func:`places_of`.
        table: the table they are of.
        tables: where the table is.
    """
    if table.column(_SOURCE) is None or rows.is_empty():
        return None
    frame = tables.table(table.name)
    if frame[_SOURCE].null_count() == frame.height:
        return None
    duration = pl.col(_DURATION).sum() if _DURATION in frame.columns else pl.lit(0.0)
    lines = (
        frame.select_seq(_SOURCE, *({_DURATION} & set(frame.columns)))[rows[ROW]]
        .drop_nulls(_SOURCE)
        .group_by(_SOURCE, maintain_order=True)
        .agg(time=duration, rows=pl.len())
        .sort("time", "rows", descending=True, maintain_order=True)
    )
    return lines[_SOURCE][0] if lines.height else None


def _place(row: dict[str, Any], table: Table) -> Place:
    return Place(
        name=row.get("name") or table.name.removesuffix("s"),
        start_us=row["start_us"],
        dur_us=row.get(_DURATION, row.get(_UNIT_DURATION)),
        device=row.get("device"),
        stream=row.get("stream"),
        pid=row.get("pid"),
        tid=row.get("tid"),
    )
