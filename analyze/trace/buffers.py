"""Growing columns: values arrive in batches of one event shape and leave as polars series."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import orjson
import polars as pl

from analyze.trace.families import EXTRA, Column, Family, Kind
from analyze.trace.numbers import to_ns

FLUSH_ROWS = 1 << 13
"""Rows kept as Python objects before they are packed into a series."""

POOL_LIMIT = 1 << 17
"""Distinct texts of a column up to which its rows hold codes instead of the texts themselves."""

_DTYPES: Mapping[Kind, type[pl.DataType]] = {
    Kind.INTEGER: pl.Int64,
    Kind.ID: pl.UInt64,
    Kind.NUMBER: pl.Float64,
    Kind.FLAG: pl.Boolean,
    Kind.TEXT: pl.String,
    Kind.JSON: pl.String,
    Kind.BUNDLE: pl.String,
    Kind.MICROSECONDS: pl.Int64,
}


class _Pool(dict[Hashable, int]):
    """Distinct values in order of arrival; looking a new one up adds it. Code 0 is null."""

    def __init__(self) -> None:
        super().__init__({None: 0})

    def __missing__(self, value: Hashable) -> int:
        code = self[value] = len(self)
        return code

    def texts(self) -> pl.Series:
        return pl.Series([_as_text(value) for value in self], dtype=pl.String)


def _as_text(value: Hashable) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def _to_json(value: object) -> bytes:
    """Return JSON text of any decoded value, also of numbers and depths that orjson refuses."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _to_json_slowly(value)


def _to_json_slowly(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")
    except RecursionError:
        return b'"nested too deeply"'


class ColumnBuffer:
    """One column under construction."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self._values: list[object] = []
        self._start = 0
        self._chunks: list[pl.Series] = []
        self._pool = _Pool()
        self._code_of: Callable[[Any], int] = self._pool.__getitem__
        self._is_json = column.kind in (Kind.JSON, Kind.BUNDLE)
        self._is_pooled = self._is_json or column.kind is Kind.TEXT

    def put(self, row: int, values: Sequence[object]) -> None:
        """Append ``values`` so that the first stands in ``row``; skipped rows become null."""
        missing = row - self._start - len(self._values)
        if missing > 0:
            self._values.extend(repeat(0 if self._is_pooled else None, missing))
        if self._is_json:
            values = list(map(_to_json, values))
        self._values.extend(self._encode(values) if self._is_pooled else values)

    def _encode(self, keys: Sequence[object]) -> Iterable[object]:
        if len(self._pool) > POOL_LIMIT:
            return [_as_text(_hashable(key)) for key in keys]
        try:
            return list(map(self._code_of, keys))
        except TypeError:
            return [self._pool[_hashable(key)] for key in keys]

    def flush(self, rows: int) -> None:
        """Pack everything before row ``rows`` into a series."""
        self.put(rows, ())
        if self._values:
            self._chunks.append(self._pack(self._values))
        self._values = []
        self._start = rows

    def _pack(self, values: list[object]) -> pl.Series:
        if self.column.kind is Kind.MICROSECONDS:
            return to_ns(values)
        if not self._is_pooled:
            return pl.Series(values, dtype=_DTYPES[self.column.kind], strict=False)
        if len(self._pool) <= POOL_LIMIT:
            return pl.Series(values, dtype=pl.UInt32)
        return self._spell_out(values)

    def _spell_out(self, values: list[object]) -> pl.Series:
        """Replace codes by their texts in a batch that holds both."""
        texts = self._pool.texts()
        return pl.Series([texts[v] if isinstance(v, int) else v for v in values], dtype=pl.String)

    def finish(self) -> pl.Series:
        """Return the whole column; the buffer is empty afterwards."""
        chunks, self._chunks = self._chunks, []
        dtype = _DTYPES[self.column.kind]
        if self._is_pooled:
            texts = self._pool.texts()
            chunks = [texts.gather(c) if c.dtype == pl.UInt32 else c for c in chunks]
        series = pl.concat(chunks, rechunk=True) if chunks else pl.Series(dtype=dtype)
        return series.alias(self.column.name)


def _hashable(value: object) -> Hashable:
    return value if isinstance(value, Hashable) else _to_json(value)


def _records(columns: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class FamilyBuffer:
    """The columns of one family under construction."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.rows = 0
        self._flushed = 0
        names = {c.name: c for c in (*family.core.values(), *family.args.values(), EXTRA)}
        self._buffers = {name: ColumnBuffer(column) for name, column in names.items()}
        self._core_buffers = [self._buffers[column.name] for column in family.core.values()]

    def add(self, core: Sequence[Sequence[object]], args: Mapping[str, Sequence[object]]) -> None:
        """Append a batch of events of one shape.

        Args:
            core: one sequence of values for each of the family's core keys, in their order.
            args: argument name in the file to its values.
        """
        row = self.rows
        for buffer, values in zip(self._core_buffers, core, strict=True):
            buffer.put(row, values)
        bundles: dict[str, dict[str, Sequence[object]]] = {}
        for name, values in args.items():
            column = self.family.args.get(name, EXTRA)
            if column.kind is Kind.BUNDLE:
                bundles.setdefault(column.name, {})[name] = values
            else:
                self._buffers[column.name].put(row, values)
        for name, bundle in bundles.items():
            self._buffers[name].put(row, _records(bundle))
        self.rows += len(core[0])
        if self.rows - self._flushed >= FLUSH_ROWS:
            self._flush()

    def _flush(self) -> None:
        for buffer in self._buffers.values():
            buffer.flush(self.rows)
        self._flushed = self.rows

    def finish(self) -> pl.DataFrame:
        """Return the family's frame, one row an event, in about the order of the file."""
        self._flush()
        return pl.DataFrame([buffer.finish() for buffer in self._buffers.values()])
