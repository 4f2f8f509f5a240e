"""Which events of a trace are kept with chosen stretches of time, so that nothing is half there.

On the host whatever overlaps the kept time is kept whole. GPU work follows its launch, never its
own time; only work that has no launch in the file is kept by the op that its ``External id`` names,
or by its own time. Arrows are kept with both ends or not at all.
"""

from dataclasses import dataclass

import polars as pl

from analyze.tables.correlation import calls_of
from analyze.tables.nesting import ROUNDING_NS
from analyze.trim.index import FLOWS, HOST, NAMING, RECORDED, Role
from analyze.trim.windows import Window, overlapping, windows_of_lanes


@dataclass(frozen=True)
class Choice:
    """What is chosen.

    Attributes:
        windows: the kept time, from :func:`analyze.trim.windows.merged`.
        ids_name_ops: the ``External id`` of GPU work names the op behind it.
        named_launches: columns ``external_id`` and ``start_ns`` of calls that GPU work is linked to
            by it; None for no such call.
        tail_sync_ns: start of the synchronisation that the profiler makes when it stops.
        before_tail_ns: start of the last launch or synchronisation before that one.
    """

    windows: list[Window]
    ids_name_ops: bool = False
    named_launches: pl.DataFrame | None = None
    tail_sync_ns: int | None = None
    before_tail_ns: int | None = None


@dataclass(frozen=True)
class Closure:
    """What is kept.

    Attributes:
        kept: a boolean for each event of the file.
        gpu_ops, all_gpu_ops: kernels, copies and sets that are kept, and those of the file.
        unlinked: kept GPU ops whose launch is not in the file.
        reaching_out: kept host events that begin before the kept time or end after it.
        flows: kept arrows.
        half_flows: ends of arrows in the kept time that are left out, for want of the other end.
        recorded: kept events that say what ran, on the host or the GPU.
    """

    kept: pl.Series
    gpu_ops: int
    all_gpu_ops: int
    unlinked: int
    reaching_out: int
    flows: int
    half_flows: int
    recorded: int


def close(index: pl.DataFrame, choice: Choice) -> Closure:
    """Say what is kept of a trace.

    Args:
        index: see :class:`analyze.trim.index.EventIndex`.
        choice: what is chosen.
    """
    windows = windows_of_lanes(index, choice.windows, pl.col("role") == Role.OP)
    frame = pl.concat([index, overlapping(index, windows)], how="horizontal")
    frame = frame.with_columns(kept=pl.col("overlaps") & ~pl.col("role").is_in(NAMING))
    frame = _without_neighbours(frame)
    frame = _with_profilers_own(frame, choice)
    frame = _follow_launches(frame, choice)
    frame = _follow_ops(frame, choice)
    frame = _follow_annotations(frame)
    half_flows = frame.filter(pl.col("kept") & pl.col("role").is_in(FLOWS)).height
    frame = _whole_flows(frame)
    frame = _with_names(frame)
    kept = frame.filter("kept")
    gpu_ops = kept.filter(pl.col("role") == Role.GPU_OP)
    flows = kept.filter(pl.col("role").is_in(FLOWS))
    return Closure(
        kept=frame["kept"],
        gpu_ops=gpu_ops.height,
        all_gpu_ops=frame.filter(pl.col("role") == Role.GPU_OP).height,
        unlinked=gpu_ops.filter(~pl.col("linked")).height,
        reaching_out=kept.filter(pl.col("role").is_in(HOST) & pl.col("reaches_out")).height,
        flows=flows["key"].n_unique(),
        half_flows=half_flows - flows.height,
        recorded=kept.filter(pl.col("role").is_in(RECORDED)).height,
    )


