"""Memory: the blocks that torch's allocators gave out and took back, and which op asked for them.

The profiler writes an event at each (``profile_memory=True``), on the thread that asked; the op is
the innermost around it in time on that thread. Blocks are told apart by their address, which the
events hold since torch 1.13. Sizes are the allocator's: a caching allocator rounds them up.
"""

import polars as pl

from analyze.tables.facts import Facts
from analyze.tables.sources import sources_at

OUT_OF_MEMORY = "[OutOfMemory]"
_EVENTS = ("[memory]", OUT_OF_MEMORY)

_DEVICE_TYPES = {
    0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia",
    20: "privateuse1",
}  # fmt: skip
"""c10::DeviceType of torch 2.13, those with an allocator that reports."""

_DEVICE = ("device_type", "device")


def build_memory(events: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Return the memory events in the order of their times; times in nanoseconds.

    Args:
        events: the ``memory`` family frame with ``pid`` and ``tid``.
        facts: the linked events of a trace.

    Returns:
        The documented columns, and ``ended_row``: the row of the next event at the address of an
        allocated block, at which it is there no more; null where it stayed.
    """
    frame = (
        events.filter(pl.col("name").is_in(_EVENTS))
        .sort("start_ns", "event_index", nulls_last=True, maintain_order=True)
        .with_columns_seq(
            kind=_kind(),
            address=pl.when(pl.col("address") != 0).then("address"),
            device=pl.when(pl.col("device") >= 0).then("device"),
            device_type=_device_type(),
        )
    )
    frame = frame.with_columns_seq(_known_total("total_allocated"), _known_total("total_reserved"))
    moved = pl.when(pl.col("kind") != "out_of_memory").then("bytes").otherwise(0).fill_null(0)
    frame = frame.with_columns_seq(running_bytes=moved.cum_sum().over(_DEVICE))
    return _add_owners(_add_ends(frame), facts)


def _kind() -> pl.Expr:
    return (
        pl.when(pl.col("name") == OUT_OF_MEMORY)
        .then(pl.lit("out_of_memory"))
        .when(pl.col("bytes") < 0)
        .then(pl.lit("free"))
        .when(pl.col("bytes") >= 0)
        .then(pl.lit("allocate"))
    )


def _device_type() -> pl.Expr:
    code = pl.col("device_type")
    spelt = pl.concat_str(pl.lit("device type "), code.cast(pl.String))
    return code.replace_strict(_DEVICE_TYPES, default=spelt, return_dtype=pl.String)


def _known_total(name: str) -> pl.Expr:
    """Take a total that is 0 throughout as not kept: the CPU reserves nothing."""
    is_kept = (pl.col(name) != 0).any().over(_DEVICE)
    return pl.when(is_kept).then(name)


def _add_ends(frame: pl.DataFrame) -> pl.DataFrame:
    """Add when each block was given back: the next event at its address."""
    block = [*_DEVICE, "address"]
    numbered = frame.with_row_index("row")
    of_blocks = numbered.filter(
        pl.col("address").is_not_null() & pl.col("kind").is_in(["allocate", "free"])
    )
    is_freed = pl.col("kind").shift(-1).over(block) == "free"
    next_start = pl.col("start_ns").shift(-1).over(block)
    ends = of_blocks.filter(pl.col("kind").is_not_null()).select_seq(
        "row",
        "kind",
        ended_row=pl.col("row").shift(-1).over(block),
        lifetime_ns=pl.when(is_freed).then(next_start - pl.col("start_ns")),
    )
    ends = ends.filter(pl.col("kind") == "allocate").drop("kind")
    return numbered.join(ends, on="row", how="left", maintain_order="left").drop("row")


def _add_owners(frame: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    nodes = facts.host.nodes
    node = facts.host.forest.innermost_at(frame)
    op_row = nodes["op_row"].gather(node)
    source = sources_at(frame, facts.user_frames)
    owned = frame.with_columns_seq(
        op=nodes["name"].gather(op_row),
        op_chain=nodes["op_chain"].gather(op_row),
        root_op=nodes["name"].gather(nodes["root_row"].gather(op_row)),
        source=source.zip_with(source.is_not_null(), nodes["source"].gather(op_row)),
        region=nodes["name"].gather(nodes["region_row"].gather(node)),
        phase=nodes["phase"].gather(node).fill_null("other"),
    )
    step_row = facts.steps.index_at(owned)
    return owned.with_columns_seq(
        step_row=step_row,
        step=facts.steps.number_of(step_row),
        forward=facts.forwards.index_at(owned),
    )
