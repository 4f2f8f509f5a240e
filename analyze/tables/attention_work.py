"""What attention calls ran on the device: which implementation, and how near to its peak."""

import polars as pl

from analyze.kernels.attention import UNFUSED, attention_implementation, is_unfused
from analyze.kernels.device import DeviceLimits
from analyze.kernels.peaks import published_peak
from analyze.tables.flash_obstacles import (
    CHECKED_OP,
    Asked,
    asked_for,
    obstacles_on_cpu,
    obstacles_on_gpu,
)
from analyze.tables.header import Header
from analyze.tables.unit_rows import UNIT_OF_ROW, UnitWork

TIE = "|"

_EXPLAINED_BACKENDS = ("math", "efficient")
"""Backends that torch takes where it does not take flash attention."""


def add_work(calls: pl.DataFrame, work: UnitWork, header: Header) -> pl.DataFrame:
    """Add ``implementation``, ``kernel_precision``, ``device``, ``peak_tflops``, ``peak_share``.

    Args:
        calls: columns ``index``, ``dtype`` and ``tflops``.
        work: what was launched in them.
        header: device properties of the trace.
    """
    kernels = work.facts.gpu_ops.filter(pl.col("kind") == "kernel").drop_nulls(UNIT_OF_ROW)
    joined = calls.join(_of_kernels(kernels), on="index", how="left", maintain_order="left")
    asked = joined.select_seq("device", "dtype").unique()
    peaks = asked.with_columns_seq(
        peak_tflops=pl.Series(
            [_peak(header.device(device), dtype) for device, dtype in asked.iter_rows()],
            dtype=pl.Float64,
        )
    )
    known = joined.join(
        peaks, on=["device", "dtype"], how="left", nulls_equal=True, maintain_order="left"
    )
    return known.with_columns_seq(peak_share=pl.col("tflops") / pl.col("peak_tflops"))


def _of_kernels(kernels: pl.DataFrame) -> pl.DataFrame:
    """Return what the kernels of each call tell: implementation, device, fused precision."""
    names = kernels.select_seq("name", "family").unique()
    told = names.with_columns_seq(
        told=pl.Series(
            [attention_implementation(name or "", family) for name, family in names.iter_rows()],
            dtype=pl.String,
        )
    )
    found = (
        kernels.select_seq(UNIT_OF_ROW, "name", "family", "precision", "device")
        .join(told, on=["name", "family"], how="left", nulls_equal=True, maintain_order="left")
        .group_by(index=UNIT_OF_ROW)
        .agg(
            pl.col("told").drop_nulls().unique().sort().str.join(TIE),
            pl.col("family").drop_nulls().unique(),
            pl.col("device").first(),
            fused=pl.col("precision").filter(pl.col("family") == "attn.fwd").unique(),
        )
    )
    unfused = pl.Series([is_unfused(families) for families in found["family"]], dtype=pl.Boolean)
    implementation = pl.when(pl.col("told") != "").then("told").when(unfused).then(pl.lit(UNFUSED))
    one_precision = pl.when(pl.col("fused").list.len() == 1).then(pl.col("fused").list.first())
    return found.select_seq(
        "index", "device", implementation=implementation, kernel_precision=one_precision
    )


def _peak(device: DeviceLimits | None, dtype: str | None) -> float | None:
    peak = published_peak(device)
    return peak.tflops.get(dtype or "") if peak is not None else None


def add_obstacles(
    calls: pl.DataFrame,
    attention_inputs: pl.DataFrame,
    header: Header,
    *,
    has_gpu: bool,
    has_backward: bool,
) -> pl.DataFrame:
    """Add ``flash_obstacle``: the recorded inputs that flash attention does not take, joined.

    It is null where none is recorded, for ops that choose no backend, and where another backend
    than math or efficient was chosen. A dtype that was not recorded is taken from the fused
    kernel's name. A call in a trace with GPU work that launched nothing may have run anywhere; of
    it nothing is said. Where no GPU work was recorded, the CPU's limits are meant.

    Args:
        calls: the result of :func:`add_work`, with ``backend``, ``input_shapes`` and ``gpu_ops``.
        attention_inputs: ``name``, ``lane``, ``start_ns``, ``concrete_inputs``, ``input_strides``.
        header: device properties of the trace.
        has_gpu: GPU work was recorded in the trace.
        has_backward: a backward pass was.
    """
    keys = ["name", "lane", "start_ns"]
    inputs = attention_inputs.unique(keys, keep="first")
    joined = calls.join(inputs, on=keys, how="left", maintain_order="left")
    ran_there = (pl.col("gpu_ops") > 0) if has_gpu else pl.lit(value=True)
    asked = (pl.col("name") == CHECKED_OP) & pl.col("backend").is_in(_EXPLAINED_BACKENDS)
    columns = ("input_shapes", "told_dtype", "concrete_inputs", "input_strides", "device")
    joined = joined.with_columns_seq(told_dtype=pl.coalesce("dtype", "kernel_precision"))
    kinds = joined.filter(asked & ran_there).select_seq(columns).unique()
    words = [
        _words(asked_for(*recorded, trained=has_backward), header.device(device), has_gpu=has_gpu)
        for *recorded, device in kinds.iter_rows()
    ]
    told = kinds.with_columns_seq(flash_obstacle=pl.Series(words, dtype=pl.String))
    found = joined.join(told, on=columns, how="left", nulls_equal=True, maintain_order="left")
    return found.with_columns_seq(flash_obstacle=pl.when(asked & ran_there).then("flash_obstacle"))


def _words(asked: Asked, device: DeviceLimits | None, *, has_gpu: bool) -> str | None:
    found = obstacles_on_gpu(asked, device) if has_gpu else obstacles_on_cpu(asked)
    return TIE.join(found) or None
