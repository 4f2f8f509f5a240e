"""Family, precision and matrix-unit use of a GPU kernel, read from its name.

The rules are data in ``names.yaml``. Where none fits the answer is ``None``: unknown, never "no".
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from analyze.kernels.display import shorten
from analyze.packaged import read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

MAX_TEXT = 4096
"""Characters of a name that the rules look at; template instances can reach 100 kB."""

_COMMUNICATION = "comm"

Precision = Literal[
    "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "complex", "other"
]


class KernelFacts(NamedTuple):
    """What one kernel name tells.

    ``short_name`` is the display form, never empty and at most 80 characters. ``family`` is one of
    those in ``names.yaml``. ``precision`` is the type that is multiplied (``fp64``, ``fp32``,
    ``tf32``, ``fp16``, ``bf16``, ``fp8``, ``fp4``, ``int8``, ``complex`` or ``other``) and
    ``tensor_core`` whether matrix units multiply it; both only for matrix products, convolutions
    and attention. ``collective`` is what a communication kernel does. ``None`` is unknown.
    """

    short_name: str
    family: str | None
    precision: str | None
    tensor_core: bool | None
    collective: str | None


def classify(name: str) -> KernelFacts:
    """Return what a kernel name tells. Pure and uncached: call it once per distinct name."""
    text = name.strip()[:MAX_TEXT]
    lowered = text.lower()
    rules = _rules()
    family = _family(rules, text, lowered)
    precision, tensor_core = _matmul(rules.matmul, family, lowered)
    collective = _collective(rules, lowered) if family == _COMMUNICATION else None
    return KernelFacts(shorten(text), family, precision, tensor_core, collective)


def _family(rules: _Rules, text: str, lowered: str) -> str | None:
    for rule in rules.families:
        if rule.exact is not None and _holds(text, rule.exact):
            return rule.family
        if rule.lower is not None and _holds(lowered, rule.lower):
            return rule.family
    return None


def _collective(rules: _Rules, lowered: str) -> str | None:
    for rule in rules.collectives:
        if _holds(lowered, rule.lower):
            return rule.collective
    return None


def _matmul(
    rules: _Matmul, family: str | None, lowered: str
) -> tuple[Precision | None, bool | None]:
    if family is None or family not in rules.families or _holds(lowered, rules.no_product):
        return None, None
    for scheme in rules.schemes:
        if _applies(scheme.families, family) and _holds(lowered, scheme.pattern):
            precision = _precision(scheme, lowered)
            return precision, _tensor_core(scheme, family, precision, lowered)
    return None, None


def _precision(scheme: _Scheme, lowered: str) -> Precision | None:
    for rule in scheme.precision:
        if _holds(lowered, rule.pattern):
            return rule.precision
    return None


def _tensor_core(
    scheme: _Scheme, family: str, precision: Precision | None, lowered: str
) -> bool | None:
    for rule in scheme.tensor_core:
        if not _applies(rule.families, family) or not _applies(rule.precisions, precision):
            continue
        if _holds(lowered, rule.pattern):
            return rule.value
    return None


def _applies(allowed: Collection[str] | None, value: str | None) -> bool:
    return allowed is None or value in allowed


def _holds(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: a trace needs few of them."""
    return re.compile(pattern)


class _FamilyRule(NamedTuple):
    family: str
    exact: str | None = None
    lower: str | None = None


class _CollectiveRule(NamedTuple):
    collective: str
    lower: str


class _PrecisionRule(NamedTuple):
    precision: Precision | None
    pattern: str


class _TensorCoreRule(NamedTuple):
    value: bool | None
    pattern: str
    families: Collection[str] | None = None
    precisions: Collection[str] | None = None


class _Scheme(NamedTuple):
    name: str
    pattern: str
    families: Collection[str] | None = None
    precision: tuple[_PrecisionRule, ...] = ()
    tensor_core: tuple[_TensorCoreRule, ...] = ()


class _Matmul(NamedTuple):
    families: Collection[str]
    no_product: str
    schemes: tuple[_Scheme, ...]


class _Rules(NamedTuple):
    version: int
    families: tuple[_FamilyRule, ...]
    collectives: tuple[_CollectiveRule, ...]
    matmul: _Matmul


@cache
def _rules() -> _Rules:
    written = read_table("kernels/names.yaml")
    families = tuple(_FamilyRule(**rule) for rule in written["families"])
    collectives = tuple(_CollectiveRule(**rule) for rule in written["collectives"])
    return _Rules(written["version"], families, collectives, _matmul_rules(**written["matmul"]))


def _matmul_rules(schemes: Iterable[Mapping[str, Any]], **others: Any) -> _Matmul:
    return _Matmul(schemes=tuple(_scheme(**scheme) for scheme in schemes), **others)


def _scheme(
    precision: Iterable[Mapping[str, Any]] = (),
    tensor_core: Iterable[Mapping[str, Any]] = (),
    **others: Any,
) -> _Scheme:
    return _Scheme(
        precision=tuple(_PrecisionRule(**rule) for rule in precision),
        tensor_core=tuple(_TensorCoreRule(**rule) for rule in tensor_core),
        **others,
    )
