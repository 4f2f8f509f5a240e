"""Conditions of rules in words, and cut into the steps in which people read them."""

from collections.abc import Iterator, Mapping
from typing import Any

from analyze.engine.document import KeyPath
from analyze.engine.matchers import WORDS, Macro, Shared
from analyze.engine.values import Value

_OPERATORS: Mapping[str, str] = {
    "eq": "is",
    "ne": "is not",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "in": "is",
    "not_in": "is not",
    "regex": "matches",
    "contains": "contains",
    "startswith": "starts with",
    "endswith": "ends with",
}
_QUOTED = ("regex", "contains", "startswith", "endswith")
_LOOSE = ("any", "expr")
"""Entries that may hold an *or* without brackets."""
_PARAM = "params."
_MAX_VALUES = 8


def steps(tree: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yield the conditions that a matcher joins by *and*, each as a matcher with its place."""
    for key, value in tree.items():
        if key == "all":
            for index, branch in enumerate(value):
                yield from steps(branch, (*path, key, index))
        elif key not in WORDS and isinstance(value, dict):
            yield from ((path, {key: {operator: item}}) for operator, item in value.items())
        else:
            yield path, {key: value}


def in_words(tree: Mapping[str, Any], params: Mapping[str, Value], shared: Shared) -> str:
    """Return a matcher as a sentence; parameters and lists are followed by their values."""
    return _Wording(params, shared).matcher(tree)


class _Wording:
    """The wording of one rule."""

    def __init__(self, params: Mapping[str, Value], shared: Shared) -> None:
        self._params = params
        self._shared = shared

    def matcher(self, tree: Mapping[str, Any]) -> str:
        parts = [(key, self._entry(key, value)) for key, value in tree.items()]
        if len(parts) > 1:
            parts = [(key, _apart(words) if key in _LOOSE else words) for key, words in parts]
        return " and ".join(words for _, words in parts) or "every row"

    def _entry(self, key: str, value: Any) -> str:
        match key:
            case "all":
                return " and ".join(self._part(branch) for branch in value)
            case "any":
                return " or ".join(self._part(branch) for branch in value)
            case "not":
                return f"not ({self.matcher(value)})"
            case "use":
                names = value if isinstance(value, list) else [value]
                return " and ".join(self._macro(name) for name in names)
            case "expr":
                return str(value)
        tests = value if isinstance(value, dict) else {"eq": value}
        return " and ".join(self._test(key, operator, item) for operator, item in tests.items())

    def _part(self, tree: Mapping[str, Any]) -> str:
        """Return a matcher inside another one, in brackets where it would be misread."""
        words = self.matcher(tree)
        return f"({words})" if " and " in words else _apart(words)

    def _macro(self, name: str) -> str:
        macro: Macro = self._shared.macros[name]
        return f"{name} ({self.matcher(macro.tree)})"

    def _test(self, column: str, operator: str, value: Any) -> str:
        if operator == "exists":
            return f"{column} is {'known' if value else 'unknown'}"
        shown = self._value(value, quoted=operator in _QUOTED)
        return f"{column} {_OPERATORS[operator]} {shown}"

    def _value(self, value: Any, *, quoted: bool = False) -> str:
        if isinstance(value, list):
            return _listed([self._value(item) for item in value])
        if isinstance(value, str) and value.startswith("$"):
            values = self._shared.lists[value[1:]]
            return f"{_listed([self._value(item) for item in values])} ({value})"
        if isinstance(value, str) and value.startswith(_PARAM):
            known = self._params.get(value.removeprefix(_PARAM))
            return value if known is None else f"{self._value(known)} ({value})"
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
        return f"'{value}'" if quoted else str(value)


def _apart(words: str) -> str:
    """Put a condition into brackets if *and* would tear it apart."""
    return f"({words})" if " or " in words else words


def _listed(values: list[str]) -> str:
    shown, more = values[:_MAX_VALUES], len(values) - _MAX_VALUES
    if more > 0:
        return f"{', '.join(shown)} or {more} more"
    *first, last = shown
    return f"{', '.join(first)} or {last}" if first else last
