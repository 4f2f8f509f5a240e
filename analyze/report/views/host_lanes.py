"""The threads of the host while a forward runs: ops, annotations, runtime calls."""

from dataclasses import dataclass

import polars as pl

from analyze.report.views.columns import exact_us, microseconds_of, relative_us
from analyze.report.views.forward import DrawnForward
from analyze.report.views.launched import SUMS, launched_by, launched_within
from analyze.report.views.model import Calls, LeftOut, Spans, Thread
from analyze.report.views.slices import condense
from analyze.report.views.texts import UNNAMED, Texts, label
from analyze.tables.build import Trace

MAX_THREADS = 12
MAX_SPANS = 3000
MAX_CALLS = 1500
MAX_DEPTH = 24
"""Ops and annotations around a span that is drawn; deeper ones are left out."""


@dataclass(frozen=True)
class HostLanes:
    """The threads, and where their calls are drawn.

    Attributes:
        threads: the forward's own first, then by time.
        left_out: what is not drawn.
        calls: columns ``api_row``, ``thread`` and ``call``: place of each call that is drawn.
    """

    threads: list[Thread]
    left_out: LeftOut
    calls: pl.DataFrame


def host_lanes(trace: Trace, forward: DrawnForward, texts: Texts) -> HostLanes:
    """Return the threads with what they did in the window of a forward."""
    spans, calls = _spans(trace, forward), _calls(trace, forward)
    lanes = _lanes(spans, calls, forward)
    drawn = lanes.head(MAX_THREADS)
    is_drawn = pl.col("lane").is_in(drawn["lane"].implode()) & (pl.col("depth") < MAX_DEPTH)
    length = forward.length_ns
    spans_drawn = condense(
        spans.filter(is_drawn), ["lane", "depth", "is_op", "own"], MAX_SPANS, length, SUMS
    )
    calls_drawn = condense(calls.filter(is_drawn), ["lane", "kind", "own"], MAX_CALLS, length, SUMS)
    threads, places = [], []
    for number, (lane, pid, tid) in enumerate(drawn.select("lane", "pid", "tid").iter_rows()):
        own_spans = _of_lane(spans_drawn.slices, lane)
        own_calls = _of_lane(calls_drawn.slices, lane)
        as_calls = _as_calls(own_calls, texts, forward)
        threads.append(
            Thread(label(pid), label(tid), _as_spans(own_spans, texts, forward), as_calls)
        )
        places.append(_places(own_calls, number))
    left = pl.concat([frame.filter(~is_drawn).select("dur_ns") for frame in (spans, calls)])[
        "dur_ns"
    ]
    left_out = LeftOut(
        lanes=lanes.height - drawn.height,
        slices=len(left) + spans_drawn.left_out + calls_drawn.left_out,
        dur_us=exact_us(int(left.sum()) + spans_drawn.left_out_ns + calls_drawn.left_out_ns),
    )
    return HostLanes(threads, left_out, pl.concat(places) if places else _NO_PLACES)


_NO_PLACES = pl.DataFrame(schema={"api_row": pl.UInt32, "thread": pl.UInt32, "call": pl.UInt32})


def _spans(trace: Trace, forward: DrawnForward) -> pl.DataFrame:
    """Return the ops and annotations of the window, each with the number of those around it."""
    nodes = trace.facts.host.nodes
    rows = nodes.select(
        "name", "lane", "pid", "tid", "start_ns", "dur_ns", "is_op", "phase", "absorbed"
    ).with_row_index("id")
    rows = forward.overlapping(rows).filter(~pl.col("absorbed"))
    own = trace.facts.forwards.index_at(rows).eq_missing(forward.index)
    rows = rows.with_columns(own=own, depth=_depths(nodes["parent"], rows["id"]))
    return launched_within(rows, trace.facts.gpu_ops)


def _depths(parents: pl.Series, rows: pl.Series) -> pl.Series:
    """Return how many nodes are above each row; parents are never merged nodes."""
    above = parents.gather(rows)
    depth = pl.zeros(len(rows), dtype=pl.UInt32, eager=True)
    while above.null_count() < len(above):
        depth = depth + above.is_not_null().cast(pl.UInt32)
        above = parents.gather(above)
    return depth


def _calls(trace: Trace, forward: DrawnForward) -> pl.DataFrame:
    """Return the runtime calls of the window."""
    calls = trace.facts.api_calls.select(
        "name", "lane", "pid", "tid", "start_ns", "dur_ns", "op_chain",
        id="api_row",
        own=pl.col("forward").eq_missing(forward.index),
        kind=pl.when("blocking")
        .then(pl.lit("sync"))
        .when("is_launch")
        .then(pl.lit("launch"))
        .when(pl.col("gpu_ops") > 0)
        .then(pl.lit("copy"))
        .otherwise(pl.lit("other")),
        depth=pl.lit(0, pl.UInt32),
    )  # fmt: skip
    return launched_by(forward.overlapping(calls), trace.facts.gpu_ops)


def _lanes(spans: pl.DataFrame, calls: pl.DataFrame, forward: DrawnForward) -> pl.DataFrame:
    """Return the threads, the forward's own first, then by the time of what is outermost."""
    both = pl.concat(
        [frame.select("lane", "pid", "tid", "dur_ns", "depth") for frame in (spans, calls)]
    )
    outermost_ns = pl.col("dur_ns").filter(pl.col("depth") == 0).sum()
    return (
        both.group_by("lane")
        .agg(pl.col("pid", "tid").first(), time_ns=outermost_ns)
        .with_columns(own=pl.col("lane").eq_missing(pl.lit(forward.lane, pl.UInt32)))
        .sort("own", "time_ns", "lane", descending=[True, True, False])
    )


def _of_lane(slices: pl.DataFrame, lane: int | None) -> pl.DataFrame:
    return slices.filter(pl.col("lane").eq_missing(pl.lit(lane, pl.UInt32))).sort(
        "start_ns", "depth", maintain_order=True
    )


def _as_spans(slices: pl.DataFrame, texts: Texts, forward: DrawnForward) -> Spans:
    return Spans(
        start_us=relative_us(slices, forward),
        dur_us=microseconds_of(slices["end_ns"] - slices["start_ns"]),
        depth=slices["depth"].to_list(),
        name=texts.known_places(slices["name"].fill_null(UNNAMED)),
        is_op=slices["is_op"].to_list(),
        own=slices["own"].to_list(),
        count=slices["count"].to_list(),
        sum_us=microseconds_of(slices["sum_ns"]),
        launched=slices["launched"].to_list(),
        launched_us=microseconds_of(slices["launched_ns"]),
    )


def _as_calls(slices: pl.DataFrame, texts: Texts, forward: DrawnForward) -> Calls:
    return Calls(
        start_us=relative_us(slices, forward),
        dur_us=microseconds_of(slices["end_ns"] - slices["start_ns"]),
        name=texts.known_places(slices["name"].fill_null(UNNAMED)),
        kind=slices["kind"].to_list(),
        op_chain=texts.places(slices["op_chain"]),
        own=slices["own"].to_list(),
        count=slices["count"].to_list(),
        sum_us=microseconds_of(slices["sum_ns"]),
        launched=slices["launched"].to_list(),
        launched_us=microseconds_of(slices["launched_ns"]),
    )


def _places(calls: pl.DataFrame, thread: int) -> pl.DataFrame:
    return (
        calls.select(api_row="members")
        .with_row_index("call")
        .explode("api_row")
        .select(
            pl.col("api_row").cast(pl.UInt32),
            pl.lit(thread, pl.UInt32).alias("thread"),
            pl.col("call").cast(pl.UInt32),
        )
    )