def _without_neighbours(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop the ProfilerSteps that touch the kept time only because times are rounded."""
    is_neighbour = (
        (pl.col("role") == Role.STEP) & pl.col("reaches_out") & (pl.col("inside_ns") <= ROUNDING_NS)
    )
    return frame.with_columns(pl.col("kept") & ~is_neighbour)


def _with_profilers_own(frame: pl.DataFrame, choice: Choice) -> pl.DataFrame:
    """Keep the profiler's span only whole, and its last synchronisation where nothing is missing.

    It follows the last launch; without that it would show a wait for nothing.
    """
    is_cut = (pl.col("role") == Role.PROFILERS_SPAN) & pl.col("reaches_out")
    frame = frame.with_columns(pl.col("kept") & ~is_cut)
    if choice.tail_sync_ns is None or choice.before_tail_ns is None:
        return frame
    is_call = pl.col("role") == Role.API_CALL
    is_before = is_call & (pl.col("start_ns") == choice.before_tail_ns)
    if frame.filter(is_before & pl.col("kept")).is_empty():
        return frame
    is_tail = is_call & (pl.col("start_ns") == choice.tail_sync_ns)
    return frame.with_columns(pl.col("kept") | is_tail.fill_null(value=False))


def _follow_launches(frame: pl.DataFrame, choice: Choice) -> pl.DataFrame:
    """Keep what an API call caused, and the arrow to it, exactly where the call is kept."""
    calls = frame.with_row_index("row").filter(pl.col("role") == Role.API_CALL)
    rows = calls_of(frame, calls)["row"]
    if choice.named_launches is not None:
        named = _calls_by_external_id(frame, calls, choice.named_launches)
        rows = rows.zip_with(rows.is_not_null(), named)
    joined = frame.with_columns(call_kept=frame["kept"].gather(rows))
    linked = pl.col("call_kept").is_not_null() & ~pl.col("role").is_in(HOST)
    return joined.with_columns(
        linked=linked, kept=pl.when(linked).then("call_kept").otherwise("kept")
    ).drop("call_kept")


def _calls_by_external_id(
    frame: pl.DataFrame, calls: pl.DataFrame, launches: pl.DataFrame
) -> pl.Series:
    """Return the row of the call by which each GPU op without a correlation id was launched."""
    named = calls.join(launches, on=["external_id", "start_ns"], how="semi")
    joined = frame.join(
        named.select("external_id", "row").unique("external_id", keep="first"),
        on="external_id",
        how="left",
        maintain_order="left",
    )
    is_nameless = (pl.col("role") == Role.GPU_OP) & pl.col("correlation").is_null()
    return joined.select(pl.when(is_nameless).then("row"))["row"]


def _follow_ops(frame: pl.DataFrame, choice: Choice) -> pl.DataFrame:
    """Keep GPU work without a launch where the op that it names is kept."""
    if not choice.ids_name_ops:
        return frame
    ops = (
        frame.filter(pl.col("role") == Role.OP)
        .select("external_id", op_kept="kept")
        .drop_nulls("external_id")
        .unique("external_id", keep="first", maintain_order=True)
    )
    joined = frame.join(ops, on="external_id", how="left", maintain_order="left")
    named = (pl.col("role") == Role.GPU_OP) & ~pl.col("linked") & pl.col("op_kept").is_not_null()
    return joined.with_columns(kept=pl.when(named).then("op_kept").otherwise("kept")).drop(
        "op_kept"
    )


def _follow_annotations(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the GPU's picture of an annotation where the annotation is kept.

    The two have name and ``External id`` in common. Where no id fits, the name must, and the
    picture must overlap kept work on its stream.
    """
    host = frame.filter(pl.col("role").is_in([Role.ANNOTATION, Role.STEP]))
    by_id = host.group_by("key", "external_id").agg(pair_kept=pl.col("kept").any())
    by_name = host.group_by("key").agg(name_kept=pl.col("kept").any())
    joined = frame.with_columns(overlapping(frame, _kept_work(frame)).select(beside="overlaps"))
    for part, on in ((by_id, ["key", "external_id"]), (by_name, ["key"])):
        joined = joined.join(part, on=on, how="left", maintain_order="left")
    kept = pl.coalesce("pair_kept", pl.col("name_kept") & pl.col("beside")).fill_null(value=False)
    is_picture = pl.col("role") == Role.GPU_ANNOTATION
    return frame.with_columns(
        joined.select(kept=pl.when(is_picture).then(kept).otherwise("kept"))["kept"]
    )


def _kept_work(frame: pl.DataFrame) -> pl.DataFrame:
    """Return when kept GPU work ran, as :func:`overlapping` takes windows.

    Work of one stream may overlap; a window lasts at least as long as those that began before it.
    """
    work = frame.filter((pl.col("role") == Role.GPU_OP) & pl.col("kept"))
    return (
        work.drop_nulls(["start_ns", "end_ns"])
        .sort("start_ns")
        .select("lane", from_ns="start_ns", until_ns=pl.col("end_ns").cum_max().over("lane"))
    )


def _whole_flows(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop the ends of arrows whose other end is not kept."""
    is_flow = pl.col("role").is_in(FLOWS)
    whole = (
        frame.filter(is_flow & pl.col("kept"))
        .group_by("key")
        .agg(
            whole=(pl.col("role") == Role.FLOW_START).any()
            & (pl.col("role") == Role.FLOW_END).any()
        )
    )
    joined = frame.join(whole, on="key", how="left", maintain_order="left")
    return joined.with_columns(
        pl.col("kept") & (~is_flow | pl.col("whole").fill_null(value=False))
    ).drop("whole")


def _with_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the names and places of the processes and threads that something is kept of."""
    kept = frame.filter("kept")
    processes, lanes = kept["process"].unique(), kept["lane"].unique()
    is_needed = (
        pl.when(pl.col("role") == Role.PROCESS_NAME)
        .then(pl.col("process").is_in(processes.implode()))
        .when(pl.col("role") == Role.THREAD_NAME)
        .then(pl.col("lane").is_in(lanes.implode()))
    )
    return frame.with_columns(pl.col("kept") | is_needed.fill_null(value=False))
