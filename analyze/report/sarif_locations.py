"""Where SARIF says that a finding is: a line of the user's source, else the trace itself.

Files below the root of the sources are named relative to it, which is what code scanning needs to
show a finding beside the code; any other file gets an absolute URI.
"""

import os
import re
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import quote

from analyze.report.json_writer import visible_surrogates
from analyze.report.sarif_text import message
from analyze.report.source_line import file_in, recorded_line

Data = dict[str, Any]

SOURCE_ROOT = "%SRCROOT%"
"""The name of the root of the sources that viewers know."""

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_LONGEST_FILE = 1000


def root_description() -> Data:
    """Return what ``originalUriBaseIds`` says of the root.

    Its path is left out: it is that of the machine which ran the analysis, and of no use elsewhere.
    """
    return {"description": message("The folder of the sources: the repository's root.")}


def artifact_location(path: str, root: Path, folder: Path) -> Data:
    """Return the location of a file.

    Args:
        path: absolute, or relative to ``folder``; as a trace or a command line has it.
        root: of the sources, absolute.
        folder: absolute.
    """
    path = visible_surrogates(path)
    is_windows = _DRIVE.match(path) is not None
    absolute = PureWindowsPath(path) if is_windows else Path(os.path.normpath(folder / path))
    if absolute.is_relative_to(root):
        return {"uri": quote(absolute.relative_to(root).as_posix()), "uriBaseId": SOURCE_ROOT}
    return {"uri": absolute.as_uri()}


def source_location(source: str | None, root: Path) -> Data | None:
    """Return the physical location of a source line; None where it is not known.

    Profilers name files relative to an entry of ``sys.path``: one that the sources at hand lack is
    of an installed package, and not known.

    Args:
        source: as recorded.
        root: of the sources, absolute.
    """
    recorded = recorded_line(source)
    if recorded is None or len(recorded.file) > _LONGEST_FILE:
        return None
    location = artifact_location(recorded.file, root, root)
    if "uriBaseId" in location:
        file = file_in(root, recorded.file)
        if file is None:
            return None
        location = artifact_location(file, root, root)
    return {
        "artifactLocation": location,
        "region": {"startLine": recorded.line},
    }


def trace_location(artifact: Data) -> Data:
    """Return the physical location of a finding that is in the trace and no line of source.

    Code scanning asks for a line; a trace has none that says anything.

    Args:
        artifact: location of the trace.
    """
    return {"artifactLocation": artifact, "region": {"startLine": 1}}
