"""Does a variant compute attention? Its results against a reference in high precision.

The reference is computed query block by query block from the definition,
``softmax(q k^T / sqrt(head_dim)) v``, in float64 (float32 where a device has none), and shares no
code with the variants. A row whose every key is masked has no defined result; what a variant writes
there (zeros or NaN) is reported and not judged.
"""

import math
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from capture.mask import Mask
from capture.phases import Attention
from capture.workload import Inputs, Workload

ROW_TOLERANCES = {"bf16": 1e-1, "fp16": 1.5e-2, "fp32": 1e-4, "fp64": 1e-11}
"""Largest relative error of one row by dtype: twice what torch's own variants reach in the worst of
many rows, above all in short ones. A row that is wrong is off by far more."""

OVERALL_TOLERANCES = {"bf16": 1.5e-2, "fp16": 2e-3, "fp32": 2e-5, "fp64": 1e-13}
"""Largest relative error of a whole tensor by dtype. Rounding averages out: torch's own variants
stay below 7e-3, 8e-4, 5e-7 and 2e-15 for every shape tried, while a result that is 3 % too large,
or a scale that is 3 % off, does not."""

MAX_BLOCK_ELEMENTS = 1 << 26
"""Scores of the reference that are in memory at once: half a gigabyte in float64."""

SMALLEST_NORM = 1e-15

GRADIENTS = ("query.grad", "key.grad", "value.grad")

AS_LARGE_AS = {"query.grad": "output", "key.grad": "value.grad"}
"""Tensors with rows of the same size, for random inputs of unit size. The gradients of query and
key are differences that may cancel as a whole, as they do where a query sees a single key; what
rounding leaves of them is not to be taken for an error."""

MASKED_SHARE = 8
"""In the check of fully masked rows the last 1/8 of the queries sees no key."""


@dataclass(frozen=True)
class Errors:
    """How far a tensor is from its reference.

    Attributes:
        relative: the largest Euclidean error of a row, relative to the row of the reference (or
            to the average row, where that is larger: sums that cancel leave rows near zero).
        overall: the Euclidean error of all rows together, relative to that of the reference.
        absolute: the largest error of an element.
        nan_elements: elements that are NaN or infinite and should not be.
    """

    relative: float | None
    overall: float | None
    absolute: float | None
    nan_elements: int


@dataclass(frozen=True)
class Numerics:
    """The verdict on a variant.

    Attributes:
        ok: every tensor is within the tolerance and no NaN stands where a number should.
        row_tolerance: the largest ``relative`` error that is allowed for the dtype.
        overall_tolerance: the largest ``overall`` error that is.
        reference: dtype of the reference.
        errors: by tensor: ``output``, and ``query.grad``, ``key.grad``, ``value.grad`` where the
            workload has a backward pass.
        fully_masked_rows: what stands in rows whose every key is masked: ``zeros``, ``nan``,
            ``other``; or ``not supported`` where the variant refuses a mask that is not the causal
            one, ``mask ignored`` where it computes as if there were none.
        fully_masked_ok: whether the other rows are right in that case; null where it tells nothing.
    """

    ok: bool
    row_tolerance: float
    overall_tolerance: float
    reference: str
    errors: dict[str, Errors]
    fully_masked_rows: str
    fully_masked_ok: bool | None

    @property
    def worst(self) -> float | None:
        """The largest relative error of all tensors; None where one is NaN throughout."""
        found = [error.relative for error in self.errors.values()]
        return None if None in found else max(value for value in found if value is not None)

    @property
    def reason(self) -> str | None:
        """What is wrong, in one line; None if nothing is."""
        if self.ok:
            return None
        wrong = [
            f"{name} {words}"
            for name, error in self.errors.items()
            if (words := self._excess(error)) is not None
        ]
        wrong = wrong or ["rows beside those whose every key is masked are off"]
        return f"wrong numerics: {', '.join(wrong)}"

    def _excess(self, error: Errors) -> str | None:
        if error.nan_elements or error.relative is None or error.overall is None:
            return f"holds {error.nan_elements} NaN"
        if error.overall > self.overall_tolerance:
            return f"off by {error.overall:.2g} (tolerance {self.overall_tolerance:g})"
        if error.relative > self.row_tolerance:
            return f"off by {error.relative:.2g} in a row (tolerance {self.row_tolerance:g})"
        return None

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)


