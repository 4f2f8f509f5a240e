"""Words in guesses: families of GPU work, and precisions, with the names people have for them."""

import re
from collections.abc import Iterable, Mapping, Sequence

from analyze.engine.problems import did_you_mean
from analyze.guess.answers import UnreadableAnswerError
from analyze.tables.catalogue import DTYPES, FAMILIES

UNKNOWN_FAMILY = "unknown"

_SEPARATORS = re.compile(r"\s*(?:,|/|\||\bor\b|\band\b)\s*")


def _by_group() -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for family in FAMILIES:
        groups.setdefault(family.partition(".")[0], []).append(family)
    return {
        **{group: tuple(families) for group, families in groups.items()},
        "memcpy": ("memcpy",),
        "memset": ("memset",),
        UNKNOWN_FAMILY: ("kernel",),
    }


GROUPS: Mapping[str, tuple[str, ...]] = _by_group()
"""Per group of families (``gemm`` is ``gemm``, ``gemm.gemv`` and ``gemm.aux``), what
``coalesce(family, kind)`` of the table ``gpu_ops`` is for its members."""

ATTENTION = "attn"
"""The group that also stands for attention written out as ops, to those who name it."""

PRECISIONS = tuple(name for name in DTYPES if name != "other")

_GROUP_ALIASES = {
    "attention": "attn", "flash": "attn", "sdpa": "attn", "fmha": "attn",
    "matmul": "gemm", "mm": "gemm", "bmm": "gemm", "linear": "gemm", "matmuls": "gemm",
    "gemms": "gemm", "nccl": "comm", "communication": "comm", "collectives": "comm",
    "convolution": "conv", "conv2d": "conv", "layernorm": "norm", "rmsnorm": "norm",
    "batchnorm": "norm", "normalization": "norm", "optimizer": "optim", "adam": "optim",
    "embedding": "embed", "pointwise": "elementwise", "masking": "mask", "dropout": "rng",
    "reduction": "reduce", "memcopies": "memcpy", "memcpys": "memcpy", "pooling": "pool",
}  # fmt: skip
_PRECISION_ALIASES = {
    "bfloat16": "bf16", "half": "fp16", "float16": "fp16", "f16": "fp16", "float32": "fp32",
    "float": "fp32", "single": "fp32", "f32": "fp32", "tfloat32": "tf32", "float64": "fp64",
    "double": "fp64", "float8": "fp8", "float4": "fp4",
}  # fmt: skip

_FAMILY_WORDS: Mapping[str, str] = {
    **{group: group for group in GROUPS},
    **{family: family.partition(".")[0] for family in FAMILIES},
    **_GROUP_ALIASES,
}
_PRECISION_WORDS: Mapping[str, str] = {**{p: p for p in PRECISIONS}, **_PRECISION_ALIASES}


def parse_families(written: str) -> tuple[str, ...]:
    """Return the groups of families that a text names; ``or`` and commas join several.

    Raises:
        UnreadableAnswerError: a word is none.
    """
    return _words(written, "family of GPU work", _FAMILY_WORDS, GROUPS)


def parse_precisions(written: str) -> tuple[str, ...]:
    """Return the precisions that a text names; ``or`` and commas join several.

    Raises:
        UnreadableAnswerError: a word is none.
    """
    return _words(written, "precision", _PRECISION_WORDS, PRECISIONS)


def members(word: str) -> tuple[str, ...]:
    """Return the families, or kinds of GPU work, that a word of an order stands for.

    A whole family (``gemm.gemv``) stands for itself, a group for all its families; empty for what
    is no such word.
    """
    plain = word.lower()
    if plain in FAMILIES and plain not in GROUPS:
        return (plain,)
    return GROUPS.get(_FAMILY_WORDS.get(plain, ""), ())


def group_of(family: str) -> str:
    """Return the group of a value of ``coalesce(family, kind)``."""
    return next((group for group, families in GROUPS.items() if family in families), family)


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence and a guess file have them."""
    return " or ".join(words)


def _words(
    written: str, what: str, known: Mapping[str, str], shown: Iterable[str]
) -> tuple[str, ...]:
    found = []
    for word in _SEPARATORS.split(" ".join(written.lower().split())):
        if word not in known:
            close = did_you_mean(word, known) or ""
            help_text = close if close.startswith("did you mean") else f"known: {', '.join(shown)}"
            raise UnreadableAnswerError(f"'{word}' is no {what}", help_text)
        found.append(known[word])
    return tuple(dict.fromkeys(found))
