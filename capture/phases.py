"""What one step of a workload does: forward, backward, or a whole training step."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.profiler import record_function

from capture.mask import Mask
from capture.workload import Inputs, Workload

Attention: TypeAlias = Callable[[Tensor, Tensor, Tensor, Mask], Tensor]
"""Computes attention: query, key, value (all [batch, heads, seq, head_dim]) and mask to output."""

Step: TypeAlias = Callable[[], None]

FORWARD, BACKWARD, STEP = "attn_fwd", "attn_bwd", "attn_step"
"""The annotations around a forward pass, a backward pass, and both together."""

LEARNING_RATE = 1e-5


def annotations(phase: str) -> tuple[str, ...]:
    """Return the annotations that one step of a phase writes, each once."""
    return (FORWARD,) if phase == "forward" else (STEP, FORWARD, BACKWARD)


def make_step(attention: Attention, workload: Workload, inputs: Inputs) -> Step:
    """Return the function that runs one step of the workload's phase."""
    if workload.phase == "forward":
        return _forward(attention, inputs)
    if workload.phase == "backward":
        return _backward(attention, inputs.trainable(), workload.gradient())
    return _training(attention, inputs.trainable())


def _forward(attention: Attention, inputs: Inputs) -> Step:
    def step() -> None:
        with torch.no_grad(), record_function(FORWARD):
            attention(*inputs.tensors, inputs.mask)

    return step


def _backward(attention: Attention, inputs: Inputs, gradient: Tensor) -> Step:
    def step() -> None:
        with record_function(STEP):
            with record_function(FORWARD):
                output = attention(*inputs.tensors, inputs.mask)
            with record_function(BACKWARD):
                torch.autograd.grad(output, inputs.tensors, gradient)

    return step


def _training(attention: Attention, inputs: Inputs) -> Step:
    """Train query, key and value themselves; they stand for the layers that make them."""
    optimizer = torch.optim.AdamW(inputs.tensors, lr=LEARNING_RATE)

    def step() -> None:
        with record_function(STEP):
            with record_function(FORWARD):
                loss = attention(*inputs.tensors, inputs.mask).float().square().mean()
            with record_function(BACKWARD):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step
