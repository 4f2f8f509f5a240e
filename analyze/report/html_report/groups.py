"""Kernel families in few enough groups to tell apart: by colour, pattern and letter."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Group:
    """Families that are drawn alike.

    Attributes:
        key: of its colour and the ink on it in the style sheet.
        letter: stands for it where there is no room for a name.
        label: what it is.
        families: of kernels; ``memcpy`` and ``memset`` are GPU work that is no kernel.
        pattern: drawn over its colour; None where colour and letter are enough.
    """

    key: str
    letter: str
    label: str
    families: tuple[str, ...]
    pattern: Literal["diagonal", "cross", "dots", "back"] | None = None


GROUPS = (
    Group(
        "product", "M", "matrix products, convolutions", ("gemm", "gemm.aux", "gemm.gemv", "conv")
    ),
    Group("attention", "A", "attention", ("attn.fwd", "attn.bwd", "attn.aux")),
    Group(
        "copy",
        "C",
        "copies, sets, casts",
        ("memcpy", "memset", "copy", "copy.cast", "fill"),
        "diagonal",
    ),
    Group(
        "reduce",
        "R",
        "softmax, norms, reductions",
        ("softmax", "norm", "reduce", "loss", "pool.interp"),
    ),
    Group(
        "elementwise",
        "E",
        "elementwise",
        ("elementwise", "triton.pointwise", "mask", "rng", "rope", "quant"),
    ),
    Group(
        "index",
        "I",
        "indexing, sorting, routing",
        ("index", "embed", "sort.scan", "sparse.fbgemm", "moe.route"),
    ),
    Group("triton", "T", "Triton", ("triton.template", "triton.reduction", "triton.other")),
    Group("comm", "N", "communication", ("comm",), "cross"),
    Group("optim", "O", "optimizer", ("optim",), "dots"),
    Group("unknown", "?", "unknown", (), "back"),
)
"""In the order of the legend; families that none names are in the last."""

_BY_FAMILY = {family: place for place, group in enumerate(GROUPS) for family in group.families}


def group_of(kind: str, family: str | None) -> int:
    """Return the place of the group of some GPU work.

    Args:
        kind: ``kernel``, ``memcpy`` or ``memset``.
        family: of a kernel, None where its name does not tell.
    """
    name = family if kind == "kernel" else kind
    return _BY_FAMILY.get(name or "", len(GROUPS) - 1)
