"""Coverage and quality of a trace: what the numbers below it stand on."""

from typing import Any

import polars as pl

from analyze.tables import catalogue
from analyze.tables.build import Trace
from analyze.tables.catalogue import Need
from analyze.tables.external_ids import external_id_mode
from analyze.tables.gpu_time import gpu_time
from analyze.tables.host import IS_ANNOTATION, STEP_PREFIX
from analyze.tables.overlaps import overlaps_earlier
from analyze.tables.trace_row import busiest_device
from analyze.tables.units import WHOLE_TRACE
from analyze.trace.families import PYTORCH_CATEGORIES

_SKEW_NS = 5000
"""GPU work that starts this much before its launch call shows two clocks that disagree."""

_GPU_AMOUNTS = ("gpu_busy_us", "gpu_ops", "kernels", "copies")
_CALL_AMOUNTS = ("launches", "syncs")
UNIT_COLUMNS = ("cpu_us", *_GPU_AMOUNTS, *_CALL_AMOUNTS)
"""The amounts of a forward or step that reports show."""

_CAPTURE = (Need.CAPTURE, Need.CAPTURE_JSON)

MOST_ANNOTATIONS = 3

_FLOW_PHASES = ("s", "f", "t")


def coverage(trace: Trace) -> dict[str, Any]:
    """Return what was recorded and how much of it could be linked; shares are 0 to 1."""
    facts, row = trace.facts, trace.table("trace").row(0, named=True)
    gpu_ops = facts.gpu_ops
    launched = facts.api_calls.filter(pl.col("is_launch"))
    device = busiest_device(trace)
    owned = gpu_ops["op"].is_not_null().sum()
    return {
        "device": row["device_name"],
        "vendor": row["vendor"],
        "compute_capability": row["compute_capability"],
        "device_properties": device is not None,
        "gpu_ops": gpu_ops.height,
        "gpu_ops_linked": int(gpu_ops["linked"].sum()),
        "gpu_ops_unlinked": int((~gpu_ops["linked"]).sum()),
        "linked_share": row["linked_share"],
        "unlinked_gpu_time_us": row["unlinked_gpu_us"],
        "gpu_ops_with_op": int(owned),
        "gpu_busy_us": row["gpu_busy_us"],
        "gpu_span_us": row["gpu_span_us"],
        "gpu_time": gpu_time(trace),
        "launches": launched.height,
        "launches_with_gpu_work": int((launched["gpu_ops"] > 0).sum()),
        "steps": row["steps"],
        "forward_is": trace.forward_source,
        "forwards": trace.table("forwards").height,
        "forwards_in_part": _forwards_in_part(trace),
        "annotations": _commonest_annotations(trace),
        "recorded": {
            "gpu_work": row["has_gpu"],
            "shapes": row["has_shapes"],
            "stacks": row["has_stacks"],
            "memory": row["has_memory"],
        },
        "options": sorted(trace.header.options),
        "rank": row["rank"],
        "world_size": row["world_size"],
        "synthetic": row["synthetic"],
        "trimmed": trimmed_notes(trace),
        "capture": capture_notes(trace),
        "forward_median": forward_median(trace),
    }


def _forwards_in_part(trace: Trace) -> int:
    """Return of how many forwards a cut or ``analyze trim`` may have left only a part."""
    if trace.forward_source == WHOLE_TRACE:
        return 0
    return trace.facts.kept.units_in_part(trace.facts.forwards.intervals)


def trimmed_notes(trace: Trace) -> list[dict[str, Any]]:
    """Return what the file says of being trimmed, the latest last; nothing of a whole trace."""
    return [
        {"kept": note.kept, "of": note.of, "events": note.events, "all_events": note.all_events}
        for note in trace.header.trimmed
    ]


def _commonest_annotations(trace: Trace) -> list[str]:
    """Return the names of the annotations that could be a forward, the longest in sum first."""
    names = (
        trace.facts.host.nodes.filter(IS_ANNOTATION & ~pl.col("name").str.starts_with(STEP_PREFIX))
        .group_by("name")
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "name", descending=[True, False])["name"]
    )
    return names.head(MOST_ANNOTATIONS).to_list()


