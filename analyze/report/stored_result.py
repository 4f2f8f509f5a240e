"""Results that were stored as JSON or JSON Lines, read back so that any format can be written.

A stored file is as untrusted as a trace: it is read within bounds, held to the documented schema,
and what is wrong with it is said in one line.
"""

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from analyze.engine.result import (
    SCHEMA_VERSION,
    Checked,
    Finding,
    Folded,
    Ignored,
    NotApplicable,
    Place,
    RuleFailure,
    TraceReport,
    Uncaptured,
    UnitCount,
    Unread,
    Vanished,
)
from analyze.errors import TraceError
from analyze.report.result_schema import completed, stored_schema
from analyze.trace.kinds import other_kind
from analyze.trace.source import STDIN_NAME
from analyze.words import printable

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Data = dict[str, Any]

MAX_BYTES = 256 << 20
"""A result is some 100 kB: this is room for thousands of traces."""

STANDARD_INPUT = "-"

_WANTED = "--from takes what `analyze --format json` or jsonl wrote"
_HEAD_BYTES = 4096
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""First bytes of gzip and zstd."""

_KEYS = {"schema_version", "trace", "findings"}
"""What tells a result from other JSON, that of other commands too."""

_TUPLES = ("uncertain", "evidence", "known_problems", "references", "baseline_changes")


def read_results(path: str) -> list[TraceReport]:
    """Read stored results.

    Args:
        path: a file with one result, a list of them, or one a line; ``-`` is standard input.

    Raises:
        TraceError: it cannot be read, or is no result that this version knows.
    """
    name = STDIN_NAME if path == STANDARD_INPUT else path
    validator = _validator()
    stored = _stored(_content(path, name), name)
    reports = [_report(data, where, validator) for where, data in stored]
    if not reports:
        raise TraceError(f"{name}: holds no results; {_WANTED}")
    return reports


def _content(path: str, name: str) -> bytes:
    try:
        if path == STANDARD_INPUT:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TraceError(f"{name[:200]}: cannot be read: {reason}") from None
    if len(content) > MAX_BYTES:
        raise TraceError(f"{name}: is larger than {MAX_BYTES >> 20} MiB; {_WANTED}")
    return content


def _stored(content: bytes, name: str) -> Iterator[tuple[str, Any]]:
    """Yield what a file holds, each with words for where it is.

    Raises:
        TraceError: it is not JSON.
    """
    try:
        document = _decoded(content)
    except ValueError as error:
        yield from _lines(content, name, error)
        return
    if not isinstance(document, list):
        yield name, document
    elif len(document) == 1:
        yield name, document[0]
    else:
        yield from ((f"{name}: result {at}", data) for at, data in enumerate(document, 1))


def _lines(content: bytes, name: str, as_a_whole: ValueError) -> Iterator[tuple[str, Any]]:
    """Yield the values of JSON Lines; if the first line is none, the file is damaged JSON."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"{name}: line {number}", _decoded(line)
        except ValueError as error:
            if number == 1:
                raise TraceError(f"{name}: {_not_json(content, as_a_whole)}") from None
            raise TraceError(f"{name}: line {number}: {_damage(error)}") from None


def _decoded(text: bytes) -> Any:
    """Decode JSON that can also be written again.

    Raises:
        ValueError: it is not JSON, or nested too deeply for that.
    """
    data = orjson.loads(text)
    try:
        orjson.dumps(data)
    except TypeError:
        raise ValueError("nested too deeply") from None
    return data


def _not_json(content: bytes, error: ValueError) -> str:
    head = content[:_HEAD_BYTES]
    if head.startswith(_COMPRESSED):
        return f"is compressed; {_WANTED}, unpacked (of a trace, leave --from out)"
    if b'"traceEvents"' in head:
        return _IS_A_TRACE
    if head.lstrip()[:1] in (b"{", b"["):
        return _damage(error)
    return f"this is {other_kind(head) or 'not JSON'}; {_WANTED}"


def _damage(error: ValueError) -> str:
    return f"is damaged: {printable(str(error))}"


_IS_A_TRACE = f"this is a trace, not a result: leave --from out to analyze it; {_WANTED}"


def _report(data: Any, where: str, validator: "Validator") -> TraceReport:
    """Return one stored result.

    Raises:
        TraceError: it is none, or none that this version knows.
    """
    if _is_of_a_trace(data):
        raise TraceError(f"{where}: {_IS_A_TRACE}")
    if not isinstance(data, dict) or not data.keys() >= _KEYS:
        raise TraceError(f"{where}: is no result of a check; {_WANTED}")
    version = data["schema_version"]
    if version != SCHEMA_VERSION:
        raise TraceError(
            f"{where}: is a result of schema_version {printable(str(version))}, and this analyze"
            f" reads {SCHEMA_VERSION}; use the version that wrote it, or analyze the trace again"
        )
    data = completed(data)
    problem = next(iter(validator.iter_errors(data)), None)
    if problem is not None:
        raise TraceError(f"{where}: is damaged: {_words(problem)}")
    return _built(data)


def _is_of_a_trace(data: Any) -> bool:
    """Whether it is a trace, or an event of one that is a bare array."""
    return isinstance(data, dict) and ("traceEvents" in data or "ph" in data)


def _validator() -> "Validator":
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator(stored_schema())


def _words(problem: "ValidationError") -> str:
    """Say where and what; the value itself may be of any size."""
    key = printable(problem.json_path.removeprefix("$").removeprefix(".")) or "the result"
    wanted: Any = problem.validator_value
    match problem.validator:
        case "required":
            present: Any = problem.instance
            return f"{key} has no {next(name for name in wanted if name not in present)}"
        case "type":
            return f"{key} is no {_or(wanted)}"
        case "enum":
            return f"{key} is none of {_or(wanted)}"
        case _:
            return f"{key} is not as `analyze schema` documents it"


def _or(names: Any) -> str:
    words = [names] if isinstance(names, str) else ["null" if n is None else n for n in names]
    return " or ".join(words)


def _built(data: Data) -> TraceReport:
    return TraceReport(
        **_known(
            TraceReport,
            data,
            unit=UnitCount(**_known(UnitCount, data["unit"])),
            findings=tuple(map(_finding, data["findings"])),
            passed=_all(Checked, data["passed"]),
            not_applicable=_all(NotApplicable, data["not_applicable"]),
            errors=_all(RuleFailure, data["errors"]),
            ignored=_all(Ignored, data["ignored"]),
            uncaptured=_all(Uncaptured, data["uncaptured"]),
            unread=_all(Unread, data["unread"]),
            vanished=_all(Vanished, data["vanished"]),
        )
    )


def _finding(data: Data) -> Finding:
    return Finding(
        **_known(
            Finding,
            data,
            **{name: tuple(data[name]) for name in _TUPLES},
            places=_all(Place, data["places"]),
            folded=_all(Folded, data["folded"]),
        )
    )


def _all(kind: type, items: list[Data]) -> tuple[Any, ...]:
    return tuple(kind(**_known(kind, item)) for item in items)


def _known(kind: type, data: Data, **built: Any) -> Data:
    """Return the values of the attributes of ``kind``; keys of later versions are passed over."""
    return {field.name: built.get(field.name, data[field.name]) for field in fields(kind)}
