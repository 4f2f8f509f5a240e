"""The table that people read in the end: what came out of a capture."""

from collections.abc import Callable, Sequence

from capture.manifest import Capture
from capture.table import aligned
from capture.words import duration, size

NOTHING = "-"
NUMBERS = ("seq", "latency", "TFLOP/s", "peak memory")


def overview(captures: Sequence[Capture]) -> str:
    """Return a table of captures, and below it why some are not as they should be."""
    columns: dict[str, Callable[[Capture], str]] = {
        "variant": lambda capture: capture.name,
        "seq": _seq,
        "status": lambda capture: capture.status,
        "latency": _latency,
        "TFLOP/s": _throughput,
        "peak memory": _memory,
        "numerics": _numerics,
        "trace": lambda capture: ", ".join(trace.file for trace in capture.traces) or NOTHING,
    }
    if len({_seq(capture) for capture in captures}) == 1:
        del columns["seq"]
    rows = [[cell(capture) for cell in columns.values()] for capture in captures]
    table = aligned(list(columns), rows, right=NUMBERS)
    notes = [f"{capture.name}: {note}" for capture in captures for note in _notes(capture)]
    return table + "".join(f"  {note}\n" for note in dict.fromkeys(notes))


def _seq(capture: Capture) -> str:
    return str(capture.workload["seq"]) if capture.workload else NOTHING


def _memory(capture: Capture) -> str:
    return size(capture.memory.peak_bytes) if capture.memory else NOTHING


def _latency(capture: Capture) -> str:
    return duration(capture.latency.median_us) if capture.latency else NOTHING


def _throughput(capture: Capture) -> str:
    latency = capture.latency
    return f"{latency.tflops:.3g}" if latency and latency.tflops is not None else NOTHING


def _numerics(capture: Capture) -> str:
    numerics = capture.numerics
    if numerics is None:
        return NOTHING
    worst = "NaN" if numerics.worst is None else f"{numerics.worst:.1e}"
    return f"{'ok' if numerics.ok else 'WRONG'} {worst}"


def _notes(capture: Capture) -> list[str]:
    notes = [capture.reason] if capture.reason else []
    if capture.numerics is not None and capture.numerics.fully_masked_rows == "nan":
        notes.append("writes NaN for a query whose every key is masked")
    return notes
