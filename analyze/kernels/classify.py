"""Family, precision and matrix-unit use of a GPU kernel, read from its name.

The rules are data in ``names.yaml``. Where none fits the answer is ``None``: unknown, never "no".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from ruamel.yaml import YAML

from analyze.kernels.display import shorten

MAX_TEXT = 4096
"""Characters of a name that the rules look at; template instances can reach 100 kB."""

Precision = Literal[
    "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "complex", "other"
]


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What one kernel name tells.

    ``short_name`` is the display form, never empty and at most 80 characters. ``family`` is one of
    those in ``names.yaml``. ``precision`` is the type that is multiplied (``fp64``, ``fp32``,
    ``tf32``, ``fp16``, ``bf16``, ``fp8``, ``fp4``, ``int8``, ``complex`` or ``other``) and
    ``tensor_core`` whether matrix units multiply it; both only for matrix products, convolutions
    and attention. ``None`` is unknown.
    """

    short_name: str
    family: str | None
    precision: str | None
    tensor_core: bool | None


def classify(name: str) -> KernelFacts:
    """Return what a kernel name tells. Pure and uncached: call it once per distinct name."""
    text = name.strip()[:MAX_TEXT]
    lowered = text.lower()
    rules = _rules()
    family = _family(rules, text, lowered)
    precision, tensor_core = _matmul(rules.matmul, family, lowered)
    return KernelFacts(shorten(text), family, precision, tensor_core)


def _family(rules: _Rules, text: str, lowered: str) -> str | None:
    for rule in rules.families:
        if rule.exact is not None:
            found = rule.exact.search(text)
        else:
            found = rule.lower.search(lowered) if rule.lower is not None else None
        if found:
            return rule.family
    return None


def _matmul(
    rules: _Matmul, family: str | None, lowered: str
) -> tuple[Precision | None, bool | None]:
    if family not in rules.families or rules.no_product.search(lowered):
        return None, None
    for scheme in rules.schemes:
        if _applies(scheme.families, family) and scheme.pattern.search(lowered):
            precision = _precision(scheme, lowered)
            return precision, _tensor_core(scheme, family, precision, lowered)
    return None, None


def _precision(scheme: _Scheme, lowered: str) -> Precision | None:
    for rule in scheme.precision:
        if rule.pattern.search(lowered):
            return rule.precision
    return None


def _tensor_core(
    scheme: _Scheme, family: str, precision: Precision | None, lowered: str
) -> bool | None:
    for rule in scheme.tensor_core:
        if not _applies(rule.families, family) or not _applies(rule.precisions, precision):
            continue
        if rule.pattern.search(lowered):
            return rule.value
    return None


def _applies(allowed: frozenset[str] | None, value: str | None) -> bool:
    return allowed is None or value in allowed


def _compile(value: object) -> re.Pattern[str]:
    if not isinstance(value, str):
        raise ValueError("a pattern must be text")
    return re.compile(value)


_Pattern = Annotated[re.Pattern[str], BeforeValidator(_compile)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _FamilyRule(_Model):
    family: str
    exact: _Pattern | None = None
    lower: _Pattern | None = None

    @model_validator(mode="after")
    def _one_pattern(self) -> _FamilyRule:
        if (self.exact is None) == (self.lower is None):
            raise ValueError("a family rule has either 'exact' or 'lower'")
        return self


class _PrecisionRule(_Model):
    precision: Precision | None
    pattern: _Pattern


class _TensorCoreRule(_Model):
    value: bool | None
    pattern: _Pattern
    families: frozenset[str] | None = None
    precisions: frozenset[str] | None = None


class _Scheme(_Model):
    name: str
    pattern: _Pattern
    families: frozenset[str] | None = None
    precision: tuple[_PrecisionRule, ...] = ()
    tensor_core: tuple[_TensorCoreRule, ...] = ()


class _Matmul(_Model):
    families: frozenset[str]
    no_product: _Pattern
    schemes: tuple[_Scheme, ...]


class _Rules(_Model):
    version: Literal[1]
    families: tuple[_FamilyRule, ...]
    matmul: _Matmul


@cache
def _rules() -> _Rules:
    text = files("analyze.kernels").joinpath("names.yaml").read_text(encoding="utf-8")
    return _Rules.model_validate(YAML(typ="safe").load(text))
