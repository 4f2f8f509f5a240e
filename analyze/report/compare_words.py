"""How traces side by side are worded, in whatever format: columns and their cells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from analyze.diff.comparability import is_same_unit, outside_sentences
from analyze.diff.same_work import InputShapes, is_same_work
from analyze.report.capture_words import capture_problem
from analyze.report.latency_words import unsteady_latency
from analyze.tables.captured import SHAPE_COLUMNS
from analyze.tables.units import WHOLE_TRACE, common_unit_name, unit_name
from analyze.words import UNKNOWN, duration, percentage, printable, share, size, unitless

Data = Mapping[str, Any]
Cell = Callable[[Data], str]
Naming = Callable[[str], str]
"""How a name from a trace is written: safe to print, or as a code span of Markdown."""
NOTHING = "-"
_WORKLOAD = ("batch", "seq")
"""Sizes that ``capture`` notes of every workload it made up."""

_MUCH_COMMUNICATION = 0.05
"""Share of GPU busy time from which on it tells little of a trace's own work."""

_TIME_WORDS = {
    "gpu_busy_us": "GPU busy time",
    "latency_us": "latency with the profiler off",
    "cpu_us": "CPU time",
}
_ODDITIES = {
    "synthetic": "made up, not recorded",
    "truncated": "the file is cut short, its last forward may be incomplete",
}
_NVIDIA_CORES = {True: "tensor cores", False: "CUDA cores", None: "cores unknown"}
_AMD_CORES = {True: "matrix cores", False: "vector units", None: "cores unknown"}


def _column(key: str, word: Callable[[Any], str]) -> Cell:
    return lambda row: NOTHING if row[key] is None else word(row[key])


def count_word(value: float) -> str:
    """Word a count per forward, which a median can make a half."""
    return f"{value:,.1f}".removesuffix(".0")


def times_word(value: float) -> str:
    """Word how many times as long something takes, with three digits."""
    return f"{unitless(value)}x"


def _no_findings(row: Data) -> str:
    return "none" if row["why_nothing"] is None else UNKNOWN


NUMBERS: Mapping[str, Cell] = {
    **{name.replace("_", " "): _column(name, str) for name in SHAPE_COLUMNS},
    "latency": _column("latency_us", duration),
    "GPU busy": _column("gpu_busy_us", duration),
    "communication": _column("communication_share", share),
    "relative": _column("relative_time", times_word),
    "GPU ops": _column("gpu_ops_per_forward", count_word),
    "kernels": _column("kernels_per_forward", count_word),
    "copies": _column("copies_per_forward", count_word),
    "CPU": _column("cpu_us", duration),
    "peak memory": _column("peak_bytes", size),
    "numerics": _column("numerics_ok", lambda ok: "ok" if ok else "WRONG"),
    "findings": lambda row: " ".join(map(printable, row["findings"])) or _no_findings(row),
}
"""What a row says in numbers, by heading."""

_AT_A_GLANCE = (
    "GPU ops",
    "copies",
    "GPU busy",
    "communication",
    "CPU",
    "latency",
    "relative",
    "peak memory",
    "numerics",
)


def differing_shapes(rows: Sequence[Data]) -> list[str]:
    """Return the headings of the workload's sizes that are not the same in all rows."""
    differing = [
        name
        for name in SHAPE_COLUMNS
        if len({row[name] for row in rows} - {None}) > 1 and not _repeats(rows, name)
    ]
    return [name.replace("_", " ") for name in differing]


def _repeats(rows: Sequence[Data], name: str) -> bool:
    """Whether a size of keys and values is that of the queries in all rows."""
    of_queries = {"kv_heads": "heads", "seq_kv": "seq"}.get(name)
    return of_queries is not None and all(row[name] == row[of_queries] for row in rows)


def glance_columns(data: Data) -> dict[str, Cell]:
    """Return the columns of numbers in which any trace has something to say."""
    rows = data["traces"]
    headings = [*differing_shapes(rows), *_AT_A_GLANCE]
    return telling({heading: NUMBERS[heading] for heading in headings}, rows)


def telling(columns: Mapping[str, Cell], rows: Sequence[Data]) -> dict[str, Cell]:
    """Return those of the columns in which any trace has something to say."""
    return {
        heading: cell
        for heading, cell in columns.items()
        if any(cell(row) != NOTHING for row in rows)
    }


def path(row: Data) -> str:
    """Word the precision path: of which part of the time, where that is not all of it."""
    precision_path = row["precision_path"]
    if precision_path is None:
        return NOTHING
    words = _path_words(precision_path, row["vendor"])
    part = share(precision_path["share"])
    return words if part == "100 %" else f"{words} {part}"


def _path_words(precision_path: Data, vendor: str | None) -> str:
    precision, tensor_core = precision_path["precision"], precision_path["tensor_core"]
    cores = (_AMD_CORES if vendor == "amd" else _NVIDIA_CORES)[tensor_core]
    if precision != "unknown":
        return f"{precision} {cores}"
    return "unknown" if tensor_core is None else f"{cores}, type unknown"


def occupancy(row: Data) -> str:
    """Word the occupancy of the costliest kernel, as reported and as recomputed."""
    if row["occupancy"] is None:
        return NOTHING
    reported, real = row["occupancy"]["reported"], row["occupancy"]["recomputed"]
    if reported is None and real is None:
        return "unknown"
    return f"{percentage(reported)} -> {percentage(real)}"


def paths(named: Naming = printable) -> Mapping[str, Cell]:
    """Return what a row says of how its work runs, by heading."""

    def kernel(row: Data) -> str:
        found = row["occupancy"]
        return NOTHING if found is None else named(found["kernel"] or UNKNOWN)

    return {"precision path": path, "occupancy": occupancy, "costliest kernel": kernel}


