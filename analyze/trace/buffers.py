"""Growing columns: values arrive in batches of one event shape and leave as polars series."""

import json
import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableSequence, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any

import orjson
import polars as pl

from analyze.trace.families import CORE_KEYS, EXTRA, Column, CoreKey, Family, Kind
from analyze.trace.numbers import as_floats, to_ns

FLUSH_ROWS = 1 << 16
"""Rows kept as Python objects before they are packed into a series."""

POOL_LIMIT = 1 << 17
"""Distinct texts of a column up to which its rows hold codes instead of the texts themselves."""

MAX_SHAPES = 1 << 10
"""Lists of argument names for which a family remembers where the values go."""

Event = dict[str, Any]

_get_args: Callable[[Event], Event] = itemgetter("args")
_NO_KEYS = dict.fromkeys(CORE_KEYS)


class _Pool(dict[Hashable, int]):
    """Distinct values in order of arrival; looking a new one up adds it. Code 0 is null."""

    def __init__(self) -> None:
        super().__init__({None: 0})

    def __missing__(self, value: Hashable) -> int:
        code = self[value] = len(self)
        return code

    def texts(self) -> pl.Series:
        return pl.Series([_as_text(value) for value in self], dtype=pl.String)


class ThreadPool(dict[tuple[Hashable, Hashable], int]):
    """A number for each (pid, tid), in order of arrival; looking a new one up adds it."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[tuple[str | None, str | None], int] = {}

    def __missing__(self, thread: tuple[Hashable, Hashable]) -> int:
        """Give a thread its number; spellings with the same text (7 and "7") share one."""
        texts = _as_text(thread[0]), _as_text(thread[1])
        number = self[thread] = self._numbers.setdefault(texts, len(self._numbers))
        return number

    def finish(self) -> pl.DataFrame:
        """Return ``pid`` and ``tid`` of the threads, in the order of their numbers."""
        schema = {"pid": pl.String, "tid": pl.String}
        return pl.DataFrame(list(self._numbers), schema=schema, orient="row")


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


def _hashable(value: object) -> Hashable:
    return value if isinstance(value, Hashable) else _to_json(value)


class ColumnBuffer:
    """One column under construction; this one is for numbers as the file writes them."""

    def __init__(self, dtype: type[pl.DataType], blank: object = None) -> None:
        """Start an empty column.

        Args:
            dtype: of the packed values.
            blank: what stands for null among the values.
        """
        self._dtype = dtype
        self._blank = blank
        self._values = self._no_values()
        self._start = 0
        self._chunks: list[pl.Series] = []

    def _no_values(self) -> MutableSequence[Any]:
        return []

    def put(self, row: int, values: Sequence[object]) -> None:
        """Append ``values`` so that the first stands in ``row``; skipped rows become null."""
        self._skip_to(row)
        self._values += self._encode(values)

    def _skip_to(self, row: int) -> None:
        missing = row - self._start - len(self._values)
        if missing and self._values:
            self._values.extend(repeat(self._blank, missing))
        elif missing:
            self._chunks.append(self._pack([self._blank]).new_from_index(0, missing))
            self._start = row

    def _encode(self, values: Sequence[object]) -> Sequence[object]:
        return values

    def flush(self, rows: int) -> None:
        """Pack everything before row ``rows`` into a series, if there is anything but nulls."""
        if self._values:
            self._skip_to(rows)
            self._chunks.append(self._pack(self._values))
            self._values = self._no_values()
            self._start = rows

    def _pack(self, values: Sequence[object]) -> pl.Series:
        try:
            return pl.Series(values, dtype=self._dtype, strict=False)
        except TypeError:  # polars takes any mixture but that of lists and numbers
            single = [None if isinstance(value, list | dict) else value for value in values]
            return pl.Series(single, dtype=self._dtype, strict=False)

    def finish(self, rows: int) -> pl.Series:
        """Return the whole column of ``rows`` rows; the buffer is empty afterwards."""
        self.flush(rows)
        self._skip_to(rows)
        chunks, self._chunks = self._chunks, []
        return pl.concat(chunks, rechunk=True) if chunks else self._pack([])


class _TimeBuffer(ColumnBuffer):
    """Microseconds in the file, nanoseconds in the column."""

    def __init__(self) -> None:
        super().__init__(pl.Int64, blank=math.nan)

    def _no_values(self) -> MutableSequence[Any]:
        return array("d")

    def put(self, row: int, values: Sequence[object]) -> None:
        """See :meth:`ColumnBuffer.put`; numbers are packed while they are in the cache."""
        numbers = as_floats(values)
        if numbers is None:
            self._values = list(self._values)
        super().put(row, values if numbers is None else numbers)

    def _pack(self, values: Sequence[object]) -> pl.Series:
        return to_ns(values)


class _ThreadBuffer(ColumnBuffer):
    """Pairs of pid and tid, as numbers of a pool that all families share."""

    def __init__(self, threads: ThreadPool) -> None:
        super().__init__(pl.UInt32)
        self._threads = threads

    def _encode(self, values: Sequence[Any]) -> Sequence[object]:
        try:
            return list(map(self._threads.__getitem__, values))
        except TypeError:
            return [self._threads[_hashable(pid), _hashable(tid)] for pid, tid in values]


class _TextBuffer(ColumnBuffer):
    """Texts: codes of a pool, until that has grown so large that they only cost memory."""

    def __init__(self) -> None:
        super().__init__(pl.UInt32, blank=0)
        self._pool: _Pool | None = _Pool()

    def _encode(self, values: Sequence[Any]) -> Sequence[object]:
        if self._pool is None:
            return [_as_text(_hashable(value)) for value in values]
        try:
            return list(map(self._pool.__getitem__, values))
        except TypeError:
            return [self._pool[_hashable(value)] for value in values]

    def flush(self, rows: int) -> None:
        """See :meth:`ColumnBuffer.flush`."""
        super().flush(rows)
        if self._pool is not None and len(self._pool) > POOL_LIMIT:
            self._spell_out(self._pool)

    def _spell_out(self, pool: _Pool) -> None:
        """Replace the codes by their texts, and keep texts from now on."""
        texts = pool.texts()
        self._chunks = [texts.gather(codes) for codes in self._chunks]
        self._pool = None
        self._dtype = pl.String
        self._blank = None

    def finish(self, rows: int) -> pl.Series:
        """See :meth:`ColumnBuffer.finish`."""
        column = super().finish(rows)
        return column if self._pool is None else self._pool.texts().gather(column)


class _JsonBuffer(_TextBuffer):
    """Values of any kind, as JSON text."""

    def _encode(self, values: Sequence[Any]) -> Sequence[object]:
        try:
            texts = list(map(orjson.dumps, values))
        except TypeError:
            texts = list(map(_to_json, values))
        return super()._encode(texts)


_NUMBERS: Mapping[Kind, type[pl.DataType]] = {
    Kind.INTEGER: pl.Int64,
    Kind.ID: pl.UInt64,
    Kind.NUMBER: pl.Float64,
    Kind.FLAG: pl.Boolean,
}


def _buffer_for(column: Column, threads: ThreadPool) -> ColumnBuffer:
    match column.kind:
        case Kind.MICROSECONDS:
            return _TimeBuffer()
        case Kind.THREAD:
            return _ThreadBuffer(threads)
        case Kind.TEXT:
            return _TextBuffer()
        case Kind.JSON:
            return _JsonBuffer()
        case _:
            return ColumnBuffer(_NUMBERS[column.kind])


_Writer = tuple[ColumnBuffer, Callable[[list[Event]], Sequence[object]]]
"""A column and what it takes from the arguments of a batch."""


class FamilyBuffer:
    """The columns of one family under construction."""

    def __init__(self, family: Family, threads: ThreadPool) -> None:
        self.family = family
        self.rows = 0
        self._flushed = 0
        columns = (*family.core.values(), *family.args.values(), EXTRA)
        self._buffers = {column.name: _buffer_for(column, threads) for column in columns}
        self._core = [
            (_getter(key), self._buffers[column.name]) for key, column in family.core.items()
        ]
        self._writers: dict[tuple[str, ...], list[_Writer]] = {}

    def add(self, events: list[Event], names: tuple[str, ...]) -> None:
        """Append a batch of events, all of which have arguments of these names."""
        row = self.rows
        for get, buffer in self._core:
            buffer.put(row, _core_values(events, get))
        if writers := self._writers_for(names):
            args = list(map(_get_args, events))
            for buffer, values_of in writers:
                buffer.put(row, values_of(args))
        self.rows += len(events)
        if self.rows - self._flushed >= FLUSH_ROWS:
            self._flush()

    def _writers_for(self, names: tuple[str, ...]) -> list[_Writer]:
        writers = self._writers.get(names)
        if writers is None:
            if len(self._writers) >= MAX_SHAPES:
                self._writers.clear()
            writers = self._writers[names] = self._find_writers(names)
        return writers

    def _find_writers(self, names: tuple[str, ...]) -> list[_Writer]:
        writers: dict[str, _Writer] = {}
        extra: list[str] = []
        for name in names:
            if name in self.family.unread:
                continue
            column = self.family.args.get(name)
            if column is None:
                extra.append(name)
            else:
                writers[column.name] = self._buffers[column.name], partial(_values, name)
        if extra:
            writers[EXTRA.name] = self._buffers[EXTRA.name], partial(_records, extra)
        return list(writers.values())

    def _flush(self) -> None:
        for buffer in self._buffers.values():
            buffer.flush(self.rows)
        self._flushed = self.rows

    def finish(self) -> pl.DataFrame:
        """Return the family's frame, one row an event, in about the order of the file."""
        return pl.DataFrame(
            [buffer.finish(self.rows).alias(name) for name, buffer in self._buffers.items()]
        )


def _getter(key: CoreKey) -> Callable[[Event], object]:
    return itemgetter(*key) if isinstance(key, tuple) else itemgetter(key)


def _core_values(events: list[Event], get: Callable[[Event], object]) -> Sequence[object]:
    try:
        return list(map(get, events))
    except KeyError:
        return [get({**_NO_KEYS, **event}) for event in events]


def _values(name: str, args: Iterable[Event]) -> Sequence[object]:
    return list(map(itemgetter(name), args))


def _records(names: Sequence[str], args: Iterable[Event]) -> Sequence[object]:
    return [{name: each[name] for name in names} for each in args]
