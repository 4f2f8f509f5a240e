"""Check the keys of a file against its model, and say what is wrong in the words of the format."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from analyze.engine.document import Document, KeyPath, Place
from analyze.engine.keys import Keys, filled, model_in, types_of
from analyze.engine.model import (
    CODE_PATTERN,
    DAY_PATTERN,
    FORMAT_VERSION,
    IDENTIFIER_PATTERN,
    NAME_PATTERN,
)
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.words import closest

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Model = TypeVar("Model")

_PATTERNS: Mapping[str, str] = {
    CODE_PATTERN: "two to six capitals and three digits, such as COPY101",
    NAME_PATTERN: "lower-case words joined by hyphens",
    IDENTIFIER_PATTERN: "a name of letters, digits and underscores",
    DAY_PATTERN: "a day as year-month-day, such as 2026-01-31",
}

_KINDS: Mapping[str, str] = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
    "model_type": "a mapping",
}

_LIMITS: Mapping[str, str] = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}

_MENDING_ROUNDS = 4
_PLACEHOLDERS: Mapping[str, Any] = {
    "version": 1,
    "code": "XX000",
    "name": "x",
    "when": {},
    "that": True,
    "us": 0,
    "level": "info",
    "expect": {},
}
"""What stands for a missing key while the rest is checked; ``-`` for any other."""

_OLD_FLAGS = ("yes", "no", "on", "off", "y", "n")


class KeyProblem(NamedTuple):
    """What is wrong with a value, or with a key.

    Attributes:
        path: of the value; of the mapping where a key is missing.
        message, help: for people.
        key: the key itself is wrong.
        meant: the known key that a wrong one is probably a misspelling of.
        missing: the key that is missing.
    """

    path: KeyPath
    message: str
    help: str | None = None
    key: bool = False
    meant: str | None = None
    missing: str | None = None

    def in_one_line(self) -> str:
        """Return the problem with the place of the value, where no lines of the file are shown."""
        path = self.path[:-1] if self.key else self.path
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        help_text = f" ({self.help})" if self.help else ""
        return f"{''.join(parts).removeprefix('.')}: {self.message}{help_text}".removeprefix(": ")


def validate(model: type[Model], document: Document, reporter: Reporter) -> Model | None:
    """Return a document as a model; None when it has problems, which are reported."""
    data = document.data
    if document.as_built and issubclass(model, Keys):
        return filled(model, data)
    if not isinstance(data, dict):
        reporter.add((), "the file is not a mapping of keys to values")
        return None
    if not _readable_version(data, reporter):
        return None
    found = checked(model, data)
    if isinstance(found, Sound):
        return found.model
    for problem in found:
        reporter.add(problem.path, problem.message, problem.help, key=problem.key)
    return None


@dataclass(frozen=True)
class Sound(Generic[Model]):
    """Keys and values as their model."""

    model: Model


def checked(model: type[Model], data: Any) -> Sound[Model] | list[KeyProblem]:
    """Return keys and values as their model, or what is wrong with them."""
    from pydantic import ValidationError  # noqa: PLC0415

    try:
        sound: Model = _adapter(model).validate_python(data)  # type: ignore[arg-type]  # hashable
    except ValidationError as error:
        return list(key_problems(error, model, data))
    return Sound(sound)


@cache
def _adapter(model: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(model)


@dataclass(frozen=True)
class Mended(Generic[Model]):
    """What can still be checked of a file whose keys are wrong.

    Attributes:
        model: the file without what is wrong.
        document: the positions of its values.
        removed: the paths of what was taken out.
    """

    model: Model
    document: Document
    removed: frozenset[KeyPath]


def mend(model: type[Model], document: Document) -> Mended[Model] | None:
    """Return a file that has problems without what is wrong, so that the rest can be checked.

    A misspelt key counts as the one that was meant. What is missing is filled in.
    """
    data = copy.deepcopy(document.data)
    mending = _Mending(data, document)
    for _ in range(_MENDING_ROUNDS):
        found = checked(model, data)
        if isinstance(found, Sound):
            changed = document.with_data(data, mending.grafts)
            return Mended(found.model, changed, frozenset(mending.removed))
        for problem in found:
            mending.mend(problem)
    return None


class _Mending:
    """Takes out of the data of a document what is wrong with it, place by place."""

    def __init__(self, data: Any, document: Document) -> None:
        self._data = data
        self._document = document
        self.removed: set[KeyPath] = set()
        self.grafts: dict[KeyPath, Place] = {}

    def mend(self, problem: KeyProblem) -> None:
        if problem.missing is not None:
            parent = _at(self._data, problem.path)
            parent[problem.missing] = _PLACEHOLDERS.get(problem.missing, "-")
        elif problem.path:
            self._remove(problem)

    def _remove(self, problem: KeyProblem) -> None:
        if not _is_in(self._data, problem.path):
            return  # it went with something above it
        *above, last = problem.path
        parent = _at(self._data, tuple(above))
        while isinstance(parent, list):
            *above, last = above
            parent = _at(self._data, tuple(above))
        value = parent.pop(last, None)
        if problem.meant is not None and problem.meant not in parent:
            parent[problem.meant] = value
            self.grafts[(*above, problem.meant)] = self._document.origin(problem.path)
        else:
            self.removed.add((*above, last))


def _is_in(data: Any, path: KeyPath) -> bool:
    try:
        _at(data, path)
    except (LookupError, TypeError):
        return False
    return True


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def key_problems(error: "ValidationError", model: type[Any], data: Any) -> Iterator[KeyProblem]:
    """Yield what pydantic found, in the words of the format, each place once."""
    problems = list(_each_place(error, model, data))
    meant = {(*problem.path[:-1], problem.meant) for problem in problems if problem.meant}
    for problem in problems:
        if (*problem.path, problem.missing) not in meant:
            yield problem


def _each_place(error: "ValidationError", model: type[Any], data: Any) -> Iterator[KeyProblem]:
    by_path: dict[KeyPath, list[Any]] = {}
    for detail in error.errors(include_url=False):
        missing = (detail["loc"][-1],) if detail["type"] == "missing" else ()
        path = (*_path(detail["loc"], data), *missing)
        by_path.setdefault(path, []).append(detail)
    for path, details in by_path.items():
        # Of the alternatives a value may take, the one that fits further down is the one meant.
        if not any(len(other) > len(path) and other[: len(path)] == path for other in by_path):
            yield _problem(path, details, model)


def _readable_version(data: Mapping[str, Any], reporter: Reporter) -> bool:
    version = data.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT_VERSION:
        message = f"the file needs format {version}, but this program reads {FORMAT_VERSION}"
        reporter.add(("version",), message, "upgrade kinetolint")
        return False
    return True


def _path(loc: tuple[str | int, ...], data: Any) -> KeyPath:
    """Return the part of a pydantic location that exists in the document.

    Between the keys it names the alternatives of unions, which are no keys.
    """
    path: list[str | int] = []
    for part in loc:
        inside = isinstance(part, int) if isinstance(data, list) else _has(data, part)
        if inside:
            data = data[part]
            path.append(part)
    return tuple(path)


def _has(data: Any, key: str | int) -> bool:
    return isinstance(data, dict) and key in data


def _problem(path: KeyPath, details: list[Any], model: type[Any]) -> KeyProblem:
    kinds = {detail["type"]: detail for detail in details}
    if kinds.keys() & {"extra_forbidden", "unexpected_keyword_argument"}:
        word, known = str(path[-1]), _keys(path[:-1], model)
        message = f"unknown key '{word}'"
        return KeyProblem(path, message, did_you_mean(word, known), True, closest(word, known))
    if "missing" in kinds:
        return KeyProblem(path[:-1], f"missing key '{path[-1]}'", missing=str(path[-1]))
    if "literal_error" in kinds:
        detail = kinds["literal_error"]
        expected = detail["ctx"]["expected"]
        quoted = "write it without quotes" if str(detail["input"]) == expected else None
        if path == ("per",):
            quoted = "for an annotation, write {region: NAME}"
        return KeyProblem(path, f"must be {expected}", quoted)
    if path[:1] == ("tests",) and path[2:] == ("trace",):
        help_text = "a test takes a sample, 'rows' or 'events', not a file, to run anywhere"
        return KeyProblem(path, "must be the name of a sample trace", help_text)
    if path[:1] == ("tests",) and path[2:] == ("expect",) and isinstance(details[0]["input"], str):
        return KeyProblem(path, _words(kinds), f"write {{state: {details[0]['input']}}}")
    return KeyProblem(path, _words(kinds), _help(kinds, details[0]["input"]))


def _words(kinds: Mapping[str, Any]) -> str:
    """Say what a value must be."""
    pattern = kinds.get("string_pattern_mismatch")
    if pattern is not None:
        return f"must be {_PATTERNS[pattern['ctx']['pattern']]}"
    if "too_short" in kinds:
        return "must not be empty"
    names = list(dict.fromkeys(_KINDS[kind] for kind in kinds if kind in _KINDS))
    if names:
        return f"must be {' or '.join(names)}"
    kind, detail = next(iter(kinds.items()))
    limits = detail.get("ctx", {})
    if kind == "string_too_short":
        return "must not be empty"
    if kind in _LIMITS:
        return f"must be {_LIMITS[kind]} {next(iter(limits.values())):g}"
    message = str(detail["msg"])
    return message[:1].lower() + message[1:]


def _help(kinds: Mapping[str, Any], value: Any) -> str | None:
    """Say what to write instead, for the usual slips."""
    if "bool_type" in kinds and str(value).lower() in _OLD_FLAGS:
        return f"'{value}' is text in YAML 1.2: write true or false"
    if "string_type" in kinds and isinstance(value, bool | int | float):
        return "put it in quotes"
    if "dict_type" in kinds and isinstance(value, str):
        return "write {column: value}, {column: {operator: value}} or {expr: ...}"
    if "string_type" in kinds and isinstance(value, list) and "too_short" not in kinds:
        return "one value, not a list"
    if "less_than_equal" in kinds and isinstance(value, int | float) and 1 < value <= 100:
        return f"a share from 0 to 1: {value:g} % is {value / 100:g}"
    return None


def _keys(path: KeyPath, model: type[Any]) -> list[str]:
    """Return the keys that may stand at a path."""
    for part in path:
        if isinstance(part, str):
            model = model_in(_types(model).get(part), _is_model) or model
    return list(_types(model))


def _types(model: type[Any]) -> Mapping[str, Any]:
    if issubclass(model, Keys):
        return types_of(model)
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _is_model(annotation: type[Any]) -> bool:
    from pydantic import BaseModel  # noqa: PLC0415

    return issubclass(annotation, Keys | BaseModel)
