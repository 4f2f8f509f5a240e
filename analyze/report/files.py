"""Write outputs whole or not at all."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from analyze.errors import AnalyzeError

_TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, as shells show it."""


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text``; see :func:`writing_whole`.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    with writing_whole(path) as file:
        file.write(text.encode())


@contextmanager
def writing_whole(path: Path) -> Iterator[IO[bytes]]:
    """Replace ``path`` by what the block writes; a reader sees the old content or the new.

    When the block ends early, by an error, Ctrl-C or SIGTERM, the old content stays and nothing is
    left beside it. A symbolic link keeps pointing where it does; a device or a pipe is written to
    as it is.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        with termination_raises(), _replacing(path) as file:
            yield file
    except OSError as error:
        raise AnalyzeError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that takes the place of ``path`` when the block succeeds."""
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.close()
            temporary.chmod(_new_file_mode())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def termination_raises() -> Iterator[None]:
    """Let SIGTERM end the block by an exception, so that it cleans up, instead of at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)


def _new_file_mode() -> int:
    """Return the mode a plainly created file would have; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
