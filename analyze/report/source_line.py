"""The user's source line behind a finding, as a file of the project at hand where it is one."""

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_WORKSPACE = "GITHUB_WORKSPACE"
"""Variable that names the checkout in a run of GitHub Actions."""

_FILE_AND_LINE = re.compile(
    r"(?P<file>.+?)(?::(?P<line>\d{1,9})|\((?P<framed>\d{1,9})\): .*)", re.S
)
"""``file:line``, or a frame as the profiler writes it: ``file(line): function``."""

_PACKAGE_FOLDERS = ("", "src/")
"""What the name of a file in a package lacks, in a flat layout and in a ``src`` layout."""

_NO_FILE = ("<", "~")
"""What stands for a file where code has none (``<string>``), or in a home folder."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a file.

    Attributes:
        file: with slashes.
        line: counted from 1.
    """

    file: str
    line: int


def source_root() -> Path:
    """Return the folder of the sources: the workspace of GitHub Actions, else the current one."""
    return Path(os.environ.get(_WORKSPACE) or Path.cwd())


def recorded_line(source: str | None) -> SourceLine | None:
    """Return a line as it was recorded; None where there is none, or of no file.

    Args:
        source: :attr:`analyze.engine.result.Finding.source`; of what a trace says.
    """
    found = _FILE_AND_LINE.fullmatch(source or "")
    if found is None or found["file"].startswith(_NO_FILE) or "\0" in found["file"]:
        return None
    line = int(found["line"] or found["framed"])
    return SourceLine(found["file"].replace("\\", "/"), line) if line else None


def file_in(root: Path, file: str) -> str | None:
    """Return a recorded file as the project has it; None where the project lacks it.

    Profilers name the files of installed packages as they name those of the project, relative to an
    entry of ``sys.path``: only the sources tell them apart. Where these are not at hand, the file
    is taken as it was recorded.

    Args:
        root: of the project's sources.
        file: relative to ``root``, or to the folder of packages in it.
    """
    try:
        if not root.is_dir():
            return file
        places = (f"{folder}{file}" for folder in _PACKAGE_FOLDERS)
        return next((place for place in places if (root / place).is_file()), None)
    except (OSError, ValueError):  # no name of a file
        return None


def source_line(source: str | None, root: Path) -> SourceLine | None:
    """Return the line a finding is about as one of the project; None where it is elsewhere.

    Args:
        source: :attr:`analyze.engine.result.Finding.source`; of what a trace says.
        root: of the project's sources, absolute; a file below it becomes relative to it.
    """
    recorded = recorded_line(source)
    file = _inside(recorded.file, root) if recorded else None
    return SourceLine(file, recorded.line) if recorded and file else None


def _inside(file: str, root: Path) -> str | None:
    """Return a path relative to the root of the sources; None where it leads elsewhere."""
    if re.match(r"[A-Za-z]:", file):
        return None
    path = PurePosixPath(os.path.normpath(file))
    if path.is_absolute():
        if not path.is_relative_to(root):
            return None
        path = path.relative_to(root)
    return None if path.parts[:1] in ((), ("..",)) else str(path)