def lesson(row: Data) -> str:
    """Word the one lesson of a trace: its top finding."""
    found = row["lesson"]
    if found is None:
        return "nothing found" if row["why_nothing"] is None else "nothing could be checked"
    words = f"{found['code']} {found['title']}: {found['message']}"
    if found["state"] == "benign":
        words = f"nothing found; benign: {words}; {found['because']}"
    return printable(words)


def notes(data: Data, named: Naming = printable) -> Iterator[str]:
    """Yield what a reader must know before comparing the numbers."""
    rows, relative, unlike = data["traces"], data["relative_to"], data["unlike"]
    if unlike and relative is None:
        yield f"{left_out_note(unlike)}; --baseline NAME relates them all the same"
    elif len(rows) > 1 or relative is not None:
        yield relative_note(relative, named)
    if unlike and relative is not None:
        yield f"careful: times are multiples of a trace that is not like the others: {unlike[0]}"
    yield from cautions(rows, named)


def relative_note(relative: Data | None, named: Naming = printable) -> str:
    """Say what times are relative to; None where there is nothing to relate them to."""
    if relative is None:
        return "relative: there is no time that all of them have"
    return f"relative: {_TIME_WORDS[relative['time']]} / that of {named(relative['name'])}"


def left_out_note(unlike: Sequence[str]) -> str:
    """Say why there are no times relative to another trace's; see :func:`unrelated`."""
    return f"relative times are left out: {', '.join(unlike)}"


def cautions(rows: Sequence[Data], named: Naming = printable) -> Iterator[str]:
    """Yield what makes the numbers of traces hard to compare."""
    for key, words in _ODDITIES.items():
        odd = [named(row["name"]) for row in rows if row[key]]
        if odd:
            yield f"careful: {words}: {', '.join(odd)}"
    yield from unsteady_latencies(rows, named)
    yield from _doubtful_captures(rows, named)
    for key, words in (("device", "devices"), ("dtype", "dtypes"), ("phase", "phases")):
        known = sorted({row[key] for row in rows if row[key] is not None})
        if len(known) > 1:
            yield f"careful: {words} differ: {', '.join(map(named, known))}"
    for row in rows:
        outside = row["gpu_time_share_outside_forwards"]
        for sentence in outside_sentences(
            named(row["name"]), outside, unit_name(row["forward_is"])
        ):
            yield f"careful: {sentence}"
    units = _units(rows)
    if not _are_same(units):
        yield f"careful: a forward is not the same thing in all: {', '.join(map(named, units))}"


def unsteady_latencies(rows: Sequence[Data], named: Naming = printable) -> Iterator[str]:
    """Yield which latencies of traces at a glance say little, for the calls differ too much."""
    for row in rows:
        spread = unsteady_latency(row)
        if spread is not None:
            yield f"careful: latency of {named(row['name'])} is unsteady: {spread}"


def _doubtful_captures(rows: Sequence[Data], named: Naming) -> Iterator[str]:
    for row in rows:
        problem = capture_problem(row, named)
        if problem is not None:
            yield f"careful: capture noted {named(row['name'])} as {problem}"
        if row.get("capture_problem") is not None:
            yield f"careful: {named(row['name'])}: {named(row['capture_problem'])}"


def medians_of(rows: Sequence[Data]) -> str:
    """Say what the amounts of traces side by side are of."""
    unit = common_unit_name(row["forward_is"] for row in rows)
    return "amounts of the whole trace" if unit == "trace" else f"medians of a {unit}"


def unrelated(rows: Sequence[Data], shapes: Sequence[InputShapes | None]) -> list[str]:
    """Return what keeps the time of one trace from being a multiple of another's, in words.

    Of whole traces nothing says that they hold the same work; of others only what ``capture`` noted
    of its workload, or the inputs of their ops.

    Args:
        rows: the traces at a glance.
        shapes: of the same traces, :func:`analyze.diff.same_work.input_shapes`.
    """
    if len(rows) < 2:
        return []
    differing = [
        words
        for key, words in (("device", "devices differ"), ("phase", "phases differ"))
        if len({row[key] for row in rows} - {None}) > 1
    ]
    if differing_shapes(rows):
        differing.append("workloads differ")
    if any((row["communication_share"] or 0.0) > _MUCH_COMMUNICATION for row in rows):
        differing.append("communication, much of what keeps the GPU busy, waits for other ranks")
    units = _units(rows)
    if not _are_same(units):
        differing.append("a forward is not the same thing in all")
    elif WHOLE_TRACE in units:
        differing.append("whole traces need not hold the same work")
    return differing or _other_work(rows, shapes)


def _other_work(rows: Sequence[Data], shapes: Sequence[InputShapes | None]) -> list[str]:
    """Return why the work of traces, between which nothing else differs, is not taken as equal."""
    if all(row[name] is not None for row in rows for name in _WORKLOAD):
        return []
    alike = [is_same_work(shapes[0], other) for other in shapes[1:]]
    if False in alike:
        return ["most inputs of their ops are of other shapes"]
    return ["no input shapes tell that the work is the same"] if None in alike else []


def _units(rows: Sequence[Data]) -> list[str]:
    return sorted({row["forward_is"] for row in rows})


def _are_same(units: Sequence[str]) -> bool:
    return all(is_same_unit(units[0], unit) for unit in units)


def absence(name: str, status: str, reason: str | None) -> str:
    """Say why a capture has no trace."""
    return f"{printable(name)}: {printable(status)}: {printable(reason or 'without a reason')}"
