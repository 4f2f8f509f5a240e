"""The time before the first GPU work, of which nobody knows whether the GPU was idle in it.

What it did then may have been launched before the recording began. So this time is no gap, and in
no share of busy or idle time.
"""

from typing import NamedTuple

import polars as pl

from analyze.tables.facts import Facts
from analyze.tables.idle import loading_in
from analyze.tables.intervals import covered_before

_INTERVAL = ("start_ns", "dur_ns")


class Lead(NamedTuple):
    """The time from the first event of the host to the first GPU work, in nanoseconds.

    Attributes:
        time_ns: its length.
        loading_ns: of it, loading of data on any thread.
        recorded_ns: from that event to the last end of host or GPU.
    """

    time_ns: int
    loading_ns: int
    recorded_ns: int


def find_lead(facts: Facts) -> Lead | None:
    """Return it; None without events of the host or GPU work, and where GPU work comes first."""
    nodes = facts.host.nodes
    host = pl.concat([frame.select_seq(_INTERVAL) for frame in (nodes, facts.api_calls)])
    work = facts.gpu_ops.select_seq(_INTERVAL).drop_nulls()
    begin, first = host["start_ns"].min(), work["start_ns"].min()
    if not isinstance(begin, int) or not isinstance(first, int) or first <= begin:
        return None
    end = pl.concat([host, work]).drop_nulls().select_seq(pl.sum_horizontal(_INTERVAL).max()).item()
    loading = loading_in(nodes)
    until = pl.DataFrame({"start_ns": [first]}, schema={"start_ns": pl.Int64})
    return Lead(
        time_ns=first - begin,
        loading_ns=covered_before(until, loading, []).item(),
        recorded_ns=end - begin,
    )
