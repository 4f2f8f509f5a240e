"""Read a YAML file as plain data, with the line and column of every value and key.

YAML 1.2 without its traps: duplicate keys, keys that are not text, tags and merge keys are
problems, and aliases cannot grow the document beyond a budget.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from analyze.engine.document import Document, KeyPath
from analyze.engine.problems import InvalidRulesError, Location, Problem

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 40

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = ("str", "timestamp", "value")
_MAX_DIGITS = 400
_TRUE = ("true", "True", "TRUE")


def read_yaml(path: Path, *, without: str | None = None) -> Document:
    """Read a YAML file.

    Args:
        path: the file.
        without: a top-level key whose value is passed over unread, to save the time.

    Raises:
        InvalidRulesError: the file cannot be read, is too large, or is not acceptable YAML.
    """
    file = str(path)
    if path.exists() and not path.is_file():
        raise InvalidRulesError([Problem(Location(file), "is not a regular file")])
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
    except UnicodeDecodeError:
        raise InvalidRulesError([Problem(Location(file), "is not UTF-8 text")]) from None
    if without:
        try:
            return parse_yaml(_blank_out(text, without), file)
        except InvalidRulesError:
            pass  # what is passed over may hold an anchor that the rest uses
    return parse_yaml(text, file)


def _blank_out(text: str, key: str) -> str:
    """Empty the lines of a top-level key and its value; all others keep their numbers.

    Whatever belongs to the value is indented, or an item of a list that starts in column one.
    """
    kept, inside = [], False
    for line in text.split("\n"):
        if line[:1] not in ("", " ", "\t", "-", "#", "\r"):
            inside = line.startswith(f"{key}:")
        kept.append("" if inside else line)
    return "\n".join(kept)


def parse_yaml(text: str, file: str) -> Document:
    """Parse YAML text; ``file`` is the name that problems show.

    Returns:
        The document; its ``problems`` are values that cannot be used, which are null in its data.

    Raises:
        InvalidRulesError: the text is not acceptable YAML.
    """
    document = Document(file, lines=text.splitlines())
    try:
        node = _compose(text)
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
        document.problems = reader.problems
    return document


def _syntax_problem(document: Document, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = f"YAML: {error.problem or error.context or 'invalid'}"
    if mark is None:
        return Problem(Location(document.file), message)
    source = document.lines[mark.line] if mark.line < len(document.lines) else ""
    help_text = next((text for part, text in _SYNTAX_HELP if part in message), None)
    return Problem(
        Location(document.file, mark.line + 1, mark.column + 1, 1, source), message, help_text
    )


_HARMLESS_DEPTH = 2_000
"""libyaml's composer runs out of stack at some ten thousand levels."""


def _compose(text: str) -> Node | None:
    """Return the nodes of a YAML text.

    libyaml reads it six times faster, but only most of YAML 1.2 (no ``::`` inside brackets, say);
    what it refuses is read, or refused with a better message, in Python.
    """
    if text.isascii():
        try:
            # libyaml's composer recurses without a limit; its parser does not.
            if _is_shallow(text):
                fast: Node | None = YAML(typ="safe").compose(text)
                return fast
        except (YAMLError, ValueError, TypeError, AttributeError, LookupError):
            pass
    exact: Node | None = YAML(typ="safe", pure=True).compose(text)
    return exact


def _is_shallow(text: str) -> bool:
    # A block starts right of the one around it, or is a list under its key; the rest is brackets.
    longest_line = max(map(len, text.split("\n")))
    if 2 * longest_line + text.count("[") + text.count("{") < _HARMLESS_DEPTH:
        return True
    depth = 0
    for event in YAML(typ="safe").parse(text):
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            return False
    return True


_SYNTAX_HELP = (
    (
        "mapping values are not allowed",
        "quote a text that holds ': '; indent keys of one mapping alike; give every key its colon",
    ),
    ("expected ',' or", "quote the text if it holds ', ' inside {...}, or brackets"),
    ("could not find expected ':'", "a key is followed by a colon and a space"),
    ("'\\t' that cannot start any token", "indent with spaces, not with tabs"),
    ("that cannot start any token", "quote a text that starts with this character"),
    ("found another document", "one file holds one rule; remove the '---' line"),
    ("expected <block end>", "indent the keys of one mapping, and the items of a list, alike"),
    ("undefined alias", "quote a text that starts with '*'"),
)
"""What to do, by a part of the parser's message."""


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
            raise InvalidRulesError([Problem(where, str(error))]) from None

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
        self.problems.append(Problem(self._document.location_of(node), message, help_text))


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
