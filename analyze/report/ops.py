"""Torch's ``key_averages()`` table from the file alone.

What counts as a row, and the time of each, is in :mod:`analyze.report.ops_rows`. As in torch, times
are sums: of nested calls of one name each counts, and work that overlaps on the GPU counts twice.
Unlike torch's table this one has no rows for kernels and Python frames; the GPU work that no op
launched is given apart; and an annotation's GPU time is that of all work launched inside it, where
torch has only that of the ops inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analyze.errors import AnalyzeError, NothingToCheckError
from analyze.report.condition import Condition
from analyze.report.opening import opening
from analyze.report.ops_rows import OP, host_rows
from analyze.report.summary import known_sum, microseconds, summed_us
from analyze.tables.build import Trace
from analyze.tables.catalogue import Need
from analyze.words import closest, duration, printable

SCHEMA_VERSION = 1

KEYS = {
    "name": "name",
    "shapes": "shapes",
    "stack": "source",
    "module": "module",
    "phase": "phase",
    "region": "region",
}
"""What rows can be grouped by, and the column behind it."""

_NEEDS = {"shapes": Need.SHAPES, "stack": Need.STACKS, "module": Need.MODULES}

COLUMNS = (
    "self_cpu_us", "self_cpu_share", "cpu_us", "cpu_share", "cpu_avg_us",
    "self_device_us", "self_device_share", "device_us", "device_avg_us", "calls",
)  # fmt: skip
"""The columns of a group, in torch's order."""

TORCH_NAMES = {
    "self_cpu_time_total": "self_cpu_us",
    "cpu_time_total": "cpu_us",
    "cpu_time": "cpu_avg_us",
    "self_device_time_total": "self_device_us",
    "self_cuda_time_total": "self_device_us",
    "device_time_total": "device_us",
    "cuda_time_total": "device_us",
    "device_time": "device_avg_us",
    "cuda_time": "device_avg_us",
    "count": "calls",
}
"""What torch's ``sort_by`` calls them."""

_TOTALS = ("cpu_ns", "device_ns")


@dataclass(frozen=True)
class Query:
    """What to count, and how.

    Attributes:
        group_by: some of :data:`KEYS`.
        sort: one of :data:`COLUMNS`, descending; None for the self time on the device, or on the
            CPU where no GPU work was recorded.
        limit: how many groups to return; None for all.
        step: count only what lies in the ProfilerStep of this number.
        where: count only these ops, and neither annotations nor runtime calls; where it keeps none,
            there is no group.
    """

    group_by: Sequence[str] = ("name",)
    sort: str | None = None
    limit: int | None = None
    step: int | None = None
    where: Condition | None = None


_BY_NAME = Query()


def check_keys(written: str) -> tuple[str, ...]:
    """Return the keys of ``--group-by``, a list with commas.

    Raises:
        AnalyzeError: one is not known.
    """
    keys = tuple(dict.fromkeys(part.strip() for part in written.split(",")))
    for key in keys:
        if key not in KEYS:
            raise AnalyzeError(f"--group-by {printable(written)}: {_unknown(key, KEYS)}")
    return keys


def check_sort(written: str | None) -> str | None:
    """Return the column of ``--sort``, which may be given by torch's name.

    Raises:
        AnalyzeError: there is no such column.
    """
    if written is None:
        return None
    column = TORCH_NAMES.get(written, written)
    if column not in COLUMNS:
        raise AnalyzeError(f"--sort: {_unknown(written, COLUMNS, [*COLUMNS, *TORCH_NAMES])}")
    return column


def _unknown(word: str, known: Sequence[str] | dict[str, str], close: Sequence[str] = ()) -> str:
    suggestion = closest(word, close or known)
    hint = f"did you mean {suggestion!r}?" if suggestion else f"known: {', '.join(known)}"
    return f"no column {printable(word)!r}; {hint}"


def average_ops(trace: Trace, query: Query = _BY_NAME) -> dict[str, Any]:
    """Return the averaged ops as plain data; times are microseconds, shares 0 to 1.

    Raises:
        AnalyzeError: there is no such step.
        NothingToCheckError: ``query.where`` is given, and no op was recorded.
    """
    if query.where is not None and trace.facts.ops.is_empty():
        raise NothingToCheckError(f"{trace.name}: {Need.OPS.value}")
    rows = _selected(trace, query.step, query.where)
    outside = None if query.where else _launched_by_no_row(trace, query.step)
    total_cpu, total_device = _sum(rows["self_cpu_ns"]), None
    if trace.facts.gpu_ops["dur_ns"].count():
        total_device = _sum(rows["self_device_ns"])
        total_device += 0 if outside is None else _sum(outside["dur_ns"])
    column = query.sort or ("self_cpu_us" if total_device is None else "self_device_us")
    groups = _sorted(_grouped(rows, query.group_by, total_cpu, total_device), column)
    shown = min(query.limit or groups.height, groups.height)
    return {
        **opening(trace, SCHEMA_VERSION),
        "group_by": list(query.group_by),
        "sort": column,
        "step": query.step,
        "where": query.where and query.where.as_json(),
        "total": {
            "calls": rows.height,
            "self_cpu_us": microseconds(total_cpu),
            "self_device_us": microseconds(total_device),
        },
        "launched_by_no_row": None if outside is None else _amounts(outside),
        "notes": _notes(trace, rows, query),
        "group_count": groups.height,
        "groups": [_rounded(row) for row in groups.head(shown).to_dicts()],
    }


