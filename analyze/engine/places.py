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
    at = rows[ROW].filter(frame["start_us"].gather(rows[ROW]).is_not_null()).head(MAX_PLACES)
    return tuple(_place(row, table) for row in frame[at].iter_rows(named=True))


def source_of(rows: pl.DataFrame, table: Table, tables: Tables) -> str | None:
    """Return the user's source line that most rows have; None where none has one.

    Args:
        rows: see :func:`places_of`.
        table: the table they are of.
        tables: where the table is.
    """
    if table.column(_SOURCE) is None or rows.is_empty():
        return None
    lines = tables.table(table.name)[_SOURCE].gather(rows[ROW]).drop_nulls()
    return lines.mode(maintain_order=True)[0] if len(lines) else None


def _place(row: dict[str, Any], table: Table) -> Place:
    return Place(
        name=row.get("name") or table.name.removesuffix("s"),
        start_us=row["start_us"],
        dur_us=row.get("dur_us", row.get(_UNIT_DURATION)),
        device=row.get("device"),
        stream=row.get("stream"),
        pid=row.get("pid"),
        tid=row.get("tid"),
    )