def capture_notes(trace: Trace) -> dict[str, Any] | None:
    """Return what ``capture`` noted about the trace; None for a trace it did not write."""
    captured = trace.header.captured
    if captured.name is None:
        return None
    row = trace.table("trace").row(0, named=True)
    columns = (column.name for column in catalogue.TRACE.columns if column.needs in _CAPTURE)
    return {
        "name": captured.name,
        "dtype": captured.dtype,
        **{name: row[name] for name in columns},
        "latency_p10_us": _microseconds(captured.latency_p10_ns),
        "latency_p90_us": _microseconds(captured.latency_p90_ns),
    }


def _microseconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1000


def forward_median(trace: Trace) -> dict[str, Any]:
    """Return the median amounts of a forward, null where they are unknown.

    Those of the GPU are unknown without any GPU work, and where all of it was launched outside of
    forwards; those of calls, where none was recorded; all of these, where only a part of every
    forward is in the file.
    """
    medians = trace.table("forwards").select_seq(pl.col(UNIT_COLUMNS).median()).row(0, named=True)
    if trace.facts.gpu_ops["forward"].count() == 0:
        medians |= dict.fromkeys(_GPU_AMOUNTS)
    if trace.facts.api_calls.is_empty():
        medians |= dict.fromkeys(_CALL_AMOUNTS)
    return {name: None if value is None else round(value, 3) for name, value in medians.items()}


def quality(trace: Trace) -> dict[str, Any]:
    """Return how well the file could be read and what in it is odd."""
    repairs, source, times = trace.repairs, trace.source, trace.clock.report
    gpu_ops, ops = trace.facts.gpu_ops, trace.facts.ops
    row = trace.table("trace").row(0, named=True)
    return {
        "text_bytes": source.text_bytes,
        "file_bytes": source.file_bytes,
        "compression": list(source.compression),
        "form": trace.form,
        "producer": trace.header.producer,
        "valid_json": not repairs.any,
        "truncated": row["truncated"],
        "mended": dict(sorted(repairs.mended.items())),
        "events_repaired": repairs.events_repaired,
        "events_lost": trace.lost.events,
        "foreign_texts": repairs.foreign_texts,
        "documents": repairs.documents,
        "metadata_broken": repairs.metadata_broken,
        "metadata_lost": list(repairs.metadata_lost),
        "notes": [*source.notes, *_capture_problem(trace), *_copy_of_a_part(trace)],
        "events_without_phase": trace.counts.without_phase,
        "not_events": trace.counts.not_objects,
        "kinetolint_events": trace.counts.kinetolint_events,
        "categories": _categories(trace),
        "unknown_categories": _unknown_categories(trace),
        "times_missing": times.missing,
        "times_negative": times.negative,
        "times_impossible": times.impossible,
        "times_zero": times.zero_start,
        "times_outside": times.outside,
        "external_id_is": external_id_mode(gpu_ops),
        "ambiguous_links": int(gpu_ops["ambiguous_link"].sum()),
        "linked_by_external_id": int(gpu_ops["linked_by_external_id"].sum()),
        "undecided_links": int(gpu_ops["undecided_link"].sum()),
        "gpu_before_launch": _before_launch(gpu_ops),
        "stream_overlaps": gpu_ops.filter(overlaps_earlier()).height,
        "unfinished_ops": int((~ops["finished"]).sum()),
        "overhead_us": row["overhead_us"],
    }


def _capture_problem(trace: Trace) -> list[str]:
    problem = trace.header.capture_problem
    return [] if problem is None else [problem]


def _copy_of_a_part(trace: Trace) -> list[str]:
    if trace.header.lost_before.as_note() is None:
        return []
    return ["a copy of a file that was cut short or damaged: what that lacks is missing here too"]


def _categories(trace: Trace) -> dict[str, int]:
    counts: dict[str, int] = {}
    for (phase, category), count in trace.counts.categories.items():
        name = f"{phase} {category}" if category is not None else phase
        counts[name] = counts.get(name, 0) + count
    return dict(sorted(counts.items()))


def _unknown_categories(trace: Trace) -> list[str]:
    written = {
        category
        for phase, category in trace.counts.categories
        if category is not None and phase not in _FLOW_PHASES
    }
    known = PYTORCH_CATEGORIES | {"overhead"}
    return sorted(category for category in written if category.lower() not in known)


def _before_launch(gpu_ops: pl.DataFrame) -> int:
    early = pl.col("start_ns") < pl.col("api_start_ns") - _SKEW_NS
    return gpu_ops.filter(early).height