def check_numerics(attention: Attention, workload: Workload, inputs: Inputs) -> Numerics:
    """Run a variant and compare it with the reference.

    Args:
        attention: the variant; it is given copies.
        workload: what the inputs were made for.
        inputs: best others than it has seen before, which it might remember.
    """
    precise = _reference_dtype(inputs.query)
    errors = _errors(attention, workload, inputs, precise)
    content, others_ok = _fully_masked(attention, workload, inputs, precise)
    is_ok = all(_within(error, workload) for error in errors.values())
    return Numerics(
        ok=is_ok and others_ok is not False,
        row_tolerance=ROW_TOLERANCES[workload.dtype],
        overall_tolerance=OVERALL_TOLERANCES[workload.dtype],
        reference=str(precise).removeprefix("torch."),
        errors=errors,
        fully_masked_rows=content,
        fully_masked_ok=others_ok,
    )


def _within(error: Errors, workload: Workload) -> bool:
    if error.nan_elements or error.relative is None or error.overall is None:
        return False
    is_row_ok = error.relative <= ROW_TOLERANCES[workload.dtype]
    return is_row_ok and error.overall <= OVERALL_TOLERANCES[workload.dtype]


def _errors(
    attention: Attention, workload: Workload, inputs: Inputs, precise: torch.dtype
) -> dict[str, Errors]:
    if workload.phase == "forward":
        with torch.no_grad():
            own = inputs.copied()
            results = {"output": attention(*own.tensors, own.mask)}
        return _compared(results, _reference(inputs, precise))
    trainable, gradient = inputs.copied().trainable(), workload.gradient()
    output = attention(*trainable.tensors, trainable.mask)
    gradients = torch.autograd.grad(output, trainable.tensors, gradient)
    results = {"output": output.detach()} | dict(zip(GRADIENTS, gradients, strict=True))
    return _compared(results, _reference(inputs, precise, gradient))


