"""capture.json: what was run, on what, with which result.

The format is versioned; ``manifest.schema.json`` beside this file is its JSON Schema.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from capture.devices import Device
from capture.environment import environment, now
from capture.errors import CaptureError
from capture.files import write_text
from capture.measurement import Latency, Memory
from capture.numerics import Numerics
from capture.options import Protocol
from capture.profiling import RecordedTrace
from capture.trial import Refused

SCHEMA_VERSION = 1
FILE_NAME = "capture.json"
_TRACE_NAME = re.compile(r"[\w.+-]+\.json\.gz")

Status = Literal["captured", "incomplete", "wrong", "skipped", "failed"]
"""``captured``; ``incomplete``: a trace has lost something; ``wrong``: the numerics are;
``skipped``: cannot run here; ``failed``: raised an error."""


@dataclass
class Capture:
    """One thing that was, or was to be, captured.

    Attributes:
        name: the variant, or the name of the user's own function.
        kind: ``variant`` or ``function``.
        workload: shapes, dtype, phase, ...; null for a function of the user's own.
        annotations: those that every recorded step holds, most inclusive first.
        refused: why it did not run, or stopped.
        traces, latency, memory, numerics: what came out, as far as it came.
    """

    name: str
    kind: Literal["variant", "function"]
    workload: Mapping[str, object] | None
    annotations: tuple[str, ...]
    refused: Refused | None = None
    traces: list[RecordedTrace] = field(default_factory=list)
    latency: Latency | None = None
    memory: Memory | None = None
    numerics: Numerics | None = None

    @property
    def status(self) -> Status:
        """How it went."""
        if self.refused is not None:
            return self.refused.status
        if self.numerics is not None and not self.numerics.ok:
            return "wrong"
        return "incomplete" if self.problems else "captured"

    @property
    def problems(self) -> list[str]:
        """What the traces lack."""
        return [problem for trace in self.traces for problem in trace.verification.problems]

    @property
    def reason(self) -> str | None:
        """Why the status is not ``captured``, in one line."""
        if self.refused is not None:
            return self.refused.reason
        if self.numerics is not None and not self.numerics.ok:
            return self.numerics.reason
        return "; ".join(self.problems) or None

    def as_json(self) -> dict[str, object]:
        """Return the entry of ``captures`` in capture.json."""
        return {
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "reason": self.reason,
            "workload": self.workload,
            "annotations": list(self.annotations),
            "traces": [trace.as_json() for trace in self.traces],
            "latency": self.latency and self.latency.as_json(),
            "memory": self.memory and self.memory.as_json(),
            "numerics": self.numerics and self.numerics.as_json(),
        }


@dataclass
class Manifest:
    """The content of one capture.json, which is written anew after every capture.

    Attributes:
        folder: where it and the traces lie.
        device: that everything ran on.
        protocol: how the traces were recorded.
        captures: one for each variant and workload, in the order in which they ran.
        created: when it began.
        environment: what it ran on.
    """

    folder: Path
    device: Device
    protocol: Protocol
    captures: list[Capture] = field(default_factory=list)
    created: str = field(default_factory=now)
    environment: dict[str, object] = field(init=False)

    def __post_init__(self) -> None:
        """Look at the machine before a variant may change torch's settings."""
        self.environment = environment(self.device)

    def add(self, capture: Capture) -> None:
        """Append a capture and write the file.

        Raises:
            CaptureError: the file cannot be written.
        """
        self.captures.append(capture)
        self.write()

    def write(self) -> None:
        """Write the file, whole or not at all.

        Raises:
            CaptureError: it cannot be written.
        """
        text = json.dumps(self.as_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(self.folder / FILE_NAME, f"{text}\n")

    def as_json(self) -> dict[str, object]:
        """Return the content of capture.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "created": self.created,
            "environment": self.environment,
            "protocol": self.protocol.as_json(),
            "captures": [capture.as_json() for capture in self.captures],
        }


def trace_metadata(capture: Capture, manifest: Manifest) -> dict[str, object]:
    """Return what a trace must know of itself, should it part from its capture.json."""
    kept = ("kinetolint", "torch", "cuda", "hip", "cudnn", "driver", "device")
    return {
        "schema_version": SCHEMA_VERSION,
        "name": capture.name,
        "kind": capture.kind,
        "variant": capture.name if capture.kind == "variant" else None,
        "workload": capture.workload,
        "annotations": capture.annotations,
        "protocol": manifest.protocol.as_json(),
        "environment": {key: manifest.environment[key] for key in kept},
        "created": now(),
    }


def prepare_folder(folder: Path, *, overwrite: bool) -> None:
    """Make sure that a folder holds no earlier capture.

    Args:
        folder: exists.
        overwrite: remove an earlier capture.json and the traces that it names.

    Raises:
        CaptureError: there is an earlier capture, or it cannot be removed.
    """
    manifest = folder / FILE_NAME
    if not manifest.exists():
        return
    if not overwrite:
        raise CaptureError(
            f"{manifest}: an earlier capture is there; choose another folder, or overwrite it"
            " (--overwrite, record(..., overwrite=True))"
        )
    try:
        for name in _traces_named_in(manifest):
            (folder / name).unlink(missing_ok=True)
        manifest.unlink()
    except OSError as error:
        raise CaptureError(f"{manifest}: cannot be replaced: {error.strerror}") from None


def _traces_named_in(manifest: Path) -> list[str]:
    try:
        content = json.loads(manifest.read_text("utf-8"))
        files = [t["file"] for capture in content["captures"] for t in capture["traces"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CaptureError(f"{manifest}: is no capture.json of ours; remove it yourself") from None
    return [file for file in files if isinstance(file, str) and _TRACE_NAME.fullmatch(file)]
