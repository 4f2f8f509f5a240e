"""The tables under construction: events linked to each other, times in integer nanoseconds."""

from dataclasses import dataclass

import polars as pl

from analyze.tables.api import build_api_calls
from analyze.tables.by_hand import find_spans, number_at
from analyze.tables.clock import Clock
from analyze.tables.communication import exposed_ns
from analyze.tables.gpu import build_gpu_ops
from analyze.tables.header import Header
from analyze.tables.host import STEP_PREFIX, Host, build_host
from analyze.tables.idle import dry_in_waits, gap_cause, idle_after_waits, idle_causes
from analyze.tables.kept import Kept, what_is_kept
from analyze.tables.modules import modules_at, nest_module_frames
from analyze.tables.nesting import Forest, outermost
from analyze.tables.ops import build_ops
from analyze.tables.overlaps import crosses_earlier
from analyze.tables.removed import without_removed_time
from analyze.tables.sources import nest_user_frames, sources_at, user_lines
from analyze.tables.units import WHOLE_TRACE, Units, find_forwards, find_steps


@dataclass
class Facts:
    """Frames with every helper column, times in nanoseconds."""

    host: Host
    user_frames: Forest
    """The user's own Python frames; see :func:`analyze.tables.sources.nest_user_frames`."""
    steps: Units
    forwards: Units
    gpu_ops: pl.DataFrame
    ops: pl.DataFrame
    api_calls: pl.DataFrame
    attention_inputs: pl.DataFrame
    """Attention ops: ``name``, ``lane``, ``start_ns``, ``concrete_inputs``, ``input_strides``."""
    host_ops: int
    """CPU ops in the file, with those that torch's tables leave out or merge."""
    step_count: int
    """ProfilerSteps in the file; where some have no usable times, their distinct names."""
    kept: Kept
    """Of which time the file holds all work."""


def build_facts(
    clock: Clock, header: Header, forward: str | None, *, truncated: bool = False
) -> Facts:
    """Link the events of a trace; the frames of ``clock`` are used up as they are linked.

    Args:
        clock: the events on one clock.
        header: what the file says about itself.
        forward: the annotation that encloses one forward, if the user named it.
        truncated: the file ends before its event list does.

    Raises:
        AnalyzeError: the trace has no annotation named ``forward``.
    """
    frames = clock.frames
    host_ops, step_names = frames["ops"].height, _count_step_names(frames)
    user_frames = _add_sources(frames)
    host = build_host(frames)
    annotations = host.nodes.filter(~pl.col("is_op"))
    steps = find_steps(annotations)
    forwards = find_forwards(annotations, steps, forward, header.captured.annotation)
    calls = build_api_calls(frames.pop("api_calls"), host)
    calls = _add_units(calls, steps, forwards)
    gpu_ops = build_gpu_ops(frames.pop("gpu_ops"), calls, host, header)
    gpu_ops = _add_launch_columns(gpu_ops, calls, host, forwards)
    calls = _add_caused_work(calls, gpu_ops, host)
    kept = what_is_kept(header.trimmed, clock.origin_ns, calls, truncated=truncated)
    gpu_ops = without_removed_time(gpu_ops, kept.trims)
    idle_cause = idle_causes(gpu_ops, calls, frames["other"])
    gpu_ops = gpu_ops.with_columns_seq(idle_cause=idle_cause)
    calls = calls.with_columns_seq(
        dry_ns=dry_in_waits(calls, gpu_ops),
        idle_ns=idle_after_waits(calls, gpu_ops, host.nodes),
    )
    gpu_ops = gpu_ops.with_columns_seq(
        gap_cause=gap_cause(),
        crosses_earlier=crosses_earlier(),
        position=_position_in_forward(),
        exposed_ns=exposed_ns(gpu_ops),
    )
    ops = build_ops(host, gpu_ops, calls, kept)
    written_out = find_spans(ops)
    ops = _add_units(ops, steps, forwards).with_columns_seq(by_hand=number_at(ops, written_out))
    launches = gpu_ops.select_seq("lane", start_ns="api_start_ns")
    gpu_ops = gpu_ops.with_columns_seq(by_hand=number_at(launches, written_out))
    inputs = frames.pop("attention_inputs")
    step_count = max(step_names, steps.intervals.height)
    return Facts(
        host, user_frames, steps, forwards, gpu_ops, ops, calls, inputs, host_ops, step_count, kept
    )


