"""Check the keys of a file against its model, and say what is wrong in the words of the format."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from analyze.engine.model import (
    CODE_PATTERN,
    DAY_PATTERN,
    FORMAT_VERSION,
    IDENTIFIER_PATTERN,
    NAME_PATTERN,
)
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.engine.yaml_file import Document, KeyPath, Place
from analyze.words import closest

ModelT = TypeVar("ModelT", bound=BaseModel)

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


@dataclass(frozen=True)
class KeyProblem:
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


def validate(model: type[ModelT], document: Document, reporter: Reporter) -> ModelT | None:
    """Return a document as a model; None when it has problems, which are reported."""
    data = document.data
    if not isinstance(data, dict):
        reporter.add((), "the file is not a mapping of keys to values")
        return None
    if not _readable_version(data, reporter):
        return None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for problem in key_problems(error, model, data):
            reporter.add(problem.path, problem.message, problem.help, key=problem.key)
        return None


@dataclass(frozen=True)
class Mended(Generic[ModelT]):
    """What can still be checked of a file whose keys are wrong.

    Attributes:
        model: the file without what is wrong.
        document: the positions of its values.
        removed: the paths of what was taken out.
    """

    model: ModelT
    document: Document
    removed: frozenset[KeyPath]


def mend(model: type[ModelT], document: Document) -> Mended[ModelT] | None:
    """Return a file that has problems without what is wrong, so that the rest can be checked.

    A misspelt key counts as the one that was meant. What is missing is filled in.
    """
    data = copy.deepcopy(document.data)
    mending = _Mending(data, document)
    for _ in range(_MENDING_ROUNDS):
        try:
            mended = model.model_validate(data)
        except ValidationError as error:
            for problem in list(key_problems(error, model, data)):
                mending.mend(problem)
        else:
            changed = document.with_data(data, mending.grafts)
            return Mended(mended, changed, frozenset(mending.removed))
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


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def key_problems(error: ValidationError, model: type[BaseModel], data: Any) -> Iterator[KeyProblem]:
    """Yield what pydantic found, in the words of the format, each place once."""
    problems = list(_each_place(error, model, data))
    meant = {(*problem.path[:-1], problem.meant) for problem in problems if problem.meant}
    for problem in problems:
        if (*problem.path, problem.missing) not in meant:
            yield problem


def _each_place(error: ValidationError, model: type[BaseModel], data: Any) -> Iterator[KeyProblem]:
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
        message = f"the file needs rule format {version}, but this program reads {FORMAT_VERSION}"
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


def _problem(path: KeyPath, details: list[Any], model: type[BaseModel]) -> KeyProblem:
    kinds = {detail["type"]: detail for detail in details}
    if "extra_forbidden" in kinds:
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
    return KeyProblem(path, _words(kinds), _help(kinds, details[0]["input"]))


def _words(kinds: Mapping[str, Any]) -> str:
    """Say what a value must be."""
    pattern = kinds.get("string_pattern_mismatch")
    if pattern is not None:
        return f"must be {_PATTERNS[pattern['ctx']['pattern']]}"
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
    if "string_type" in kinds and isinstance(value, list):
        return "one value, not a list"
    if "less_than_equal" in kinds and isinstance(value, int | float) and 1 < value <= 100:
        return f"a share from 0 to 1: {value:g} % is {value / 100:g}"
    return None


def _keys(path: KeyPath, model: type[BaseModel]) -> list[str]:
    """Return the keys that may stand at a path."""
    for part in path:
        if isinstance(part, str):
            model = _model_of(model, part) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_of(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Return the model of the mapping, or mappings, that a key holds."""
    for name, field in model.model_fields.items():
        if key == (field.alias or name):
            return next(_models_in(field.annotation), None)
    return None


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
