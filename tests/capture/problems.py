"""Small attention problems, and reading what was recorded of them."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture.workload import Workload

Event = dict[str, Any]

SMALL: dict[str, Any] = {
    "batch": 1,
    "heads": 2,
    "seq": 16,
    "head_dim": 8,
    "dtype": "fp32",
    "causal": True,
    "layout": "bhsd",
    "phase": "forward",
    "compile": False,
    "seed": 0,
    "device": "cpu",
}


def problem(**changes: Any) -> Workload:
    """Make a small workload; kv_heads and seq_kv follow heads and seq unless they are given."""
    fields = SMALL | changes
    own = {"kv_heads": fields["heads"], "seq_kv": fields["seq"]}
    return Workload(**(own | fields))


def read_trace(path: Path) -> dict[str, Any]:
    """Decode a compressed trace."""
    trace: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return trace


def read_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "capture.json").read_text("utf-8"))
    return manifest


def file_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@dataclass(frozen=True)
class Node:
    """A host event and what happened while it was open."""

    name: str
    dims: list[Any]
    children: list["Node"]

    def names(self) -> list[str]:
        """Names of everything below."""
        return [name for child in self.children for name in (child.name, *child.names())]

    def has_path(self, *names: str) -> bool:
        """Tell whether these names are nested directly in each other somewhere below."""
        return any(
            (child.name == names[0] and (len(names) == 1 or child._starts(*names[1:])))
            or child.has_path(*names)
            for child in self.children
        )

    def _starts(self, *names: str) -> bool:
        return any(
            child.name == names[0] and (len(names) == 1 or child._starts(*names[1:]))
            for child in self.children
        )


def annotated(trace: dict[str, Any], annotation: str) -> list[Node]:
    """Return the trees, by containment in time, of every annotation of a name."""
    kept = ("cpu_op", "user_annotation")
    events = [event for event in trace["traceEvents"] if event.get("cat") in kept]
    events.sort(key=lambda event: (_start(event), -_end(event), event["args"]["Ev Idx"]))
    found: list[Node] = []
    stack: list[tuple[Node, int]] = []
    for event in events:
        while stack and stack[-1][1] <= _start(event):
            stack.pop()
        node = Node(event["name"], event["args"].get("Input Dims", []), [])
        if stack:
            stack[-1][0].children.append(node)
        stack.append((node, _end(event)))
        if node.name == annotation:
            found.append(node)
    return found


def _start(event: Event) -> int:
    return round(float(event["ts"]) * 1000)


def _end(event: Event) -> int:
    return _start(event) + round(float(event["dur"]) * 1000)