def _add_sources(frames: dict[str, pl.DataFrame]) -> Forest:
    """Give host events their source line and module; of the frames return only the user's."""
    module_frames = nest_module_frames(frames["frames"])
    user_frames = nest_user_frames(frames.pop("frames"))
    for name in ("ops", "annotations", "api_calls"):
        frame = frames[name]
        source = sources_at(frame, user_frames)
        if "call_stack" in frame.columns:
            source = source.zip_with(source.is_not_null(), user_lines(frame["call_stack"]))
        frames[name] = frame.with_columns_seq(
            source=source, module=modules_at(frame, module_frames)
        )
    return user_frames


def _count_step_names(frames: dict[str, pl.DataFrame]) -> int:
    names = pl.concat([frames["ops"]["name"], frames["annotations"]["name"]])
    return names.filter(names.str.starts_with(STEP_PREFIX)).n_unique()


def _add_units(points: pl.DataFrame, steps: Units, forwards: Units) -> pl.DataFrame:
    step_row = steps.index_at(points)
    return points.with_columns_seq(
        step_row=step_row, step=steps.number_of(step_row), forward=forwards.index_at(points)
    )


def _add_launch_columns(
    gpu_ops: pl.DataFrame, calls: pl.DataFrame, host: Host, forwards: Units
) -> pl.DataFrame:
    """Give GPU work the unit, source line and op facts of its launch."""
    nodes, api_row, op_row = host.nodes, gpu_ops["api_row"], gpu_ops["op_row"]
    root_row = nodes["root_row"].gather(op_row)
    forward = calls["forward"].gather(api_row)
    if forwards.source == WHOLE_TRACE:
        forward = pl.repeat(0, gpu_ops.height, dtype=pl.Int64, eager=True)
    return gpu_ops.with_columns_seq(
        forward=forward,
        step_row=calls["step_row"].gather(api_row),
        step=calls["step"].gather(api_row),
        source=calls["source"].gather(api_row),
        host_pid=calls["pid"].gather(api_row),
        op=nodes["name"].gather(op_row),
        op_chain=nodes["op_chain"].gather(op_row),
        root_op=nodes["name"].gather(root_row),
        op_dtype=nodes["dtype"].gather(op_row),
        root_dtype=nodes["root_dtype"].gather(op_row),
        op_shapes=nodes["shapes"].gather(op_row),
        region=nodes["name"].gather(gpu_ops["region_row"]),
    )


def _position_in_forward() -> pl.Expr:
    """Return the number of a GPU op in its forward, from 0; rows are in the order of starts."""
    position = pl.int_range(pl.len()).over("forward")
    return pl.when(pl.col("forward").is_not_null()).then(position)


def _add_caused_work(calls: pl.DataFrame, gpu_ops: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Count the GPU work of each API call and tell which calls made the host wait."""
    fills_pageable = pl.col("dst_memory") == "pageable"
    touches_pageable = (pl.col("src_memory") == "pageable") | fills_pageable
    caused = (
        gpu_ops.filter(pl.col("linked"))
        .group_by("api_row")
        .agg(
            gpu_ops=pl.len().cast(pl.Int64),
            queue_delay_ns=pl.col("queue_delay_ns").first(),
            pageable_copy=touches_pageable.any(),
            copies_to_host=fills_pageable.any(),
        )
    )
    nodes = host.nodes
    joined = calls.join(caused, on="api_row", how="left", maintain_order="left")
    return joined.with_columns_seq(
        waits_for_gpu=_waits_for_gpu(joined),
        gpu_ops=pl.col("gpu_ops").fill_null(0),
        blocking=pl.col("is_sync") | pl.col("pageable_copy").fill_null(value=False),
        op=nodes["name"].gather(joined["op_row"]),
        op_chain=nodes["op_chain"].gather(joined["op_row"]),
        region=nodes["name"].gather(joined["region_row"]),
    )


def _waits_for_gpu(calls: pl.DataFrame) -> pl.Series:
    """Tell of each API call whether the program waited in it until the GPU had caught up.

    A copy to pageable memory returns when the data is there. One from it returns when the driver
    has put the data aside, however much the GPU still has to do.
    """
    is_wait = pl.col("is_sync") | pl.col("copies_to_host").fill_null(value=False)
    waits = calls.filter(is_wait & ~pl.col("profiler_own"))
    timed = waits.drop_nulls(["start_ns", "end_ns"])
    inside_another = timed.join(outermost(timed), on="api_row", how="anti")
    counted = waits.join(inside_another, on="api_row", how="anti")
    return calls["api_row"].is_in(counted["api_row"].implode())
