"""The record_function annotations by name: what each cost the CPU, and what it launched.

GPU work belongs to the annotation that launched it. What running at the same time would say instead
is counted as well, and so is the work that outlasts its annotation: both show, on the trace at
hand, that ``record_function`` does not synchronise.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from analyze.errors import NothingToCheckError
from analyze.report.condition import Condition
from analyze.report.opening import opening
from analyze.report.ops_rows import as_one_step
from analyze.report.regions_why import why
from analyze.report.summary import microseconds
from analyze.tables.build import Trace
from analyze.tables.gpu_runs import amounts_of_runs, runs_of_work
from analyze.tables.intervals import busy_until, covered_before
from analyze.tables.regions import no_work_is_zero, rows_inside, work_of_regions
from analyze.words import counted

SCHEMA_VERSION = 1

_NONE = (
    "no record_function annotation was recorded; put what you want to see into"
    " `with torch.profiler.record_function('name'):`"
)
_WAITS_NAMED = 3
_COUNTS = ("syncs", "ended_later", "started", "own")
_PREFIXES = ("", "backward_", "all_")
"""Of the amounts of work launched on the thread, by other threads in a backward, and of both."""
_AMOUNTS = ("gpu_busy_ns", "gpu_sum_ns", "gpu_ops", "kernels", "copies")


def report_regions(
    trace: Trace,
    *,
    where: Condition | None = None,
    limit: int | None = None,
    each: bool = False,
) -> dict[str, Any]:
    """Return the annotations by name as plain data; times are microseconds, shares 0 to 1.

    Args:
        trace: the trace.
        where: which rows of the table ``regions`` to report; None for all.
        limit: how many names to return; None for all.
        each: report every annotation by itself, in the order of their starts.

    Raises:
        NothingToCheckError: there is no annotation in the trace.
    """
    usable = pl.col("start_ns").is_not_null() & pl.col("dur_ns").is_not_null()
    if trace.regions.filter(usable).is_empty():
        raise NothingToCheckError(f"{trace.name}: {_why_none(trace)}")
    regions = trace.regions if where is None else trace.regions.filter(where.kept)
    number = pl.int_range(pl.len()).over("name")
    regions = regions.with_columns(
        pl.format("{} [{}]", "name", number).alias("name") if each else as_one_step("name"),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
    ).filter(usable)
    names = _by_name(trace, regions)
    names = names if each else sorted(names, key=_most_gpu_time_first)
    return {
        **opening(trace, SCHEMA_VERSION),
        "where": where and where.as_json(),
        "annotations": regions.height,
        "synchronisation": _synchronisation(trace, regions),
        "name_count": len(names),
        "names": names[: limit or len(names)],
    }


def _why_none(trace: Trace) -> str:
    """Say why there is no annotation; those without a usable time are in no table."""
    written = sum(
        count
        for (phase, category), count in trace.counts.categories.items()
        if phase == "X" and str(category).lower() == "user_annotation"
    )
    if not written:
        return _NONE
    have = "has" if written == 1 else "have"
    return f"{counted(written, 'record_function annotation')} of it {have} no usable time"


def outermost(regions: pl.DataFrame) -> pl.DataFrame:
    """Leave out annotations inside one of the same name: what is in them is in that one as well."""
    around = pl.col("last").cum_max().shift(1).over("name")
    return regions.sort("node").filter((pl.col("node") > around).fill_null(value=True))


def _by_name(trace: Trace, regions: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one entry per name, in the order of their first starts."""
    names = regions.group_by("name", maintain_order=True).agg(
        calls=pl.len().cast(pl.Int64),
        cpu_ns=pl.col("dur_ns").sum(),
    )
    for part in (
        _work_by_name(trace, regions),
        _syncs(trace, regions),
        _started_meanwhile(trace, regions),
        _gpu_idle(trace, regions),
    ):
        names = names.join(part, on="name", how="left", maintain_order="left")
    names = names.with_columns(
        *(expr for prefix in _PREFIXES for expr in no_work_is_zero(_AMOUNTS, prefix)),
        pl.col(*_COUNTS, "late_ns", "outlasts_ns").fill_null(0),
    )
    waits = _waits(trace, regions)
    recorded = trace.facts.gpu_ops.height > 0
    return [_entry(row, waits.get(row["name"], []), recorded) for row in names.to_dicts()]


