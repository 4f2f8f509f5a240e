"""Whether two traces hold the same work, as far as the inputs of their ops tell."""

from collections.abc import Mapping

import polars as pl

from analyze.tables.build import Trace

InputShapes = Mapping[str, int]
"""How often a tensor of a shape was an input; see :func:`input_shapes`."""

MOST_SHAPES = 64
"""Shapes that are kept, the most used: a model has some dozens."""

_SHAPE = r"\[\d+(?:,\d+)+\]"
"""Of two dimensions or more: biases and scales of one do not tell how much work there is."""

_OF_WEIGHTS = ("backward", "optimizer")
"""Phases whose inputs are mostly weights, which are the same for every batch size."""

_MOST = 0.5


def input_shapes(trace: Trace) -> dict[str, int] | None:
    """Return how often a tensor of each shape was an input of the outermost ops in forwards.

    Inside an op, shapes depend on the implementation: a score matrix is no part of the work.

    Returns:
        Shapes as recorded, such as ``[8,16,1024,64]``, the most used first; None where none were
        recorded.
    """
    outermost = trace.facts.ops.filter(
        (pl.col("depth") == 0)
        & pl.col("forward").is_not_null()
        & pl.col("phase").is_in(_OF_WEIGHTS).not_().fill_null(value=True)
    )
    shapes = outermost.select(shape=pl.col("shapes").str.extract_all(_SHAPE).list.explode())
    counts = shapes.drop_nulls().group_by("shape").len()
    ranked = counts.sort("len", "shape", descending=[True, False]).head(MOST_SHAPES)
    return dict(ranked.iter_rows()) or None


def is_same_work(one: InputShapes | None, other: InputShapes | None) -> bool | None:
    """Whether most inputs of either trace are of shapes that the other has; None if unknown.

    Of either, because attention written out has inputs that fused attention has not: scores and
    masks. Another batch or sequence changes nearly all shapes but those of weights.
    """
    if one is None or other is None:
        return None
    return max(_share_in(one, other), _share_in(other, one)) > _MOST


def _share_in(one: InputShapes, other: InputShapes) -> float:
    shared = sum(count for shape, count in one.items() if shape in other)
    return shared / (sum(one.values()) or 1)