def _sum(nanoseconds: pl.Series) -> int:
    return int(nanoseconds.sum())


def _selected(trace: Trace, step: int | None, where: Condition | None) -> pl.DataFrame:
    rows = host_rows(trace)
    if where is not None:
        rows = rows.filter(pl.col("kind") == OP).filter(where.kept)
    if step is None:
        return rows
    steps = trace.facts.steps.intervals["number"].drop_nulls().to_list()
    if step not in steps:
        recorded = ", ".join(map(str, steps[:10])) + (", ..." if len(steps) > 10 else "")
        hint = f"it has the steps {recorded}" if steps else Need.STEPS.value
        raise AnalyzeError(f"{trace.name}: --step {step}: no such ProfilerStep in it; {hint}")
    return rows.filter(pl.col("step") == step)


def _launched_by_no_row(trace: Trace, step: int | None) -> pl.DataFrame | None:
    """Return the GPU work that lies in no op and no annotation; None where none was recorded."""
    gpu_ops = trace.facts.gpu_ops
    if gpu_ops.is_empty():
        return None
    outside = gpu_ops.filter(pl.col("op_row").is_null() & pl.col("region_row").is_null())
    return outside if step is None else outside.filter(pl.col("step") == step)


def _amounts(outside: pl.DataFrame) -> dict[str, Any]:
    unlinked = outside.filter(~pl.col("linked"))
    return {
        "gpu_ops": outside.height,
        "device_us": summed_us(outside["dur_ns"]),
        "unlinked_gpu_ops": unlinked.height,
        "unlinked_device_us": summed_us(unlinked["dur_ns"]),
    }


def _grouped(
    rows: pl.DataFrame, group_by: Sequence[str], total_cpu: int, total_device: int | None
) -> pl.DataFrame:
    """Average the rows of each group; totals only where all rows of a group have one name.

    Otherwise one row of a group may lie inside another, and their sum would count it twice.
    """
    named = "name" in group_by
    keys = [pl.col(KEYS[key]).alias(key) for key in group_by]
    if named:
        keys.append(pl.col("kind"))  # an op and a runtime call of the same name are two things
    totals = (known_sum(name) if named else pl.lit(None).alias(name) for name in _TOTALS)
    sums = rows.group_by(keys, maintain_order=True).agg(
        *(known_sum(name) for name in ("self_cpu_ns", "self_device_ns")),
        *totals,
        calls=pl.len().cast(pl.Int64),
    )
    calls = pl.col("calls")
    return sums.select(
        *(*group_by, *(["kind"] if named else [])),
        self_cpu_us=_us("self_cpu_ns"),
        self_cpu_share=_share("self_cpu_ns", total_cpu),
        cpu_us=_us("cpu_ns"),
        cpu_share=_share("cpu_ns", total_cpu),
        cpu_avg_us=_us("cpu_ns") / calls,
        self_device_us=_us("self_device_ns"),
        self_device_share=_share("self_device_ns", total_device),
        device_us=_us("device_ns"),
        device_avg_us=_us("device_ns") / calls,
        calls=calls,
    )


def _us(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64) / 1000


def _share(name: str, total: int | None) -> pl.Expr:
    return pl.col(name) / total if total else pl.lit(None, dtype=pl.Float64)


def _sorted(groups: pl.DataFrame, column: str) -> pl.DataFrame:
    """Sort by a column, equal values by the time on the CPU, then by name."""
    keys = [name for name in groups.columns if name in (*KEYS, "kind")]
    by = list(dict.fromkeys([column, "self_cpu_us"]))
    descending = [True] * len(by) + [False] * len(keys)
    return groups.sort(*by, *keys, descending=descending, nulls_last=True)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 6 if name.endswith("_share") else 3)
        if isinstance(value, float)
        else value
        for name, value in row.items()
    }


def _notes(trace: Trace, rows: pl.DataFrame, query: Query) -> list[str]:
    """Return what a reader must know about the groups."""
    notes = [
        f"{key}: {_NEEDS[key].value}"
        for key in query.group_by
        if key in _NEEDS and rows[KEYS[key]].null_count() == rows.height
    ]
    if trace.facts.ops.is_empty():
        notes.append(Need.OPS.value)
    notes += _repeated_step(trace, query.step)
    if query.where is None:
        notes += _oddities(trace)
    return notes


def _repeated_step(trace: Trace, step: int | None) -> list[str]:
    if step is None:
        return []
    count = int((trace.facts.steps.intervals["number"] == step).sum())
    if count < 2:
        return []
    return [f"{count:,} steps of the trace have the number {step}; this is what they come to"]


def _oddities(trace: Trace) -> list[str]:
    notes = []
    own = trace.facts.api_calls.filter("profiler_own")
    if own.height:
        waited = duration(microseconds(_sum(own["dur_ns"])))
        notes.append(f"{waited} of {own['name'][0]} is the profiler's own, at its end")
    if trace.has_stacks:
        notes.append("Python frames are no rows here; torch's own table has them")
    return notes