def _work_by_name(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """Return the amounts of the GPU work launched in the annotations of each name."""
    around = outermost(regions).select(
        "node", "last", "name", key="name", region_start_ns="start_ns", region_end_ns="end_ns"
    )
    marks = pl.concat([regions["start_ns"], regions["end_ns"]])
    runs = runs_of_work(work_of_regions(trace.facts.host, trace.facts.gpu_ops), marks)
    return pl.concat([_amounts_of_names(batch) for batch in rows_inside(around, runs)])


def _amounts_of_names(runs: pl.DataFrame) -> pl.DataFrame:
    """Return one row a name from all the work of some names."""
    names = runs.select("name").unique(maintain_order=True)
    for part in (
        _amounts(runs.filter(~pl.col("elsewhere")), ""),
        _amounts(runs.filter("elsewhere"), "backward_"),
        _amounts(runs, "all_"),
        _after_the_end(runs),
        _own_meanwhile(runs),
    ):
        names = names.join(part, on="name", how="left", maintain_order="left")
    return names


def _amounts(runs: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Return the amounts per name; work inside two annotations of one name counts once."""
    distinct = runs.unique(["name", "run"], maintain_order=True)
    return amounts_of_runs(distinct, "name").select(
        "name", *(pl.col(amount).alias(f"{prefix}{amount}") for amount in _AMOUNTS)
    )


def _after_the_end(runs: pl.DataFrame) -> pl.DataFrame:
    """Return, per name, the work that was still running when its annotation had ended.

    Of several annotations of one name around the launch, the last to end counts. No run of several
    is across the end of an annotation.
    """
    last = pl.col("region_end_ns").max().over("name", "run")
    distinct = runs.with_columns(region_end_ns=last).unique(["name", "run"])
    late = distinct.filter(pl.col("end_ns") > pl.col("region_end_ns"))
    in_time = (pl.col("region_end_ns") - pl.col("start_ns")).clip(0)
    return (
        late.with_columns(
            late_ns=pl.col("sum_ns") - in_time,
            outlasts_ns=pl.col("end_ns") - pl.col("region_end_ns"),
        )
        .group_by("name")
        .agg(
            ended_later=pl.col("gpu_ops").sum(),
            late_ns=pl.col("late_ns").sum(),
            outlasts_ns=pl.col("outlasts_ns").max(),
        )
    )


def _own_meanwhile(runs: pl.DataFrame) -> pl.DataFrame:
    """Return, per name, how much of its own work started while its annotation was open."""
    started = runs.filter(
        pl.col("start_ns").is_between("region_start_ns", "region_end_ns", closed="left")
    )
    distinct = started.unique(["name", "run"])
    return distinct.group_by("name").agg(own=pl.col("gpu_ops").sum())


def _started_meanwhile(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """Return, per name, how much linked GPU work started while its annotations were open."""
    starts = trace.facts.gpu_ops.filter("linked")["start_ns"].drop_nulls().sort()
    pieces = _without_overlap(regions)
    started = pieces.select(
        "name",
        started=starts.search_sorted(pieces["end_ns"], side="left").cast(pl.Int64)
        - starts.search_sorted(pieces["start_ns"], side="left").cast(pl.Int64),
    )
    return started.group_by("name").agg(pl.col("started").sum())


def _without_overlap(regions: pl.DataFrame) -> pl.DataFrame:
    """Cut from each annotation what an earlier one of its name covers, so that time counts once."""
    covered_until = busy_until("name")
    begins = pl.max_horizontal("start_ns", covered_until)
    return regions.sort("start_ns").select(
        "name", start_ns=begins, end_ns=pl.max_horizontal("end_ns", begins)
    )


def _gpu_idle(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """Return, per name, for how much of its CPU time no GPU was working."""
    work = trace.facts.gpu_ops.select("start_ns", "dur_ns")
    ends = regions.select(start_ns="end_ns")
    busy = covered_before(ends, work, []) - covered_before(regions, work, [])
    idle = regions.select("name", gpu_idle_ns=pl.col("dur_ns") - busy)
    return idle.group_by("name").agg(pl.col("gpu_idle_ns").sum())


def _syncs(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """Return the synchronising calls per name; one in two annotations of a name counts once."""
    syncs = trace.facts.api_calls.filter(pl.col("is_sync") & ~pl.col("profiler_own"))
    counts = [
        calls.group_by("name").agg(syncs=pl.col("count").sum())
        for calls in _calls_inside(regions, syncs)
    ]
    return pl.concat(counts)


def _calls_inside(regions: pl.DataFrame, calls: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the calls of some names at a time, for each name of the annotations around.

    The calls of one name in one innermost annotation are one row: ``call``, ``count``, ``time_ns``.
    """
    together = calls.group_by("region_row", call="name", maintain_order=True).agg(
        count=pl.len().cast(pl.Int64), time_ns=pl.col("dur_ns").sum()
    )
    around = outermost(regions).select("node", "last", "name", key="name")
    return rows_inside(around, together)


def _waits(trace: Trace, regions: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return, per name, the calls in it that made the host wait, the longest wait first."""
    calls = trace.facts.api_calls.filter(pl.col("blocking") & ~pl.col("profiler_own"))
    sums = [
        inside.group_by("name", "call").agg(pl.col("count", "time_ns").sum())
        for inside in _calls_inside(regions, calls)
    ]
    ranked = pl.concat(sums).sort("time_ns", "call", descending=[True, False])
    waits: dict[str, list[dict[str, Any]]] = {}
    for name, call, count, time_ns in ranked.iter_rows():
        wait = {"name": call, "count": count, "time_us": microseconds(time_ns)}
        waits.setdefault(name, []).append(wait)
    return waits


def _entry(row: dict[str, Any], waits: list[dict[str, Any]], recorded: bool) -> dict[str, Any]:
    """Return the entry of one name; GPU amounts are unknown where no GPU work was recorded."""
    calls, total, started, own = (row[name] for name in ("calls", "all_gpu_ops", "started", "own"))
    entry = {
        "name": row["name"],
        "calls": calls,
        "cpu_us": microseconds(row["cpu_ns"]),
        "cpu_mean_us": microseconds(row["cpu_ns"] / calls),
        "syncs": row["syncs"],
        "waiting_us": round(sum(wait["time_us"] for wait in waits), 3),
        "waits": waits[:_WAITS_NAMED],
        "gpu": _gpu(row, "") | {"kernels_per_call": round(row["kernels"] / calls, 3)},
        "backward": _gpu(row, "backward_"),
        "together": _gpu(row, "all_"),
        "gpu_idle_share": _share(row["gpu_idle_ns"], row["cpu_ns"]),
        "after_its_end": {
            "gpu_ops": row["ended_later"],
            "time_share": _share(row["late_ns"], row["all_gpu_sum_ns"]),
            "longest_us": microseconds(row["outlasts_ns"]),
        },
        "by_overlap": {
            "gpu_ops": started,
            "launched_elsewhere": started - own,
            "missed": total - own,
        },
    }
    if not recorded:
        gpu = ("gpu", "backward", "together", "gpu_idle_share", "after_its_end", "by_overlap")
        entry |= dict.fromkeys(gpu)
    return entry | {"why": why(entry)}


def _gpu(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {
        "busy_us": microseconds(row[f"{prefix}gpu_busy_ns"]),
        "sum_us": microseconds(row[f"{prefix}gpu_sum_ns"]),
        "gpu_ops": row[f"{prefix}gpu_ops"],
        "kernels": row[f"{prefix}kernels"],
        "copies": row[f"{prefix}copies"],
    }


def _most_gpu_time_first(entry: dict[str, Any]) -> tuple[float, float]:
    together = entry["together"]
    return -(together["sum_us"] or 0.0) if together else 0.0, -entry["cpu_us"]


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else round(part / whole, 6)


def _synchronisation(trace: Trace, regions: pl.DataFrame) -> dict[str, int] | None:
    """Return what this trace shows about whether annotations synchronise; None without GPU work."""
    launching = regions.filter(pl.col("gpu_ops") + pl.col("backward_gpu_ops") > 0)
    if launching.is_empty():
        return None
    syncs = trace.facts.api_calls.filter(pl.col("is_sync") & ~pl.col("profiler_own"))
    return {
        "annotations": regions.height,
        "with_gpu_work": launching.height,
        "outlasted_by_it": launching.filter(pl.col("work_end_ns") > pl.col("end_ns")).height,
        "sync_calls": syncs.height,
        "made_by_ops": int(syncs["op_row"].is_not_null().sum()),
    }
