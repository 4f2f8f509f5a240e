"""The folder that holds what is cached: who may be trusted, how much is kept, how it is written.

An entry is trusted only where this user's own runs wrote it: it is signed with a random key that
lies beside it, in a folder that nobody else can write to. A truncated or damaged entry, one of
another name, or a file from elsewhere does not carry the signature and is passed over before
anything in it is decoded.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import time
from typing import NamedTuple

from analyze.temporary import temporary_file

MAX_BYTES = 1 << 30
"""How much is kept; the entries that were used longest ago are removed first."""

_MAGIC = b"kinetolint cache\n"
_SIGNATURE_BYTES = 32
_KEY_BYTES = 32
_KEY_FILE = "key"
_ENTRY = re.compile(r"[0-9a-f]{40}\.events")
_UNFINISHED = re.compile(r"\.[\w.]+\.unfinished")
_ABANDONED_SECONDS = 3600
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Usage(NamedTuple):
    """What the folder holds: the number of entries and their size in bytes."""

    entries: int
    size_bytes: int


class Store:
    """Signed entries in one folder.

    Nothing here raises because of what the folder holds or cannot take: an entry that cannot be
    read is not there, and one that cannot be written is not written. Several processes can use
    the folder at once, because entries appear whole and are never changed.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Use ``folder``, which is made when the first entry is written.

        Args:
            folder: the store's own; files of other names in it are left alone.
            max_bytes: see :data:`MAX_BYTES`.
        """
        self.folder = folder
        self.max_bytes = max_bytes

    def get(self, name: str) -> memoryview | None:
        """Return the bytes of an entry; None where there is none that can be trusted.

        Args:
            name: 40 hexadecimal digits.
        """
        path = self._path(name)
        key = self._key() if _is_file(path) else None
        if key is None:
            return None
        try:
            data = memoryview(path.read_bytes())
        except OSError:
            return None
        start = len(_MAGIC) + _SIGNATURE_BYTES
        signature, payload = bytes(data[len(_MAGIC) : start]), data[start:]
        is_ours = hmac.compare_digest(signature, _sign(key, name, payload))
        if bytes(data[: len(_MAGIC)]) != _MAGIC or not is_ours:
            return None
        with suppress(OSError):
            os.utime(path)
        return payload

    def put(self, name: str, payload: bytes) -> bool:
        """Write an entry, then remove the oldest until all fit; return whether it was written."""
        if len(payload) > self.max_bytes:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            key = self._key() or self._new_key()
            if key is None:
                return False
            self._write(self._path(name), _MAGIC, _sign(key, name, payload), payload)
            self._remove_oldest()
        except OSError:
            return False
        return True

    def usage(self) -> Usage:
        """Return what the folder holds."""
        sizes = [status.st_size for _, status in self._entries()]
        return Usage(len(sizes), sum(sizes))

    def clear(self) -> Usage:
        """Remove every entry, and the key; return what the entries were.

        Raises:
            OSError: a file cannot be removed.
        """
        removed = self.usage()
        paths = [path for path, _ in (*self._entries(), *self._files(_UNFINISHED))]
        for path in (*paths, self.folder / _KEY_FILE):
            path.unlink(missing_ok=True)
        return removed

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.events"

    def _key(self) -> bytes | None:
        """Return the key, where nobody else can have written or read it."""
        path = self.folder / _KEY_FILE
        try:
            is_private = _is_own(self.folder, _WRITABLE_BY_OTHERS) and _is_own(
                path, _OPEN_TO_OTHERS
            )
            key = path.read_bytes() if is_private and _is_file(path) else b""
        except OSError:
            return None
        return key if len(key) == _KEY_BYTES else None

    def _new_key(self) -> bytes | None:
        """Write a key; two processes may both do so, and the entries of one are passed over."""
        if not _is_own(self.folder, _WRITABLE_BY_OTHERS):
            return None
        self._write(self.folder / _KEY_FILE, secrets.token_bytes(_KEY_BYTES))
        return self._key()

    def _write(self, path: Path, *parts: bytes) -> None:
        """Make ``path`` appear whole, readable for this user alone."""
        with temporary_file(self.folder, prefix=".", suffix=".unfinished") as file:
            file.writelines(parts)
            file.close()
            Path(file.name).replace(path)

    def _remove_oldest(self) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime_ns, reverse=True)
        kept = 0
        for path, status in entries:
            kept += status.st_size
            if kept > self.max_bytes:
                path.unlink(missing_ok=True)
        for path, status in self._files(_UNFINISHED):
            if status.st_mtime < time() - _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        return self._files(_ENTRY)

    def _files(self, names: re.Pattern[str]) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield the files with such names that are there now; another process may remove some."""
        try:
            listed = sorted(self.folder.iterdir())
        except OSError:
            return
        for path in listed:
            with suppress(OSError):
                status = path.lstat()
                if names.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
                    yield path, status


def default_folder() -> Path | None:
    """Return the user's cache folder for this program; None where the user has no home."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if Path(configured).is_absolute():
            base = Path(configured)
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        elif sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        else:
            base = Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "kinetolint" / "traces"


def _sign(key: bytes, name: str, payload: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(key=key, digest_size=_SIGNATURE_BYTES)
    digest.update(name.encode())
    digest.update(payload)
    return digest.digest()


def _is_file(path: Path) -> bool:
    """Whether it is a regular file: opening a pipe could wait for ever."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _is_own(path: Path, forbidden: int) -> bool:
    """Whether ``path`` is this user's and has none of the ``forbidden`` mode bits."""
    if sys.platform == "win32":
        return True  # a user's cache folder there is private by its access list
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & forbidden
