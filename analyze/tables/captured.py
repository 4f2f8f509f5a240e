"""What ``capture`` noted about a trace: in the trace's own metadata, and in capture.json beside it.

The metadata says what was captured; capture.json adds what was measured with the profiler off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyze.errors import TraceError
from analyze.tables.noted import amount, flag, integer, mapping, nanoseconds, text
from analyze.tables.same_capture import contradiction
from analyze.trace.capture_json import FILE_NAME, CaptureEntry, read_capture_json

METADATA_KEY = "kinetolint_capture"

SHAPE_COLUMNS = ("batch", "heads", "kv_heads", "seq", "seq_kv", "head_dim")


@dataclass(frozen=True)
class Captured:
    """The notes on one trace; what they do not say is null.

    Attributes:
        name: the variant, or the user's own function.
        variant: the attention variant, if it is one.
        annotation: the region around one call.
        torch_version: of the torch that recorded it.
        phase: ``forward``, ``backward`` or ``step``.
        dtype: of the inputs.
        causal: whether a query sees no later key.
        shape: batch, heads, kv_heads, seq, seq_kv and head_dim, those that are known.
        status: how the capture went: ``captured``, ``incomplete``, ``wrong`` or ``failed``.
        reason: why it is not ``captured``.
        latency_ns: median time of one call with the profiler off.
        latency_p10_ns, latency_p90_ns: what a tenth and nine tenths of the calls stayed below.
        peak_bytes: the most memory that was allocated during one call.
        numerics_ok: whether the results agreed with the reference.
    """

    name: str | None
    variant: str | None
    annotation: str | None
    torch_version: str | None
    phase: str | None
    dtype: str | None
    causal: bool | None
    shape: Mapping[str, int]
    status: str | None = None
    reason: str | None = None
    latency_ns: int | None = None
    latency_p10_ns: int | None = None
    latency_p90_ns: int | None = None
    peak_bytes: int | None = None
    numerics_ok: bool | None = None

    @property
    def row(self) -> dict[str, object]:
        """The columns of the ``trace`` table that come from these notes."""
        return {
            "variant": self.variant,
            "phase": self.phase,
            "torch_version": self.torch_version,
            **{name: self.shape.get(name) for name in SHAPE_COLUMNS},
            "causal": self.causal,
            "capture_status": self.status,
            "capture_reason": self.reason,
            "latency_ns": self.latency_ns,
            "peak_bytes": self.peak_bytes,
            "numerics_ok": self.numerics_ok,
        }


def read_captured(metadata: Mapping[str, Any], path: Path | None) -> tuple[Captured, str | None]:
    """Return the notes on a trace, and why its capture.json could not be used, if it could not.

    Args:
        metadata: the trace's top-level keys.
        path: where the trace lies; None for standard input.
    """
    entry, problem = _entry_of(metadata, path)
    noted = mapping(metadata.get(METADATA_KEY)) or (entry.data if entry else {})
    workload = mapping(noted.get("workload"))
    measured = entry.data if entry else {}
    latency = mapping(measured.get("latency"))
    annotations = noted.get("annotations")
    environment = mapping(noted.get("environment"))
    variant = noted.get("name") if noted.get("kind") == "variant" else metadata.get("variant")
    captured = Captured(
        name=text(noted.get("name")),
        variant=text(variant),
        annotation=text(annotations[0]) if isinstance(annotations, list) and annotations else None,
        torch_version=text(environment.get("torch")),
        phase=text(workload.get("phase")),
        dtype=text(workload.get("dtype")),
        causal=flag(workload.get("causal")),
        shape={
            name: number
            for name in SHAPE_COLUMNS
            if (number := integer(workload.get(name))) is not None
        },
        status=entry.status if entry else None,
        reason=entry.reason if entry else None,
        latency_ns=amount(nanoseconds(latency.get("median_us"))),
        latency_p10_ns=amount(nanoseconds(latency.get("p10_us"))),
        latency_p90_ns=amount(nanoseconds(latency.get("p90_us"))),
        peak_bytes=amount(integer(mapping(measured.get("memory")).get("peak_bytes"))),
        numerics_ok=flag(mapping(measured.get("numerics")).get("ok")),
    )
    return captured, problem


def _entry_of(
    metadata: Mapping[str, Any], path: Path | None
) -> tuple[CaptureEntry | None, str | None]:
    """Return what the capture.json in the trace's folder says of the trace, and not of another."""
    entry, problem = _entry_beside(path)
    if entry is None:
        return None, problem
    difference = contradiction(mapping(metadata.get(METADATA_KEY)), metadata, entry)
    if difference is None:
        return entry, None
    return None, (
        f"not used: {FILE_NAME} is of another trace ({difference}); put this one beside the"
        f" {FILE_NAME} of its own capture"
    )


def _entry_beside(path: Path | None) -> tuple[CaptureEntry | None, str | None]:
    """Return what the capture.json in the trace's folder says of a trace of this name."""
    if path is None or not (beside := path.parent / FILE_NAME).is_file():
        return None, None
    try:
        entries = read_capture_json(beside)
    except TraceError as error:
        return None, f"what was measured beside it is not known: {error}"
    return next((entry for entry in entries if path.name in entry.files), None), None
