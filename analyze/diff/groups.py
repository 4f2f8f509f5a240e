"""Alike work of one trace, with its amounts in every forward."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from analyze.diff.noise import Amount, amount
from analyze.tables.build import Trace
from analyze.tables.host import CHAIN_SEPARATOR

FORWARD = "forward"


@dataclass
class Group:
    """Work with the same name, done by the same op chain.

    Attributes:
        name: short, as it is shown.
        raw_name: as the profiler wrote it.
        chain: the ops around it, root to leaf; null where unknown.
        family: of a kernel.
        count: how often, per index of the forward; 0 is left out.
        time_ns: its time, likewise: on the GPU, or of ops and calls on the CPU.
        gpu_ns: of an op, the GPU work it launched itself, likewise.
        inside: how many op chains inside of it are counted in its time.
    """

    name: str
    raw_name: str
    chain: str | None
    family: str | None = None
    count: dict[int, int] = field(default_factory=dict)
    time_ns: dict[int, int] = field(default_factory=dict)
    gpu_ns: dict[int, int] = field(default_factory=dict)
    inside: int = 0


def kernel_groups(trace: Trace) -> list[Group]:
    """Return the kernels launched in forwards."""
    kernels = trace.facts.gpu_ops.filter(pl.col("kind") == "kernel")
    return _groups(kernels, ("short_name", "name", "op_chain", "family"), "dur_ns")


def copy_groups(trace: Trace) -> list[Group]:
    """Return the copies and sets launched in forwards."""
    copies = trace.facts.gpu_ops.filter(pl.col("kind") != "kernel")
    return _groups(copies, ("name", "name", "op_chain", None), "dur_ns")


def sync_groups(trace: Trace) -> list[Group]:
    """Return the synchronising calls made in forwards, without the profiler's own."""
    syncs = trace.facts.api_calls.filter(pl.col("is_sync") & ~pl.col("profiler_own"))
    return _groups(syncs, ("name", "name", "op_chain", None), "dur_ns")


def op_groups(trace: Trace) -> list[Group]:
    """Return the ops in forwards by op chain, with CPU self time and the GPU work they launched."""
    columns = ("op_chain", "name", "op_chain", None)
    return _groups(trace.facts.ops, columns, "self_ns", "own_device_ns")


def _groups(
    frame: pl.DataFrame,
    columns: tuple[str, str, str, str | None],
    time: str,
    gpu_time: str | None = None,
) -> list[Group]:
    name, raw_name, chain, family = columns
    key = ("name", "raw_name", "chain", "family")
    amounts = (
        frame.drop_nulls(FORWARD)
        .select(
            FORWARD,
            time=time,
            gpu_time=pl.col(gpu_time) if gpu_time else pl.lit(0),
            name=pl.col(name).fill_null("(unnamed)"),
            raw_name=pl.col(raw_name).fill_null("(unnamed)"),
            chain=chain,
            family=pl.col(family) if family else pl.lit(None, dtype=pl.String),
        )
        .group_by(*key, FORWARD, maintain_order=True)
        .agg(count=pl.len(), time=pl.col("time").sum(), gpu_time=pl.col("gpu_time").sum())
    )
    groups: dict[tuple[str | None, ...], Group] = {}
    for row in amounts.iter_rows(named=True):
        identity = tuple(row[column] for column in key)
        group = groups.setdefault(identity, Group(*identity))
        group.count[row[FORWARD]] = row["count"]
        group.time_ns[row[FORWARD]] = row["time"]
        group.gpu_ns[row[FORWARD]] = row["gpu_time"]
    return list(groups.values())


def fold_subtrees(groups: Sequence[Group]) -> list[Group]:
    """Put ops under the outermost of them that is around them: their times, but not their count.

    Args:
        groups: ops that are in one of two traces only, each named by its op chain.
    """
    folded: dict[str, Group] = {}
    for group in sorted(groups, key=lambda group: len(group.name)):
        around = next((above for above in _above(group.name) if above in folded), None)
        if around is None:
            folded[group.name] = replace(group, time_ns={**group.time_ns}, gpu_ns={**group.gpu_ns})
            continue
        outer = folded[around]
        outer.inside += 1
        _add(outer.time_ns, group.time_ns)
        _add(outer.gpu_ns, group.gpu_ns)
    return list(folded.values())


def _add(total: dict[int, int], part: Mapping[int, int]) -> None:
    for forward, time_ns in part.items():
        total[forward] = total.get(forward, 0) + time_ns


def _above(chain: str) -> Iterator[str]:
    """Yield the chains of the ops around the last op of a chain, outermost first."""
    ops = chain.split(CHAIN_SEPARATOR)
    return (CHAIN_SEPARATOR.join(ops[:depth]) for depth in range(1, len(ops)))


def per_forward(parts: Sequence[Mapping[int, int]], forwards: int, scale: float = 1.0) -> Amount:
    """Return the median and spread of a sum over the forwards, those with nothing included.

    Args:
        parts: amounts per index of the forward.
        forwards: how many there are.
        scale: what each value is divided by.
    """
    return amount([sum(part.get(index, 0) for part in parts) / scale for index in range(forwards)])
