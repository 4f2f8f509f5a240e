"""Write outputs whole or not at all."""

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capture.errors import CaptureError


def make_folder(folder: Path) -> None:
    """Make a folder that can be written to.

    Raises:
        CaptureError: it cannot be made, or nothing can be written into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _cannot_write(folder, error) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path`` that takes its place in the end.

    An exception inside leaves ``path`` as it was and removes the temporary file.

    Raises:
        CaptureError: the file cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
    except OSError as error:
        raise _cannot_write(path, error) from None
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_new_file_mode())
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace a file by a text.

    Raises:
        CaptureError: the file cannot be written.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_compressed(source: Path, path: Path) -> None:
    """Write the content of ``source`` to ``path`` as gzip without name or time in its header.

    Raises:
        CaptureError: the file cannot be written.
    """
    with (
        replacing(path) as temporary,
        source.open("rb") as plain,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
    ):
        shutil.copyfileobj(plain, packed, 1 << 20)


def _cannot_write(path: Path, error: OSError) -> CaptureError:
    return CaptureError(f"{path}: cannot be written: {error.strerror or error}")


def _new_file_mode() -> int:
    """Return the mode a plainly created file would have; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
