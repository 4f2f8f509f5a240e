"""Temporary files and folders that are not left behind, however a program ends but by SIGKILL."""

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

_TERMINATING = ("SIGTERM", "SIGHUP")
"""What ends a program from outside; not every system has both."""

_SIGNALLED = 128
"""What shells add to the number of the signal that ended a program."""


@contextmanager
def temporary_file(
    folder: Path | None = None, *, prefix: str | None = None, suffix: str | None = None
) -> Iterator[IO[bytes]]:
    """Yield a new file that only this user can read, and that is gone after the block.

    SIGTERM and SIGHUP end the block by an exception. What takes the place of another file by then
    stays.

    Args:
        folder: where it is made; by default where the system keeps temporary files.
        prefix: of its name.
        suffix: of its name.

    Raises:
        OSError: it cannot be made.
    """
    with termination_raises(), ExitStack() as stack:
        with _put_off():
            file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - the stack closes it
                dir=folder, prefix=prefix, suffix=suffix, delete=False
            )
            stack.callback(Path(file.name).unlink, missing_ok=True)
            stack.enter_context(file)
        yield file


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder that is gone after the block; see :func:`temporary_file`."""
    with termination_raises(), ExitStack() as stack:
        with _put_off():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kinetolint-"))
        yield Path(folder)


@contextmanager
def termination_raises() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by an exception, so that it cleans up.

    One that is ignored, as under ``nohup``, goes on being ignored.
    """
    if not _is_main():
        yield
        return
    before = {number: signal.getsignal(number) for number in _signals(*_TERMINATING)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _put_off() -> Iterator[None]:
    """Let signals that end a program act after the block, which must be short.

    Between making a file and holding it, one would leave the file behind.
    """
    if not _is_main():
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    numbers = _signals("SIGINT", *_TERMINATING)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def _is_main() -> bool:
    """Whether this is the thread that may say what signals do."""
    return threading.current_thread() is threading.main_thread()


def _signals(*names: str) -> list[signal.Signals]:
    return [each for each in signal.Signals if each.name in names]


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(_SIGNALLED + number)
