"""Can this machine run a variant? One call tells, in torch's own words where it cannot."""

import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from capture.errors import CaptureError
from capture.phases import Attention
from capture.user_code import explain
from capture.variants import UnavailableError
from capture.words import one_line
from capture.workload import Inputs, Workload

Refusal = Literal["skipped", "failed"]

NO_BACKEND = ("No viable backend for scaled_dot_product_attention", "No available kernel")
INPUT_NAMES = ("query", "key", "value")
MISSING_COMPILERS = ("InvalidCxxCompiler", "TritonMissing", "GPUTooOldForTriton")


@dataclass(frozen=True)
class Refused:
    """Why a variant did not run.

    Attributes:
        status: ``skipped`` where this device, dtype or build cannot run it, else ``failed``.
        reason: in one line.
    """

    status: Refusal
    reason: str


def try_variant(attention: Attention, workload: Workload, inputs: Inputs) -> Refused | None:
    """Run a variant once in the workload's phase; return why it cannot run, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _run_once(attention, workload, inputs)
        except Exception as error:  # noqa: BLE001 - a variant may raise anything
            return refusal(error, [str(warning.message) for warning in caught])
    return None


def refusal(error: BaseException, warned: list[str]) -> Refused:
    """Judge what a variant raised.

    Args:
        error: as raised.
        warned: texts of the warnings before it; torch says there why a backend was not taken.
    """
    text = one_line(str(error))
    if isinstance(error, RuntimeError) and str(error).startswith(NO_BACKEND):
        told = " ".join(warned) or str(error).partition(". ")[0]
        return Refused("skipped", f"torch has no such backend for this: {one_line(told)}")
    if any(type(cause).__name__ in MISSING_COMPILERS for cause in _causes(error)):
        return Refused("skipped", f"torch.compile cannot compile here: {text}")
    if is_out_of_memory(error):
        return Refused("failed", f"out of memory: {text}")
    is_ours = isinstance(error, UnavailableError | CaptureError)
    cannot_run = isinstance(error, UnavailableError | NotImplementedError)
    return Refused("skipped" if cannot_run else "failed", text if is_ours else explain(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether a GPU's or the host's memory ran out."""
    text = str(error)
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or (
        "DefaultCPUAllocator" in text and "allocate memory" in text
    )


def _run_once(attention: Attention, workload: Workload, inputs: Inputs) -> None:
    if workload.phase == "forward":
        with torch.no_grad():
            _check_output(attention(*inputs.tensors, inputs.mask), inputs)
        _refuse_writing(inputs)
        return
    trainable = inputs.trainable()
    output = attention(*trainable.tensors, trainable.mask)
    _check_output(output, inputs)
    gradients = torch.autograd.grad(
        output, trainable.tensors, workload.gradient(), allow_unused=True
    )
    for name, gradient in zip(INPUT_NAMES, gradients, strict=True):
        if gradient is None:
            raise ValueError(f"no gradient reaches {name}")


def _check_output(output: object, inputs: Inputs) -> None:
    if not isinstance(output, Tensor):
        raise TypeError(f"the variant returned {type(output).__name__}, not a tensor")
    wanted = (*inputs.query.shape[:-1], inputs.value.shape[-1])
    if tuple(output.shape) != wanted:
        raise ValueError(f"the variant returned shape {tuple(output.shape)}, not {wanted}")
    if (output.dtype, output.device) != (inputs.query.dtype, inputs.query.device):
        given, got = inputs.query, output
        raise TypeError(
            f"the variant returned {got.dtype} on {got.device}, not {given.dtype} on {given.device}"
        )


def _refuse_writing(inputs: Inputs) -> None:
    """Refuse a variant that writes to its inputs: every call would see other numbers."""
    for name, tensor in zip(INPUT_NAMES, inputs.tensors, strict=True):
        if tensor._version:
            raise ValueError(f"the variant writes to its {name}; later calls get other numbers")


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        inner = getattr(error, "inner_exception", None)  # how torch.compile wraps errors
        error = inner or error.__cause__ or error.__context__
    return found
