"""Folders that ``capture`` wrote: traces in the order of capture.json, and what is missing."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


class Below(NamedTuple):
    """What lies in a folder and below it.

    Attributes:
        files: all that are not folders.
        unread: the folders that could not be read, and why.
    """

    files: tuple[Path, ...]
    unread: tuple[tuple[str, str], ...]


@cache
def below(folder: Path) -> Below:
    """Return what lies in a folder and below it, but for hidden folders; a run walks it once.

    Links to folders are followed where they lead out of it, and no folder is read twice.
    """
    files: list[Path] = []
    errors: list[OSError] = []
    pending, seen = [folder], _with_parents(folder)
    while pending:
        for top, folders, names in os.walk(pending.pop(0), onerror=errors.append):
            real = os.path.realpath(top)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            pending += [path for name in folders if (path := Path(top, name)).is_symlink()]
            files += [Path(top, name) for name in names]
    unread = tuple((str(error.filename), error.strerror or str(error)) for error in errors)
    return Below(tuple(files), unread)


def _with_parents(folder: Path) -> set[str]:
    """Return the folders that a folder lies in: a link to one of them would lead back to it."""
    return {str(parent) for parent in Path(os.path.realpath(folder)).parents}


def manifests_below(folder: Path) -> list[Path]:
    """Return the capture.json files in a folder and those below it."""
    return sorted(path for path in below(folder).files if path.name == CAPTURE_JSON)


def in_order_of_capture(traces: Sequence[Path]) -> list[Path]:
    """Sort traces by folder, and within one as its capture.json names them, then by name."""

    def place(trace: Path) -> tuple[Path, int, str]:
        named = [file for entry in _entries(trace.parent) for file in entry.files]
        position = named.index(trace.name) if trace.name in named else len(named)
        return trace.parent, position, trace.name

    return sorted(traces, key=place)


def problems(folder: Path) -> list[TraceError]:
    """Return what is wrong with the captures in a folder and those below it.

    A trace that capture.json names may be gone, capture.json itself not be usable, or a folder
    not be readable.
    """
    found = [
        TraceError(f"{path}: the folder cannot be read: {why}; traces in it are missing here")
        for path, why in below(folder).unread
    ]
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
            if not _is_file(manifest.parent / file)
        ]
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no name of a file, such as one that is too long
        return False


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
