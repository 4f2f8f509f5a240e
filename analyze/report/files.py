"""Write outputs whole or not at all."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ELOOP
from pathlib import Path
from typing import IO

from analyze.errors import AnalyzeError
from analyze.temporary import temporary_file

_DESCRIPTOR = re.compile(r"/dev/(?P<name>stdout|stderr)|/(?:dev|proc/self)/fd/(?P<number>\d{1,6})")
_STANDARD = {"stdout": 1, "stderr": 2}

_SHOWN_OF_NAME = 20
"""Characters of a file's name in that of its temporary file, which may not be too long either."""


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text``; see :func:`writing_whole`.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    with writing_whole(path) as file:
        file.write(text.encode())


def add_whole(path: Path, text: str) -> None:
    """Add ``text`` to the end of ``path``, on a line of its own; a new file holds it alone.

    Raises:
        AnalyzeError: the file cannot be read or written.
    """
    if open_descriptor(path) is not None:
        write_whole(path, text)
        return
    try:
        before = path.read_text("utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise AnalyzeError(f"{path}: cannot be added to: {reason}") from None
    between = "\n" if before and not before.endswith("\n") else ""
    write_whole(path, f"{before}{between}{text}")


@contextmanager
def writing_whole(path: Path) -> Iterator[IO[bytes]]:
    """Replace ``path`` by what the block writes; a reader sees the old content or the new.

    When the block ends early, by an error, Ctrl-C or SIGTERM, the old content stays and nothing is
    left beside it. A symbolic link keeps pointing where it does; a device or a pipe is written to
    as it is, and so is what the shell opened for ``/dev/stdout``, from where it stands. A file that
    is replaced keeps its mode.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    descriptor = open_descriptor(path)
    try:
        if descriptor is not None:
            sys.stdout.flush()
            with os.fdopen(os.dup(descriptor), "wb") as file:
                yield file
            return
        if path.exists() and not path.is_file():  # as it is: a pipe has no path to resolve to
            with path.open("wb") as file:
                yield file
            return
        with _replacing(_where_links_lead(path)) as file:
            yield file
    except OSError as error:
        raise AnalyzeError(f"{path}: cannot be written: {error.strerror or error}") from None


def open_descriptor(path: Path) -> int | None:
    """Return the number of the open file that a path such as ``/dev/stdout`` stands for, if any."""
    found = _DESCRIPTOR.fullmatch(str(path))
    if found is None:
        return None
    return _STANDARD[found["name"]] if found["name"] else int(found["number"])


def _where_links_lead(path: Path) -> Path:
    """Return the file that symbolic links lead to; it need not exist.

    Raises:
        OSError: they lead to each other.
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(ELOOP, os.strerror(ELOOP))
    return target


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that takes the place of ``path`` when the block succeeds."""
    with temporary_file(path.parent, prefix=f".{path.name[:_SHOWN_OF_NAME]}.") as file:
        yield file
        file.close()
        temporary = Path(file.name)
        temporary.chmod(_mode_of(path))
        temporary.replace(path)


def _mode_of(path: Path) -> int:
    """Return the mode of the file that is replaced, or that of a plainly created one.

    Temporary files are private.
    """
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
