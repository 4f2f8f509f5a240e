"""A YAML file as plain data, with the line and column of every value and key."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from analyze.engine.problems import Location, Problem

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node, ScalarNode

Key = str | int
KeyPath = tuple[Key, ...]


@dataclass
class Document:
    """A YAML file as plain data with positions.

    Attributes:
        file: path as it is shown.
        data: dicts, lists, text, numbers, booleans and null.
        problems: what is wrong with single values; the rest of the data is usable.
        grafts: the values that come from another place, with that place.
        as_built: the data is what this package was built with; it has no positions.
    """

    file: str
    data: Any = None
    lines: list[str] = field(default_factory=list)
    values: dict[KeyPath, "Node"] = field(default_factory=dict)
    keys: dict[KeyPath, "Node"] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    grafts: Mapping[KeyPath, "Place"] = field(default_factory=dict)
    as_built: bool = False

    def with_data(self, data: Any, grafts: Mapping[KeyPath, "Place"]) -> "Document":
        """Return the document with changed data.

        Args:
            data: the new data.
            grafts: where the values came from that this file does not hold at the same path.
        """
        return dataclasses.replace(self, data=data, grafts={**self.grafts, **grafts})

    def origin(self, path: KeyPath) -> "Place":
        """Return the place a value was written at."""
        for length in range(len(path), 0, -1):
            graft = self.grafts.get(path[:length])
            if graft is not None:
                return graft.document.origin((*graft.path, *path[length:]))
        return Place(self.unchanged, path)

    @property
    def unchanged(self) -> "Document":
        """The file as written."""
        return dataclasses.replace(self, grafts={}) if self.grafts else self

    def locate(self, path: KeyPath, *, key: bool = False) -> Location:
        """Return the position of a value, or of its key; of the nearest one above if there is none.

        Args:
            path: keys and indexes from the top of the document.
            key: point at the key instead of the value.
        """
        if self.grafts:
            place = self.origin(path)
            return place.document.locate(place.path, key=key)
        for length in range(len(path), -1, -1):
            nodes = self.keys if key and length == len(path) else self.values
            node = nodes.get(path[:length])
            if node is not None:
                return self.location_of(node)
        return Location(self.file)

    def locate_in(self, path: KeyPath, offset: int, length: int) -> Location:
        """Return the position of some characters inside a text value."""
        if self.grafts:
            place = self.origin(path)
            return place.document.locate_in(place.path, offset, length)
        whole = self.locate(path)
        node = self.values.get(path)
        if not _is_scalar(node) or not isinstance(node.value, str):
            return whole
        quote = 1 if node.style in ("'", '"') else 0
        start = whole.column - 1 + quote
        if whole.source[start : start + len(node.value)] != node.value:
            return whole
        column = min(whole.column + quote + offset, len(whole.source) + 1)
        return Location(self.file, whole.line, column, length, whole.source)

    def location_of(self, node: "Node") -> Location:
        """Return the position of a node of this document."""
        start, end = node.start_mark, node.end_mark
        source = self.lines[start.line] if start.line < len(self.lines) else ""
        is_in_line = _is_scalar(node) and end.line == start.line
        length = end.column - start.column if is_in_line else 1
        return Location(self.file, start.line + 1, start.column + 1, length, source)


def _is_scalar(node: "Node | None") -> "TypeGuard[ScalarNode]":
    from ruamel.yaml.nodes import ScalarNode  # noqa: PLC0415 - there are nodes, so it is there

    return isinstance(node, ScalarNode)


class Place(NamedTuple):
    """A value in a document."""

    document: Document
    path: KeyPath
