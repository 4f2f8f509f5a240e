"""Standard output that the caller has closed (``>&-``): writing to it is an error, not silence."""

import errno
import io
import sys
from typing import TextIO, cast


class _ClosedOutput(io.TextIOBase):
    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def notice_closed_output() -> None:
    """Let a report that cannot be printed be an error; what goes to files is none of its business.

    Python leaves ``sys.stdout`` None then, and click prints nothing without a word.
    """
    if sys.stdout is None:
        sys.stdout = cast("TextIO", _ClosedOutput())
