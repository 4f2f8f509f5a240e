"""What makes two traces hard to compare: another device, workload, unit or way of recording."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from analyze.tables.build import Trace
from analyze.tables.captured import SHAPE_COLUMNS
from analyze.tables.host import CHAIN_SEPARATOR
from analyze.tables.units import UnitName, unit_name
from analyze.words import counted, printable, share

_FACTS = {
    "vendor": "GPUs are of different vendors",
    "device_name": "devices differ",
    "sm_count": "the devices have different numbers of multiprocessors",
    "world_size": "the jobs have different numbers of ranks",
    "phase": "the captured phases differ",
    **{
        name: f"the captured workloads differ in {name.replace('_', ' ')}" for name in SHAPE_COLUMNS
    },
    "causal": "the captured workloads differ in whether they are causal",
    "torch_version": "torch versions differ",
}
_RECORDED = {
    "has_gpu": "GPU work",
    "has_shapes": "input shapes",
    "has_stacks": "Python stacks",
    "has_memory": "memory events",
}
_FLOATING = ("fp64", "fp32", "fp16", "bf16", "fp8", "fp4")
_ATTENTION_FORWARDS = {"attn_fwd", "sdpa_fwd"}
_SHOWN_SHAPES = 120
_MOST_OUTSIDE = 0.01
"""Share of GPU time that may lie outside of all forwards without being said."""

Facts = Mapping[str, Any]


def differences(before: Trace, after: Trace) -> list[str]:
    """Return what a reader must know before believing a change, a sentence each."""
    ours, theirs = (trace.table("trace").row(0, named=True) for trace in (before, after))
    return [
        *_facts(ours, theirs),
        *_units(before.forward_source, after.forward_source),
        *_dtypes(before, after),
        *_recorded(ours, theirs),
        *_shapes(before, after),
        *_side("BEFORE", before, ours),
        *_side("AFTER", after, theirs),
    ]


def _facts(before: Facts, after: Facts) -> Iterator[str]:
    for name, words in _FACTS.items():
        one, other = before[name], after[name]
        if one is not None and other is not None and one != other:
            yield f"{words}: {printable(str(one))} -> {printable(str(other))}"


def _recorded(before: Facts, after: Facts) -> Iterator[str]:
    for name, words in _RECORDED.items():
        if before[name] != after[name]:
            side = "BEFORE" if before[name] else "AFTER"
            yield f"only {side} recorded {words}, so the profiler slowed the hosts differently"


def _units(before: str, after: str) -> Iterator[str]:
    if not is_same_unit(before, after):
        yield f"a forward is not the same thing in both: {printable(before)} -> {printable(after)}"


def is_same_unit(one: str, other: str) -> bool:
    """Whether two names of forwards mean the same: both annotations around an attention call do."""
    return one == other or {one, other} <= _ATTENTION_FORWARDS


def _dtypes(before: Trace, after: Trace) -> Iterator[str]:
    """Compare what the ops that nothing is around were given; inside, an op may cast."""
    ours, theirs = _outer_dtype(before), _outer_dtype(after)
    if ours is not None and theirs is not None and ours != theirs:
        yield f"the commonest floating dtypes of the outermost ops differ: {ours} -> {theirs}"


def _outer_dtype(trace: Trace) -> str | None:
    outer = trace.facts.ops.filter(
        (pl.col("depth") == 0) & pl.col("forward").is_not_null() & pl.col("dtype").is_in(_FLOATING)
    )
    commonest = outer["dtype"].value_counts().sort("count", "dtype", descending=[True, False])
    return commonest["dtype"][0] if commonest.height else None


def _shapes(before: Trace, after: Trace) -> Iterator[str]:
    """Compare the input shapes of ops that both traces have, by op chain."""
    ours, theirs = _shapes_by_chain(before), _shapes_by_chain(after)
    common = [chain for chain in ours if chain in theirs]
    other = [chain for chain in common if ours[chain].isdisjoint(theirs[chain])]
    if other:
        example = min(other, key=lambda chain: (chain.count(CHAIN_SEPARATOR), chain))
        shown = [min(side[example])[:_SHOWN_SHAPES] for side in (ours, theirs)]
        yield (
            f"{len(other):,} of {counted(len(common), 'op chain')} in both got inputs of other"
            f" shapes, such as {printable(example)}: {printable(shown[0])} -> {printable(shown[1])}"
        )


def _shapes_by_chain(trace: Trace) -> dict[str, frozenset[str]]:
    shaped = trace.facts.ops.filter(
        pl.col("forward").is_not_null() & pl.col("shapes").str.contains(r"\d")
    )
    shapes = shaped.group_by("op_chain", maintain_order=True).agg(pl.col("shapes").unique())
    return {chain: frozenset(found) for chain, found in shapes.iter_rows()}


def _side(side: str, trace: Trace, facts: Facts) -> Iterator[str]:
    if facts["truncated"]:
        yield f"{side} is cut short: of what it launched last, work is missing"
    if trace.header.trimmed:
        yield f"{side} was trimmed: it is a part of a recording"
    if facts["numerics_ok"] is False:
        yield f"{side} computes wrong results, by capture.json: its speed proves nothing"
    unit = unit_name(trace.forward_source)
    yield from outside_sentences(side, share_outside_forwards(trace), unit)


def outside_sentences(trace: str, outside: float | None, unit: UnitName) -> Iterator[str]:
    """Say which share of a trace's GPU time is in no forward, where it matters."""
    if outside is not None and outside > _MOST_OUTSIDE:
        yield f"{trace}: {share(outside)} of the GPU time was launched in no {unit}, and left out"


def share_outside_forwards(trace: Trace) -> float | None:
    """Return the share of the GPU time, summed, that was launched in no forward."""
    gpu_ops = trace.facts.gpu_ops
    total = int(gpu_ops["dur_ns"].sum())
    outside = int(gpu_ops.filter(pl.col("forward").is_null())["dur_ns"].sum())
    return outside / total if total else None
