"""capture.json: what the ``capture`` command noted beside the traces it wrote.

Its format is described by ``capture schema``. Nothing in it is trusted: it is read within bounds,
and what is not as documented makes the file unusable, in one line.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from analyze.errors import TraceError

FILE_NAME = "capture.json"
SCHEMA_VERSION = 1
MAX_BYTES = 64 << 20


class CaptureEntry(NamedTuple):
    """One thing that was, or was to be, captured.

    Attributes:
        name: the variant, or the user's own function.
        status: ``captured``, ``incomplete``, ``wrong``, ``skipped`` or ``failed``.
        reason: why it is not ``captured``.
        files: its traces, names in the same folder.
        data: everything that capture.json says of it.
        run: what it says of all that was captured with it: ``created``, ``environment``, ...
    """

    name: str
    status: str
    reason: str | None
    files: tuple[str, ...]
    data: Mapping[str, Any]
    run: Mapping[str, Any]


def read_capture_json(path: Path) -> tuple[CaptureEntry, ...]:
    """Read a capture.json.

    Raises:
        TraceError: it cannot be read, or is not as documented.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TraceError(f"{path}: is too large for a capture.json ({MAX_BYTES >> 20} MiB)")
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise TraceError(f"{path}: is not JSON: {error}") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise TraceError(
            f"{path}: is no capture.json of schema_version {SCHEMA_VERSION}, as capture writes it"
        )
    try:
        run = {key: value for key, value in content.items() if key != "captures"}
        return tuple(_entry(entry, run) for entry in content["captures"])
    except (KeyError, TypeError, ValueError):
        raise TraceError(f"{path}: its captures are not as capture writes them") from None


def _entry(entry: Mapping[str, Any], run: Mapping[str, Any]) -> CaptureEntry:
    files = tuple(_file_name(trace["file"]) for trace in entry["traces"])
    reason = entry["reason"]
    texts = (entry["name"], entry["status"], *(() if reason is None else (reason,)))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError
    return CaptureEntry(entry["name"], entry["status"], reason, files, entry, run)


def _file_name(name: str) -> str:
    """Return the name if it is one; a path could lead out of the folder."""
    if name != Path(name).name:
        raise ValueError(name)
    return name
