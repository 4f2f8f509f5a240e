"""Check the keys of a file against its model, and say what is wrong in the words of the format."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from analyze.engine.model import (
    CODE_PATTERN,
    FORMAT_VERSION,
    IDENTIFIER_PATTERN,
    NAME_PATTERN,
    Benign,
    Evidence,
    Expected,
    RegionUnit,
    Requirement,
    RuleTest,
    Savings,
    Step,
    Uncertain,
)
from analyze.engine.reporting import Reporter
from analyze.engine.yaml_file import Document, KeyPath

ModelT = TypeVar("ModelT", bound=BaseModel)

_PARTS: Mapping[tuple[str, ...], type[BaseModel]] = {
    ("per",): RegionUnit,
    ("severity",): Step,
    ("requires",): Requirement,
    ("benign",): Benign,
    ("uncertain",): Uncertain,
    ("savings",): Savings,
    ("evidence",): Evidence,
    ("tests",): RuleTest,
    ("tests", "expect"): Expected,
}
"""Models of the nested mappings, by their keys."""

_PATTERNS: Mapping[str, str] = {
    CODE_PATTERN: "two to six capitals and three digits, such as COPY101",
    NAME_PATTERN: "lower-case words joined by hyphens",
    IDENTIFIER_PATTERN: "a name of letters, digits and underscores",
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
        _report(error, model, document, reporter)
        return None


def _readable_version(data: Mapping[str, Any], reporter: Reporter) -> bool:
    version = data.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT_VERSION:
        message = f"the file needs rule format {version}, but this program reads {FORMAT_VERSION}"
        reporter.add(("version",), message, "upgrade kinetolint")
        return False
    return True


def _report(
    error: ValidationError, model: type[BaseModel], document: Document, reporter: Reporter
) -> None:
    by_path: dict[KeyPath, list[Any]] = {}
    for detail in error.errors(include_url=False, include_input=False):
        missing = (detail["loc"][-1],) if detail["type"] == "missing" else ()
        path = (*_path(detail["loc"], document.data), *missing)
        by_path.setdefault(path, []).append(detail)
    for path, details in by_path.items():
        # Of the alternatives a value may take, the one that fits further down is the one meant.
        if not any(len(other) > len(path) and other[: len(path)] == path for other in by_path):
            _report_at(path, details, model, reporter)


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


def _report_at(
    path: KeyPath, details: list[Any], model: type[BaseModel], reporter: Reporter
) -> None:
    kinds = {detail["type"]: detail for detail in details}
    if "extra_forbidden" in kinds:
        reporter.unknown(path, "key", str(path[-1]), _keys(path[:-1], model), key=True)
    elif "missing" in kinds:
        reporter.add(path[:-1], f"missing key '{path[-1]}'")
    elif "literal_error" in kinds:
        expected = kinds["literal_error"]["ctx"]["expected"]
        reporter.add(path, f"must be {expected}")
    else:
        reporter.add(path, _words(kinds))


def _words(kinds: Mapping[str, Any]) -> str:
    """Say what a value must be."""
    pattern = kinds.get("string_pattern_mismatch")
    if pattern is not None:
        return f"must be {_PATTERNS[pattern['ctx']['pattern']]}"
    names = list(dict.fromkeys(_KINDS[kind] for kind in kinds if kind in _KINDS))
    if names:
        return f"must be {' or '.join(names)}"
    message = str(next(iter(kinds.values()))["msg"])
    return message[:1].lower() + message[1:]


def _keys(path: KeyPath, model: type[BaseModel]) -> list[str]:
    """Return the keys that may stand at a path."""
    names = tuple(part for part in path if isinstance(part, str))
    part = _PARTS.get(names, model)
    return [field.alias or name for name, field in part.model_fields.items()]
