"""Folders that ``capture`` wrote: traces in the order of capture.json, and what is missing."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from analyze.errors import TraceError

if TYPE_CHECKING:
    from analyze.engine.result import Uncaptured
    from analyze.trace.capture_json import CaptureEntry

CAPTURE_JSON = "capture.json"


def capture_folder(argument: str) -> Path | None:
    """Return the folder that an argument names, directly or by the capture.json in it."""
    path = Path(argument)
    try:
        if path.name == CAPTURE_JSON and path.is_file():
            return path.parent
        return path if path.is_dir() else None
    except OSError:  # no name of a file, such as one that is too long
        return None


@cache
def paths_below(folder: Path) -> tuple[Path, ...]:
    """Return all that lies in a folder and below it; a run walks it once."""
    return tuple(folder.rglob("*"))


def manifests_below(folder: Path) -> list[Path]:
    """Return the capture.json files in a folder and those below it."""
    return sorted(path for path in paths_below(folder) if path.name == CAPTURE_JSON)


def in_order_of_capture(traces: Sequence[Path]) -> list[Path]:
    """Sort traces by folder, and within one as its capture.json names them, then by name."""

    def place(trace: Path) -> tuple[Path, int, str]:
        named = [file for entry in _entries(trace.parent) for file in entry.files]
        position = named.index(trace.name) if trace.name in named else len(named)
        return trace.parent, position, trace.name

    return sorted(traces, key=place)


def problems(folder: Path) -> list[TraceError]:
    """Return what is wrong with the captures in a folder and those below it.

    A trace that capture.json names may be gone, or capture.json itself not be usable.
    """
    found = []
    for manifest in manifests_below(folder):
        try:
            _read(manifest)
        except TraceError as error:
            found.append(error)
            continue
        found += [
            TraceError(f"{manifest}: names the trace {file}, which is not there")
            for entry in _entries(manifest.parent)
            for file in entry.files
            if not (manifest.parent / file).is_file()
        ]
    return found


def captures_without_trace(arguments: Sequence[str]) -> "list[Uncaptured]":
    """Return what could not be captured, by the capture.json files of the folders named."""
    manifests = [
        manifest
        for folder in map(capture_folder, arguments)
        if folder is not None
        for manifest in manifests_below(folder)
    ]
    from analyze.engine.result import Uncaptured  # noqa: PLC0415

    return [
        Uncaptured(entry.name, entry.status, entry.reason)
        for manifest in dict.fromkeys(manifests)
        for entry in _entries(manifest.parent)
        if not entry.files
    ]


def _entries(folder: Path) -> "tuple[CaptureEntry, ...]":
    """Return the entries of the capture.json in a folder; none where it is missing or unusable."""
    manifest = folder / CAPTURE_JSON
    try:
        return _read(manifest) if manifest.is_file() else ()
    except TraceError:
        return ()


@cache
def _read(manifest: Path) -> "tuple[CaptureEntry, ...]":
    from analyze.trace.capture_json import read_capture_json  # noqa: PLC0415

    return read_capture_json(manifest)
