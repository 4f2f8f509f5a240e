"""GPU work: what each kernel, memcpy and memset is, and which call, op and unit it belongs to."""

from typing import NamedTuple

import orjson
import polars as pl

from analyze.kernels.classify import classify
from analyze.kernels.device import DeviceLimits
from analyze.kernels.occupancy import occupancy
from analyze.tables.correlation import calls_by_external_id, calls_of
from analyze.tables.external_ids import op_rows_by_external_id
from analyze.tables.header import Header
from analyze.tables.host import Host
from analyze.tables.intervals import busy_until
from analyze.trace.families import MEMCPY_CATEGORIES, MEMSET_CATEGORIES

MAX_CLASSIFIED_NAMES = 20_000
"""Real traces hold 30 to 300 distinct kernel names; a name costs about 0.1 ms."""

_COPY_NAME = r"(?i)^Memcpy (\S+) \((.+?) -> (.+?)\)"
_MEMORY_KINDS = {
    "pageable": "pageable",
    "pinned": "pinned",
    "device": "device",
    "device static": "device",
    "managed": "managed",
    "managed static": "managed",
    "array": "array",
}
_COPY_KINDS = ("HtoD", "DtoH", "DtoD", "PtoP", "HtoH")


def build_gpu_ops(
    events: pl.DataFrame,
    calls: pl.DataFrame,
    host: Host,
    header: Header,
) -> pl.DataFrame:
    """Return the GPU work of a trace in the order of its start times.

    Args:
        events: the ``gpu_ops`` family frame.
        calls: the result of ``build_api_calls``.
        host: the ops and annotations.
        header: device properties and vendor of the trace.
    """
    device, stream = pl.coalesce("device", "pid"), pl.coalesce("stream", _stream_of_row())
    frame = events.with_columns_seq(
        device_label=device,
        device=device.cast(pl.Int64, strict=False),
        stream_written=pl.col("stream"),
        stream_label=stream,
        stream=stream.cast(pl.Int64, strict=False),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        kind=_kind(),
    ).sort("start_ns", nulls_last=True, maintain_order=True)
    frame = _add_name_facts(frame)
    if header.vendor != "nvidia":
        frame = _without_cuda_core_claims(frame)
    frame = _add_copy_facts(frame)
    frame = _add_owners(frame, calls, host)
    frame = _add_launch_facts(frame, header)
    return frame.with_columns_seq(gap_before_ns=_gap_before())


def _stream_of_row() -> pl.Expr:
    """Return the stream that a viewer's row stands for, as torch 1.8 and others write it."""
    written = pl.col("tid").str.strip_prefix("stream ").str.strip_chars()
    return pl.when(written != "").then(written)


def _kind() -> pl.Expr:
    category = pl.col("cat").str.to_lowercase()
    name = pl.col("name")
    is_copy = category.is_in(list(MEMCPY_CATEGORIES)) | (
        category.is_null() & name.str.starts_with("Memcpy")
    )
    is_set = category.is_in(list(MEMSET_CATEGORIES)) | (
        category.is_null() & name.str.starts_with("Memset")
    )
    return (
        pl.when(is_copy)
        .then(pl.lit("memcpy"))
        .when(is_set)
        .then(pl.lit("memset"))
        .otherwise(pl.lit("kernel"))
    )


