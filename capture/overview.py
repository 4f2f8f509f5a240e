"""The table that people read in the end: what came out of a capture."""

from collections.abc import Callable, Sequence

from capture.manifest import Capture
from capture.table import aligned
from capture.words import duration, size

NOTHING = "-"
NUMBERS = ("seq", "latency", "p90", "TFLOP/s", "peak memory")

UNSTEADY = 2.0
"""A 90th percentile this many times the 10th says that something else ran on the machine."""


def overview(captures: Sequence[Capture]) -> str:
    """Return a table of captures, and below it why some are not as they should be."""
    columns: dict[str, Callable[[Capture], str]] = {
        "variant": lambda capture: capture.name,
        "seq": _seq,
        "status": lambda capture: capture.status,
        "latency": _latency,
        "p90": _p90,
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


def _p90(capture: Capture) -> str:
    return duration(capture.latency.p90_us) if capture.latency else NOTHING


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
    return [note for note in (capture.reason, _masked_rows(capture), _unsteady(capture)) if note]


def _masked_rows(capture: Capture) -> str | None:
    match capture.numerics and capture.numerics.fully_masked_rows:
        case "nan":
            return "writes NaN for a query whose every key is masked"
        case "mask ignored":
            return "ignores a mask that is not the causal one"
        case _:
            return None


def _unsteady(capture: Capture) -> str | None:
    latency = capture.latency
    if latency is None or latency.p90_us < UNSTEADY * latency.p10_us:
        return None
    return (
        f"UNSTEADY latency, {duration(latency.p10_us)} (p10) to {duration(latency.p90_us)} (p90):"
        " other work on the machine, or threads that wait for each other (OMP_NUM_THREADS)"
    )
