"""The keys of a guess file, version 1.

Amounts and words are kept as written here; :mod:`analyze.guess.loading` reads them.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from analyze.engine.model import Text
from analyze.engine.result import Level

MAX_ORDER = 500
"""GPU ops that an order may list."""

_Item = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Written = str | int | float | bool
_Words = Text | Annotated[list[Text], Field(min_length=1)]


def _key(description: str) -> _Written | None:
    value: _Written | None = Field(default=None, description=description)
    return value


class GuessModel(BaseModel):
    """What is expected of one forward of a trace. Every key but `version` may be left out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Literal[1] = Field(description="Version of the guess format.")
    forward: Text | None = Field(
        default=None, description="The annotation that encloses one forward, as --forward."
    )
    severity: Level = Field(
        default="error", description="Severity of a wrong guess, for --fail-on."
    )
    gpu_ops: _Written | None = _key("Kernels, copies and sets of a forward: 5, ~5, 3-6.")
    kernels: _Written | None = _key("Kernels of a forward.")
    copies: _Written | None = _key("Memory copies of a forward; none is 0.")
    syncs: _Written | None = _key("Synchronising calls of a forward: none, yes, 1.")
    gpu_time: _Written | None = _key("GPU busy time of a forward: 2 ms is 2 ms +- 20 %.")
    idle: _Written | None = _key(
        "Share of the time from the first to the last GPU work of the trace in which the GPU had"
        " nothing to do: 10 % is 10 % +- 5 points."
    )
    dominant: _Words | None = Field(
        default=None, description="Family that takes the most GPU time of a forward; or several."
    )
    precision: _Words | None = Field(
        default=None,
        description="Precision, or precisions, of matrix products, convolutions and attention.",
    )
    cpu_ops: _Written | None = _key("CPU ops of a forward.")
    cpu_time: _Written | None = _key("CPU time of a forward: 2 ms is 2 ms +- 20 %.")
    order: Annotated[list[_Item], Field(min_length=1, max_length=MAX_ORDER)] | None = Field(
        default=None,
        description="GPU ops of a forward in the order of their start, each by short name or by"
        " family.",
    )
