"""Read a YAML file as plain data, with the line and column of every value and key.

YAML 1.2 without its traps: duplicate keys, keys that are not text, tags and merge keys are
problems, and aliases cannot grow the document beyond a budget.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from analyze.engine.problems import InvalidRulesError, Location, Problem

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 40

Key = str | int
KeyPath = tuple[Key, ...]

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = ("str", "timestamp", "value")
_MAX_DIGITS = 400
_TRUE = ("true", "True", "TRUE")


@dataclass
class Document:
    """A YAML file as plain data with positions.

    Attributes:
        file: path as it is shown.
        data: dicts, lists, text, numbers, booleans and null.
    """

    file: str
    data: Any = None
    lines: list[str] = field(default_factory=list)
    values: dict[KeyPath, Node] = field(default_factory=dict)
    keys: dict[KeyPath, Node] = field(default_factory=dict)

    def locate(self, path: KeyPath, *, key: bool = False) -> Location:
        """Return the position of a value, or of its key; of the nearest one above if there is none.

        Args:
            path: keys and indexes from the top of the document.
            key: point at the key instead of the value.
        """
        for length in range(len(path), -1, -1):
            nodes = self.keys if key and length == len(path) else self.values
            node = nodes.get(path[:length])
            if node is not None:
                return self._location(node)
        return Location(self.file)

    def locate_in(self, path: KeyPath, offset: int, length: int) -> Location:
        """Return the position of some characters inside a text value."""
        whole = self.locate(path)
        node = self.values.get(path)
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            return whole
        quote = 1 if node.style in ("'", '"') else 0
        start = whole.column - 1 + quote
        if whole.source[start : start + len(node.value)] != node.value:
            return whole
        column = min(whole.column + quote + offset, len(whole.source) + 1)
        return Location(self.file, whole.line, column, length, whole.source)

    def _location(self, node: Node) -> Location:
        start, end = node.start_mark, node.end_mark
        source = self.lines[start.line] if start.line < len(self.lines) else ""
        if isinstance(node, ScalarNode) and end.line == start.line:
            length = end.column - start.column
        else:
            length = 1
        return Location(self.file, start.line + 1, start.column + 1, length, source)


def read_yaml(path: Path, *, without: str | None = None) -> Document:
    """Read a YAML file.

    Args:
        path: the file.
        without: a top-level key whose value is passed over unread, to save the time.

    Raises:
        InvalidRulesError: the file cannot be read, is too large, or is not acceptable YAML.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidRulesError([Problem(Location(file), f"cannot be read: {reason}")]) from None
    if len(content) > MAX_BYTES:
        raise InvalidRulesError([Problem(Location(file), "larger than 1 MB")])
    try:
        text = content.decode("utf-8-sig")
        return parse_yaml(_blank_out(text, without) if without else text, file)
    except UnicodeDecodeError:
        raise InvalidRulesError([Problem(Location(file), "is not UTF-8 text")]) from None


def _blank_out(text: str, key: str) -> str:
    """Empty the lines of a top-level key and its value; all others keep their numbers.

    Whatever belongs to the value is indented, or an item of a list that starts in column one.
    """
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line[:1] not in (" ", "\t", "-", "#", "\r", "\n"):
            inside = line.startswith(f"{key}:")
        kept.append("\n" if inside else line)
    return "".join(kept)


def parse_yaml(text: str, file: str) -> Document:
    """Parse YAML text; ``file`` is the name that problems show.

    Raises:
        InvalidRulesError: the text is not acceptable YAML.
    """
    document = Document(file, lines=text.splitlines())
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except RecursionError:
        raise InvalidRulesError([Problem(Location(file), "nested too deeply")]) from None
    except MarkedYAMLError as error:
        raise InvalidRulesError([_syntax_problem(document, error)]) from None
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        message = "not YAML: " + (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidRulesError([Problem(Location(file), message)]) from None
    if node is not None:
        reader = _Reader(document)
        document.data = reader.read(node, ())
        if reader.problems:
            raise InvalidRulesError(reader.problems)
    return document


def _syntax_problem(document: Document, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = f"YAML: {error.problem or error.context or 'invalid'}"
    if mark is None:
        return Problem(Location(document.file), message)
    source = document.lines[mark.line] if mark.line < len(document.lines) else ""
    help_text = None
    if "mapping values are not allowed" in message or "expected ',' or" in message:
        help_text = "quote the text if it holds ': ', ', ' inside {...}, or brackets"
    return Problem(
        Location(document.file, mark.line + 1, mark.column + 1, 1, source), message, help_text
    )


class _TooLargeError(Exception):
    """The document exceeds the node budget or the depth limit."""


class _Reader:
    """One conversion of a node graph to plain data."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._budget = MAX_NODES
        self.problems: list[Problem] = []

    def read(self, node: Node, path: KeyPath) -> Any:
        try:
            return self._value(node, path)
        except _TooLargeError as error:
            where = self._document.locate(())
            self.problems = [Problem(where, str(error))]
            return None

    def _value(self, node: Node, path: KeyPath) -> Any:
        self._budget -= 1
        if self._budget < 0:
            message = f"more than {MAX_NODES} values after its aliases are expanded"
            raise _TooLargeError(message)
        if len(path) > MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} levels deep"
            raise _TooLargeError(message)
        self._document.values[path] = node
        if isinstance(node, MappingNode):
            return {key: self._value(item, (*path, key)) for key, item in self._items(node, path)}
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _items(self, node: MappingNode, path: KeyPath) -> Iterator[tuple[str, Node]]:
        seen: dict[str, Node] = {}
        for key_node, value in node.value:
            key = self._key(key_node)
            if key is None:
                continue
            if key in seen:
                line = seen[key].start_mark.line + 1
                self._add(key_node, f"duplicate key '{key}', first used in line {line}")
                continue
            seen[key] = key_node
            self._document.keys[(*path, key)] = key_node
            yield key, value

    def _key(self, node: Node) -> str | None:
        tag = _short_tag(node)
        if isinstance(node, ScalarNode) and tag in _TEXT_TAGS:
            return str(node.value)
        if tag == "merge":
            self._add(node, "merge keys ('<<') are not supported", "write the keys out")
        else:
            self._add(node, "a key must be text", "put it in quotes")
        return None

    def _scalar(self, node: Node) -> Any:
        tag, text = _short_tag(node), str(node.value)
        try:
            match tag:
                case "null":
                    return None
                case "bool":
                    return text in _TRUE
                case "int":
                    return _integer(text)
                case "float":
                    return float(
                        text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan")
                    )
        except ValueError:
            self._add(node, f"'{text[:40]}' is not a number this program can use")
            return None
        if tag not in _TEXT_TAGS:
            self._add(node, "YAML tags are not supported")
        return text

    def _add(self, node: Node, message: str, help_text: str | None = None) -> None:
        self.problems.append(Problem(self._document._location(node), message, help_text))


def _short_tag(node: Node) -> str:
    return str(node.tag).removeprefix(_TAG)


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        raise ValueError(text)
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    for prefix, base in (("0x", 16), ("0o", 8), ("0b", 2)):
        if digits.lower().startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits)