def _add_name_facts(frame: pl.DataFrame) -> pl.DataFrame:
    """Join what the kernel's name says, found once per distinct name.

    Beyond ``MAX_CLASSIFIED_NAMES`` names the rest stays unknown; the costliest come first.
    """
    by_time = (
        frame.filter((pl.col("kind") == "kernel") & pl.col("name").is_not_null())
        .group_by("name")
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "name", descending=[True, False])
    )
    kernel_names = by_time["name"].head(MAX_CLASSIFIED_NAMES)
    facts = [classify(name) for name in kernel_names]
    columns = {
        "kind": pl.Series(["kernel"] * len(facts), dtype=pl.String),
        "name": kernel_names,
        "short_name": pl.Series([fact.short_name for fact in facts], dtype=pl.String),
        "family": pl.Series([fact.family for fact in facts], dtype=pl.String),
        "precision": pl.Series([fact.precision for fact in facts], dtype=pl.String),
        "tensor_core": pl.Series([fact.tensor_core for fact in facts], dtype=pl.Boolean),
        "collective": pl.Series([fact.collective for fact in facts], dtype=pl.String),
    }
    joined = frame.join(
        pl.DataFrame(columns), on=["kind", "name"], how="left", maintain_order="left"
    )
    return joined.with_columns_seq(short_name=pl.coalesce("short_name", "name"))


def _without_cuda_core_claims(frame: pl.DataFrame) -> pl.DataFrame:
    """Take "no tensor cores" as unknown: the names that say it are NVIDIA's."""
    return frame.with_columns_seq(tensor_core=pl.when("tensor_core").then(pl.lit(value=True)))


def _add_copy_facts(frame: pl.DataFrame) -> pl.DataFrame:
    """Join what a memcpy's name says, found once per distinct name."""
    names = frame.filter(pl.col("kind") == "memcpy")["name"].drop_nulls().unique()
    parts = names.str.extract_groups(_COPY_NAME).struct.unnest()
    kinds = {kind.lower(): kind for kind in _COPY_KINDS}
    written = pl.col("1").str.to_lowercase()
    facts = parts.select_seq(
        copy_kind=written.replace_strict(kinds, default=pl.col("1"), return_dtype=pl.String),
        src_memory=_memory("2"),
        dst_memory=_memory("3"),
    ).with_columns_seq(kind=pl.lit("memcpy"), name=names)
    joined = frame.join(facts, on=["kind", "name"], how="left", maintain_order="left")
    has_length = pl.col("dur_ns") > 0
    return joined.with_columns_seq(
        bandwidth_gbps=pl.when(has_length).then(pl.col("bytes") / pl.col("dur_ns"))
    )


def _memory(group: str) -> pl.Expr:
    written = pl.col(group).str.to_lowercase()
    return written.replace_strict(_MEMORY_KINDS, default=None, return_dtype=pl.String)


class _LaunchFacts(NamedTuple):
    blocks: int | None
    threads_per_block: int | None
    occupancy: float | None
    occupancy_limiter: str | None
    waves: float | None


_GRID_IN_THREADS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
"""Calls whose kernels are recorded with the grid in threads; all others have it in blocks."""

_LAUNCH_KEYS = [
    *("device", "grid", "block", "grid_in_threads"),
    *("registers_per_thread", "shared_memory_bytes"),
]


