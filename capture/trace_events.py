"""Read the events of a trace one by one, with nothing but the standard library.

The whole file is never in memory. An event that is broken, as the profiler writes for some names,
is passed over and counted.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

_CHUNK = 1 << 20
_MAX_EVENT = 1 << 20
_EVENTS = re.compile(r'"traceEvents":\s*\[')
_NEXT_EVENT = re.compile(r'\{\s*"ph"')
_BETWEEN = " \t\r\n,"


class EventReader:
    """The events of one trace.

    Attributes:
        damaged: events that could not be decoded so far.
        complete: the list of events was closed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self.damaged = 0
        self.complete = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the intact events in the order of the file."""
        with self._path.open(encoding="utf-8", errors="replace") as file:
            if self._find_list(file):
                yield from self._events(file)

    def _find_list(self, file: TextIO) -> bool:
        while not (found := _EVENTS.search(self._text)):
            if not self._more(file):
                return False
        self._text = self._text[found.end() :]
        return True

    def _events(self, file: TextIO) -> Iterator[dict[str, Any]]:
        decoder = json.JSONDecoder()
        position = 0
        while True:
            position = self._skip(position, _BETWEEN)
            if position >= _CHUNK:
                self._text, position = self._text[position:], 0
            if self._text[position : position + 1] == "]":
                self.complete = True
                return
            try:
                event, position = decoder.raw_decode(self._text, position)
            except ValueError:
                if len(self._text) - position < _MAX_EVENT and self._more(file):
                    continue
                following = _NEXT_EVENT.search(self._text, position + 1)
                self.damaged += position < len(self._text)
                if following is None:
                    return
                position = following.start()
            else:
                if isinstance(event, dict):
                    yield event

    def _skip(self, position: int, letters: str) -> int:
        while position < len(self._text) and self._text[position] in letters:
            position += 1
        return position

    def _more(self, file: TextIO) -> bool:
        read = file.read(_CHUNK)
        self._text += read
        return bool(read)
