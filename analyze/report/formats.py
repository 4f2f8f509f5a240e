"""The formats of a report of findings; each is one writer that renders the result alone."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from analyze.engine.result import TraceReport


class Rendering(NamedTuple):
    """How a report is to be rendered.

    Attributes:
        verbose: all evidence, and the rules that hold.
        color: use terminal colours.
    """

    verbose: bool = False
    color: bool = False


Writer = Callable[["Sequence[TraceReport]", Rendering], str]

_WRITERS = {
    "text": "analyze.report.text:write_text",
    "concise": "analyze.report.concise:write_concise",
    "html": "analyze.report.html_report.writer:write_html",
    "json": "analyze.report.json_writer:write_json",
    "jsonl": "analyze.report.jsonl:write_jsonl",
    "sarif": "analyze.report.sarif:write_sarif",
    "github": "analyze.report.github:write_github",
    "markdown": "analyze.report.markdown:write_markdown",
}
"""Where the writer of each format is; only the one in use is imported."""

FORMATS = tuple(_WRITERS)

SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".sarif.json": "sarif",
    ".sarif": "sarif",
    ".jsonl": "jsonl",
    ".json": "json",
    ".md": "markdown",
    ".txt": "text",
    ".log": "text",
}
"""What the name of an output file ends in, and the format that it asks for."""

WITH_VIEWS = frozenset({"html", "json", "jsonl"})
"""Formats that show, or keep for later, what ``TraceReport.views`` holds."""


def format_of(path: Path) -> str | None:
    """Return the format of an output file by its name, text where it has no suffix.

    None where the suffix is that of no format.
    """
    return format_of_suffix(path) or (None if path.suffix else "text")


def format_of_suffix(path: Path) -> str | None:
    """Return the format that the suffix of an output file asks for; None where it asks for none."""
    name = path.name.lower()
    return next((SUFFIXES[suffix] for suffix in SUFFIXES if name.endswith(suffix)), None)


def render(name: str, reports: "Sequence[TraceReport]", rendering: Rendering) -> str:
    """Return reports in a format.

    Args:
        name: one of :data:`FORMATS`.
        reports: at least one.
        rendering: how.
    """
    module, function = _WRITERS[name].split(":")
    writer: Writer = getattr(import_module(module), function)
    return writer(reports, rendering)
