"""Apply what a pack overrides in the rules of other packs.

Overrides work on keys, not on text: ``set`` gives a key a value, ``replace`` does so only where the
rule has the key, ``append`` adds to a list or a mapping and narrows a matcher.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from analyze.engine.document import Document, KeyPath, Place
from analyze.engine.keys import types_of
from analyze.engine.model import Override, RuleModel
from analyze.engine.packs import Pack
from analyze.engine.problems import did_you_mean

_FIXED = ("version", "code", "name", "from")
_KEYS = list(types_of(RuleModel))


def overrides_of(pack: Pack, code: object) -> Iterator[tuple[int, Override]]:
    """Yield what a pack overrides in a rule, with the position in ``override``."""
    for index, override in enumerate(pack.model.override if pack.model else ()):
        if override.code == code:
            yield index, override


def overridden(document: Document, pack: Pack) -> Document:
    """Return a rule's document with what a pack overrides; problems go to the pack's reporter."""
    for index, override in overrides_of(pack, document.data.get("code")):
        document = _Overriding(document, pack, ("override", index)).apply(override)
    return document


class _Overriding:
    """One override of one rule."""

    def __init__(self, document: Document, pack: Pack, path: KeyPath) -> None:
        self._document = document
        self._data: dict[str, Any] = dict(document.data)
        self._grafts: dict[KeyPath, Place] = {}
        self._reporter = pack.reporter
        self._path = path

    def apply(self, override: Override) -> Document:
        for key, value in self._allowed("set", override.set_keys):
            self._put(key, value, "set")
        for key, value in self._allowed("replace", override.replace):
            if key in self._data:
                self._put(key, value, "replace")
            else:
                self._problem("replace", key, f"the rule has no '{key}'", "use 'set' to add it")
        for key, value in self._allowed("append", override.append):
            self._append(key, value)
        return self._document.with_data(self._data, self._grafts)

    def _allowed(self, how: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for key, value in values.items():
            if key in _FIXED:
                self._problem(how, key, f"'{key}' cannot be overridden")
            elif key not in _KEYS:
                self._problem(how, key, f"unknown key '{key}'", did_you_mean(key, _KEYS))
            else:
                yield key, value

    def _put(self, key: str, value: Any, how: str) -> None:
        self._data[key] = value
        self._grafts[key,] = self._place(how, key)

    def _append(self, key: str, value: Any) -> None:
        present = self._data.get(key)
        if present is None:
            self._put(key, value, "append")
        elif key == "where":
            self._data[key] = {"all": [present, value]}
            for path, place in self._document.grafts.items():
                if path[0] == key:
                    self._grafts[key, "all", 0, *path[1:]] = place
            self._grafts.setdefault((key, "all", 0), self._document.origin((key,)))
            self._grafts[key, "all", 1] = self._place("append", key)
        elif isinstance(present, list) and isinstance(value, list):
            self._data[key] = [*present, *value]
            for index in range(len(value)):
                self._grafts[key, len(present) + index] = self._place("append", key, index)
        elif isinstance(present, dict) and isinstance(value, dict):
            self._merge(key, present, value)
        else:
            help_text = "lists and mappings can be appended to; use 'replace'"
            self._problem("append", key, f"'{key}' cannot be appended to like this", help_text)

    def _merge(self, key: str, present: dict[str, Any], value: dict[str, Any]) -> None:
        self._data[key] = {**present, **value}
        for name in value:
            self._grafts[key, name] = self._place("append", key, name)

    def _place(self, *path: str | int) -> Place:
        return Place(self._reporter.document, (*self._path, *path))

    def _problem(self, how: str, key: str, message: str, help_text: str | None = None) -> None:
        self._reporter.add((*self._path, how, key), message, help_text, key=True)
