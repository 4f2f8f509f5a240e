"""Process, thread and arrow numbers that a trace does not use itself."""

from collections.abc import Mapping
from typing import Any

FIRST_THREAD = 10_000_000
"""Above every process and thread id of Linux (at most 2**22) and every device and stream number."""

FIRST_ARROW = 1 << 40
"""Above every correlation id (32 bits) and below 2**53, so that JavaScript keeps it exact."""


class FreeNumbers:
    """The numbers from ``first`` on that were not seen."""

    def __init__(self, first: int) -> None:
        """Look at numbers from ``first`` on."""
        self._first = first
        self._seen: set[int] = set()

    def see(self, number: object) -> None:
        """Take notice of a number of the file; anything else is passed over."""
        if type(number) is int and number >= self._first:
            self._seen.add(number)

    def run(self, count: int) -> range:
        """Return the first ``count`` numbers in a row that were not seen."""
        start = self._first
        for number in sorted(self._seen):
            if number >= start + count:
                break
            start = number + 1
        return range(start, start + count)


class NumbersInUse:
    """The numbers of one trace.

    Attributes:
        threads: process and thread numbers. Viewers of some versions tell threads apart by the
            thread's number alone, so both come from one pool.
        arrows: ids of arrows.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.threads = FreeNumbers(FIRST_THREAD)
        self.arrows = FreeNumbers(FIRST_ARROW)

    def see(self, event: Mapping[str, Any]) -> None:
        """Take notice of an event of the file."""
        self.threads.see(event.get("pid"))
        self.threads.see(event.get("tid"))
        self.arrows.see(_number(event.get("id")))


def _number(arrow: object) -> object:
    """Return an id as a number; a text is read as a hexadecimal one, as Perfetto does."""
    if not isinstance(arrow, str):
        return arrow
    try:
        return int(arrow[:_MOST_DIGITS], 16)
    except ValueError:
        return None


_MOST_DIGITS = 18
"""Of 64 bits with ``0x`` in front."""
