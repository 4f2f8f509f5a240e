"""The streams of the GPUs while a forward runs, and when each device had nothing to do."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from analyze.report.gaps import LATE
from analyze.report.views.columns import exact_us, microseconds_of, relative_us
from analyze.report.views.forward import DrawnForward
from analyze.report.views.host_lanes import HostLanes
from analyze.report.views.model import Device, GpuSlices, IdleTimes, LeftOut, Stream
from analyze.report.views.slices import condense
from analyze.report.views.texts import UNNAMED, Texts, label
from analyze.tables.build import Trace

MAX_STREAMS = 24
MAX_SLICES = 2000
MAX_IDLE_TIMES = 500
"""Of each device."""

MAX_ROWS = 4
"""Rows of a stream; where more of its work overlaps, the last row shows it on top of each other."""

_TOLERANCE_NS = 1000
"""Overlap that is no overlap: the profiler of old torch versions rounds times to microseconds."""

_HOST_TIMES = ("op_ns", "outside_ops_ns", "in_ops_ns", "in_api_ns")
_LANE = ["device_label", "stream_label"]


@dataclass(frozen=True)
class GpuLanes:
    """The streams, the devices, and what is not drawn."""

    streams: list[Stream]
    devices: list[Device]
    left_out: LeftOut


def gpu_lanes(trace: Trace, forward: DrawnForward, host: HostLanes, texts: Texts) -> GpuLanes:
    """Return the streams with the work in the window of a forward, whatever launched it."""
    work = _work(trace, forward)
    lanes = (
        work.group_by(_LANE)
        .agg(time_ns=pl.col("dur_ns").sum())
        .sort("time_ns", *_LANE, descending=[True, False, False])
    )
    drawn = lanes.head(MAX_STREAMS)
    is_drawn = pl.struct(_LANE).is_in(drawn.select(pl.struct(_LANE)).to_series().implode())
    kept = condense(work.filter(is_drawn), [*_LANE, "own"], MAX_SLICES, forward.length_ns)
    slices = _with_places(kept.slices, host)
    streams = [
        Stream(
            label(device), label(stream), _as_slices(own.sort("start_ns", "end_ns"), texts, forward)
        )
        for (device, stream), own in slices.sort(_LANE, maintain_order=True).group_by(
            _LANE, maintain_order=True
        )
    ]
    left = work.filter(~is_drawn)["dur_ns"]
    left_out = LeftOut(
        lanes=lanes.height - drawn.height,
        slices=len(left) + kept.left_out,
        dur_us=exact_us(int(left.sum()) + kept.left_out_ns),
    )
    return GpuLanes(streams, _devices(trace, forward, drawn, texts), left_out)


def _work(trace: Trace, forward: DrawnForward) -> pl.DataFrame:
    work = trace.facts.gpu_ops.select(
        "start_ns", "dur_ns", "name", "kind", "family", "bytes", "op_chain", "api_row",
        "api", "api_start_ns", "queue_delay_ns", *_LANE,
        own=pl.col("forward").eq_missing(forward.index),
    ).with_row_index("id")  # fmt: skip
    return forward.overlapping(work)


def _with_places(slices: pl.DataFrame, host: HostLanes) -> pl.DataFrame:
    return slices.join(host.calls, on="api_row", how="left", maintain_order="left")


def _as_slices(slices: pl.DataFrame, texts: Texts, forward: DrawnForward) -> GpuSlices:
    is_kernel = slices["kind"] == "kernel"
    return GpuSlices(
        start_us=relative_us(slices, forward),
        dur_us=microseconds_of(slices["end_ns"] - slices["start_ns"]),
        row=rows_of(slices.select("start_ns", "end_ns").iter_rows()),
        name=texts.known_places(slices["name"].fill_null(UNNAMED)),
        kind=slices["kind"].to_list(),
        family=texts.places(slices["family"].set(~is_kernel, None)),
        op_chain=texts.places(slices["op_chain"]),
        thread=slices["thread"].to_list(),
        call=slices["call"].to_list(),
        launch_us=microseconds_of(slices["api_start_ns"] - forward.start_ns),
        queue_us=microseconds_of(slices["queue_delay_ns"]),
        bytes=slices["bytes"].set(slices["count"] > 1, None).to_list(),
        own=slices["own"].to_list(),
        count=slices["count"].to_list(),
        sum_us=microseconds_of(slices["sum_ns"]),
        launch_name=texts.places(slices["api"]),
    )


def rows_of(slices: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each slice the first row in which nothing is before it.

    Args:
        slices: start and end in nanoseconds, by start.
    """
    busy_until = [-math.inf] * MAX_ROWS
    rows = []
    for start, end in slices:
        free = (row for row, until in enumerate(busy_until) if until <= start + _TOLERANCE_NS)
        row = next(free, MAX_ROWS - 1)
        busy_until[row] = max(busy_until[row], end)
        rows.append(row)
    return rows


def _devices(
    trace: Trace, forward: DrawnForward, lanes: pl.DataFrame, texts: Texts
) -> list[Device]:
    gaps = forward.overlapping(trace.gaps)
    devices = []
    for device in lanes["device_label"].unique().sort():
        own = gaps.filter(pl.col("device_label").eq_missing(pl.lit(device, pl.String)))
        shown = own.top_k(MAX_IDLE_TIMES, by="dur_ns").sort("start_ns")
        left_ns = int(own["dur_ns"].sum()) - int(shown["dur_ns"].sum())
        left_out = LeftOut(0, own.height - shown.height, exact_us(left_ns))
        devices.append(Device(label(device), _idle_times(shown, texts, forward), left_out))
    return devices


def _idle_times(gaps: pl.DataFrame, texts: Texts, forward: DrawnForward) -> IdleTimes:
    is_late = pl.col("cause").is_in(LATE)
    host = gaps.select(pl.when(is_late).then(pl.col(name)).alias(name) for name in _HOST_TIMES)
    return IdleTimes(
        start_us=relative_us(gaps, forward),
        dur_us=microseconds_of(gaps["dur_ns"]),
        cause=gaps["cause"].to_list(),
        op_chain=texts.places(gaps["op_chain"]),
        next=texts.places(gaps["next_name"]),
        op_us=microseconds_of(host["op_ns"]),
        outside_ops_us=microseconds_of(host["outside_ops_ns"]),
        in_ops_us=microseconds_of(host["in_ops_ns"]),
        in_api_us=microseconds_of(host["in_api_ns"]),
    )