def _add_launch_facts(frame: pl.DataFrame, header: Header) -> pl.DataFrame:
    """Join the launch configuration's facts, computed once per distinct configuration."""
    frame = frame.with_columns_seq(grid_in_threads=pl.col("api").is_in(_GRID_IN_THREADS))
    configurations = frame.filter(pl.col("grid").is_not_null()).select_seq(_LAUNCH_KEYS).unique()
    facts = [
        _launch_facts(
            header.device(device), *_blocks_and_threads(grid, block, in_threads), *resources
        )
        for device, grid, block, in_threads, *resources in configurations.iter_rows()
    ]
    computed = pl.DataFrame(
        facts,
        schema={
            "blocks": pl.Int64,
            "threads_per_block": pl.Int64,
            "occupancy": pl.Float64,
            "occupancy_limiter": pl.String,
            "waves": pl.Float64,
        },
        orient="row",
    )
    joined = frame.join(
        pl.concat([configurations, computed], how="horizontal"),
        on=_LAUNCH_KEYS,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    known = pl.col("occupancy_reported") >= 0
    ordinals = frame["device"].unique()
    sm_counts = [device.sm_count if (device := header.device(o)) else None for o in ordinals]
    blocks_per_sm = pl.col("blocks") / pl.col("device").replace_strict(
        ordinals, sm_counts, return_dtype=pl.Int64
    )
    return joined.with_columns_seq(
        occupancy_written=pl.col("occupancy_reported"),
        occupancy_reported=pl.when(known).then("occupancy_reported"),
        blocks_per_sm=pl.coalesce(
            blocks_per_sm, pl.when(pl.col("blocks_per_sm").is_finite()).then("blocks_per_sm")
        ),
    )


def _launch_facts(
    device: DeviceLimits | None,
    blocks: int | None,
    threads: int | None,
    registers: int | None,
    shared_memory: int | None,
) -> _LaunchFacts:
    result = None
    if device and blocks and threads and registers is not None and shared_memory is not None:
        result = occupancy(
            device,
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_memory_bytes=shared_memory,
            blocks=blocks,
        )
    if result is None:
        return _LaunchFacts(blocks, threads, None, None, None)
    return _LaunchFacts(blocks, threads, result.achievable, result.limiter, result.waves)


def _blocks_and_threads(
    grid: str | None, block: str | None, in_threads: bool | None
) -> tuple[int | None, int | None]:
    """Return the blocks of a grid and the threads of a block."""
    blocks, threads = _product(grid), _product(block)
    if in_threads:
        blocks = -(-blocks // threads) if blocks and threads else None
    return blocks, threads


def _product(dimensions: str | None) -> int | None:
    """Multiply ``[x, y, z]``; null for zeros (some ROCm traces) and for anything else."""
    if dimensions is None:
        return None
    values = orjson.loads(dimensions)
    if not isinstance(values, list) or not all(type(v) is int and v > 0 for v in values):
        return None
    product = 1
    for value in values:
        product *= value
    return product if values and product < 1 << 62 else None


def _add_owners(frame: pl.DataFrame, calls: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Link each GPU event to its API call by correlation, and to the op around that call.

    Where neither bears a correlation, the call may be found by the External id. Where the file has
    no such call, or the call's thread has no ops, the External id serves for the op, if it can be
    trusted.
    """
    frame = _add_calls(frame, calls)
    links = calls.select_seq(
        *("api_row", "op_row", "region_row", "phase", "lane", "is_launch"),
        api_start_ns="start_ns",
        api_end_ns="end_ns",
        api="name",
    )
    frame = frame.join(links, on="api_row", how="left", maintain_order="left")
    fallback = op_rows_by_external_id(frame, host)
    nodes = host.nodes
    frame = frame.with_columns_seq(
        linked=pl.col("api_row").is_not_null(),
        op_row=pl.coalesce("op_row", pl.Series("external_op_row", fallback)),
    )
    op_row = frame["op_row"]
    return frame.with_columns_seq(
        region_row=pl.coalesce("region_row", nodes["region_row"].gather(op_row)),
        phase=pl.coalesce("phase", nodes["phase"].gather(op_row)).fill_null("other"),
        api_dur_ns=pl.col("api_end_ns") - pl.col("api_start_ns"),
        queue_delay_ns=(pl.col("start_ns") - pl.col("api_end_ns")).clip(0),
    )


def _add_calls(frame: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Add the row of the API call, and how sure it is."""
    rows = calls.rename({"api_row": "row"})
    found, by_external_id = calls_of(frame, rows), calls_by_external_id(frame, rows)
    return frame.with_columns_seq(
        api_row=pl.coalesce(found["row"], by_external_id["row"]),
        ambiguous_link=found["ambiguous"],
        linked_by_external_id=by_external_id["row"].is_not_null(),
        undecided_link=by_external_id["undecided"],
    )


def _gap_before() -> pl.Expr:
    """Return how long the device had nothing to do before this work; null for its first work."""
    return (pl.col("start_ns") - busy_until("device_label")).clip(0)
