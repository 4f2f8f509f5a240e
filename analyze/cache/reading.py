"""Read a trace through the cache: what the same code made of the same bytes before."""

import functools
import hashlib
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

import orjson
import polars as pl

import analyze.trace
from analyze.cache import packing
from analyze.cache.store import Store, default_folder
from analyze.errors import AnalyzeError
from analyze.trace.reader import Progress, TraceEvents, read_events
from analyze.trace.source import STDIN

CacheMode = Literal["auto", "off", "refresh"]
"""``auto`` reads and writes the cache, ``off`` does neither, ``refresh`` only writes."""

CACHE_VARIABLE = "ANALYZE_CACHE"

MIN_TEXT_BYTES = 4_000_000
"""Traces of less JSON text are not cached: 4 MB take 40 ms to read, and a run 700 ms."""

_NAME_BYTES = 20


def mode_of_environment() -> CacheMode:
    """Return the mode that ``ANALYZE_CACHE`` asks for, else ``auto``.

    Raises:
        AnalyzeError: it asks for something else.
    """
    return checked_mode(os.environ.get(CACHE_VARIABLE) or "auto", CACHE_VARIABLE)


def checked_mode(written: object, where: str) -> CacheMode:
    """Return a mode that somebody wrote.

    Raises:
        AnalyzeError: it is none; ``where`` says where it was written.
    """
    modes = get_args(CacheMode)
    if written not in modes:
        raise AnalyzeError(f"{where}={written}: must be one of {', '.join(modes)}")
    return cast("CacheMode", written)


def read_events_cached(
    path: str | Path,
    progress: Progress | None = None,
    mode: CacheMode = "auto",
    store: Store | None = None,
) -> TraceEvents:
    """Read a trace as :func:`analyze.trace.reader.read_events` does, faster the second time.

    Args:
        path: see there; standard input and pipes are never cached.
        progress: see there; not called where the cache has the answer.
        mode: see :data:`CacheMode`.
        store: where entries lie; the user's own cache folder by default.

    Raises:
        TraceError: see there. The cache itself never fails a run.
    """
    store = store or default_store()
    content = _identify(path) if store and mode != "off" else None
    if store is None or content is None:
        return read_events(path, progress)
    found = _get(store, content.name, str(path)) if mode == "auto" else None
    if found is not None:
        return found
    events = read_events(path, progress)
    if events.source.text_bytes >= MIN_TEXT_BYTES and content.is_still_that_of(path):
        _put(store, content.name, events)
    return events


def default_store() -> Store | None:
    """Return the store in the user's cache folder; None where the user has none."""
    folder = default_folder()
    return Store(folder) if folder else None


def _get(store: Store, name: str, path: str) -> TraceEvents | None:
    packed = store.get(name)
    if packed is None:
        return None
    try:
        return packing.unpack(packed, path)
    except (LookupError, TypeError, ValueError, struct.error, pl.exceptions.PolarsError):
        return None


def _put(store: Store, name: str, events: TraceEvents) -> None:
    try:
        packed = packing.pack(events)
    except (RecursionError, ValueError):  # metadata that JSON cannot hold
        return
    store.put(name, packed)


@dataclass(frozen=True)
class _Content:
    """The bytes of a file.

    Attributes:
        name: a hash of the bytes and of the code that decodes them.
        state: what tells that a file was written to; see :func:`_state`.
    """

    name: str
    state: tuple[int, ...]

    def is_still_that_of(self, path: str | Path) -> bool:
        """Whether the file was not written to meanwhile, as a running export does."""
        try:
            return _state(Path(path).stat()) == self.state
        except OSError:
            return False


def _identify(path: str | Path) -> _Content | None:
    """Hash a file; None where it is not a regular one, or cannot be read."""
    decoder = _decoder_fingerprint()
    if str(path) == STDIN:
        return None
    try:
        is_file = stat.S_ISREG(Path(path).stat().st_mode)
        if not is_file or decoder is None:
            return None
        with Path(path).open("rb") as file:
            state = _state(os.fstat(file.fileno()))
            digest = hashlib.file_digest(file, lambda: _started_with(decoder))
    except (OSError, ValueError):
        return None
    return _Content(digest.hexdigest(), state)


def _started_with(start: bytes) -> "hashlib.blake2b":
    return hashlib.blake2b(start, digest_size=_NAME_BYTES)


def _state(status: os.stat_result) -> tuple[int, ...]:
    """Return a file's device, inode, size and times of change."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


@functools.cache
def _decoder_fingerprint() -> bytes | None:
    """Return a hash of all that decides what becomes of a file's bytes; None if it is not known.

    The source of the reader stands for itself, so that no version number can be forgotten.
    """
    folders = [Path(folder) for folder in analyze.trace.__path__]
    files = sorted(file for folder in folders for file in folder.glob("*.py"))
    versions = f"polars {pl.__version__}, orjson {orjson.__version__}"
    digest = hashlib.blake2b(versions.encode(), digest_size=_NAME_BYTES)
    try:
        for file in (*files, Path(packing.__file__)):
            digest.update(file.read_bytes())
    except OSError:
        return None
    return digest.digest() if files else None