def _fully_masked(
    attention: Attention, workload: Workload, inputs: Inputs, precise: torch.dtype
) -> tuple[str, bool | None]:
    """Run the variant with queries that see no key; return what it writes there, and the verdict.

    The verdict is about all other rows.
    """
    count = max(1, workload.seq // MASKED_SHARE)
    blocked = inputs.mask.blocked
    if blocked is None:
        shape = (workload.seq, workload.seq_kv)
        blocked = torch.zeros(shape, dtype=torch.bool, device=workload.device)
    blocked = blocked.clone()
    blocked[-count:] = True
    mask = Mask(workload.seq, workload.seq_kv, workload.device, is_causal=False, explicit=blocked)
    masked = Inputs(*inputs.tensors, mask)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = masked.copied()
            output = attention(*own.tensors, own.mask)
    except Exception:  # noqa: BLE001 - a variant may refuse such a mask with any exception
        return "not supported", None
    content = _content(output[:, :, -count:])
    if workload.seq == count:
        return content, None
    if _agrees(output, Inputs(*inputs.tensors, workload.no_mask()), workload, precise):
        return "mask ignored", None
    others = output.clone()
    others[:, :, -count:] = 0  # whatever stands there must not count as an average row
    return content, _agrees(others, masked, workload, precise)


def _agrees(output: Tensor, inputs: Inputs, workload: Workload, precise: torch.dtype) -> bool:
    found = _compared({"output": output}, _reference(inputs, precise))["output"]
    return _within(found, workload)


def _content(rows: Tensor) -> str:
    if bool(torch.isnan(rows).all()):
        return "nan"
    return "zeros" if bool((rows == 0).all()) else "other"


Piece: TypeAlias = dict[str, tuple[tuple[int | slice, ...], Tensor]]
"""By tensor: which part of it a piece of the reference is about, and the values."""


def _reference(
    inputs: Inputs, precise: torch.dtype, gradient: Tensor | None = None
) -> Iterator[Piece]:
    """Yield the reference of one batch entry and one kv head after another."""
    groups = inputs.query.shape[1] // inputs.key.shape[1]
    for batch in range(inputs.key.shape[0]):
        for head in range(inputs.key.shape[1]):
            own = slice(head * groups, (head + 1) * groups)
            query = inputs.query[batch, own].to(precise)
            key, value = (t[batch, head].to(precise) for t in (inputs.key, inputs.value))
            start = None if gradient is None else gradient[batch, own].to(precise)
            values = _reference_of_head(query, key, value, inputs.mask.blocked, start)
            places: list[tuple[int | slice, ...]] = [(batch, own), (batch, own), (batch, head)]
            places.append((batch, head))
            yield {
                name: (place, tensor)
                for name, place, tensor in zip(("output", *GRADIENTS), places, values, strict=False)
            }


def _reference_of_head(
    query: Tensor, key: Tensor, value: Tensor, blocked: Tensor | None, gradient: Tensor | None
) -> list[Tensor]:
    """Return output, and the gradients of query, key and value if ``gradient`` is given.

    Args:
        query: [groups, seq, head_dim], the query heads that share ``key`` and ``value``.
        key: [seq_kv, head_dim].
        value: [seq_kv, head_dim].
        blocked: [seq, seq_kv], True where a query must not look.
        gradient: as ``query``.
    """
    rows = max(1, MAX_BLOCK_ELEMENTS // (query.shape[0] * key.shape[0]))
    outputs, query_gradients = [], []
    key_gradient, value_gradient = torch.zeros_like(key), torch.zeros_like(value)
    for first in range(0, query.shape[1], rows):
        part = slice(first, first + rows)
        own_query, own_key, own_value = leaves = [
            tensor.detach().requires_grad_(gradient is not None)
            for tensor in (query[:, part], key, value)
        ]
        own_blocked = None if blocked is None else blocked[part]
        output = _definition(own_query, own_key, own_value, own_blocked)
        outputs.append(output.detach())
        if gradient is not None:
            found = torch.autograd.grad(output, leaves, gradient[:, part])
            query_gradients.append(found[0])
            key_gradient += found[1]
            value_gradient += found[2]
    whole = torch.cat(outputs, dim=1)
    if gradient is None:
        return [whole]
    return [whole, torch.cat(query_gradients, dim=1), key_gradient, value_gradient]


def _definition(query: Tensor, key: Tensor, value: Tensor, blocked: Tensor | None) -> Tensor:
    scores = query @ key.T / math.sqrt(query.shape[-1])
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    return torch.softmax(scores, dim=-1) @ value


class _Comparison:
    """Collects how far a tensor is from its reference, piece by piece."""

    def __init__(self, smallest_norm: float) -> None:
        self._smallest_norm = smallest_norm
        self._relative: float | None = None
        self._squares = [0.0, 0.0]
        self._absolute: float | None = None
        self._nan_elements = 0

    def add(self, result: Tensor, reference: Tensor) -> None:
        """Compare rows; those without a defined reference are left out."""
        defined = torch.isfinite(reference).all(dim=-1)
        result, reference = result[defined].to(reference.dtype), reference[defined]
        self._nan_elements += int((~torch.isfinite(result)).sum())
        finite = torch.isfinite(result).all(dim=-1)
        if not bool(finite.any()):
            return
        difference = result[finite] - reference[finite]
        norm = reference[finite].norm(dim=-1).clamp(min=max(self._smallest_norm, SMALLEST_NORM))
        off = difference.norm(dim=-1)
        self._relative = _larger(float((off / norm).max()), self._relative)
        self._squares[0] += float(off.square().sum())
        self._squares[1] += float(norm.square().sum())
        self._absolute = _larger(float(difference.abs().max()), self._absolute)

    def result(self) -> Errors:
        """Return the errors of all pieces."""
        off, size = self._squares
        overall = None if self._relative is None else _larger(math.sqrt(off / size), None)
        return Errors(self._relative, overall, self._absolute, self._nan_elements)


def _larger(error: float, known: float | None) -> float:
    """Return the larger error; an infinite one (norms overflow) as the largest number of JSON."""
    return min(max(error, known or 0.0), sys.float_info.max)


def _compared(results: dict[str, Tensor], reference: Iterator[Piece]) -> dict[str, Errors]:
    sizes = {name: _mean_row_norm(tensor) for name, tensor in results.items()}
    comparisons = {
        name: _Comparison(max(size, sizes[AS_LARGE_AS.get(name, name)]))
        for name, size in sizes.items()
    }
    for piece in reference:
        for name, (place, values) in piece.items():
            comparisons[name].add(results[name][place], values)
    return {name: comparison.result() for name, comparison in comparisons.items()}


def _mean_row_norm(tensor: Tensor) -> float:
    norms = tensor.float().norm(dim=-1)
    norms = norms[torch.isfinite(norms)]
    return float(norms.mean()) if norms.numel() else 0.0


def _reference_dtype(tensor: Tensor) -> torch.dtype:
    """Return float64, or float32 on a device without it."""
    try:
        tensor[:1, :1, :1].to(torch.float64)
    except (RuntimeError, TypeError):
        return torch.float32
    return torch.float64
