"""The attention variants: each a small function from query, key, value and mask to output.

A new variant is one function and one line in :data:`VARIANTS`.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import attention as torch_attention
from torch.nn.functional import scaled_dot_product_attention

from capture.errors import RequestError
from capture.mask import Mask
from capture.phases import Attention
from capture.words import did_you_mean

HUB_KERNEL = "kernels-community/flash-attn2"


class UnavailableError(Exception):
    """A variant cannot run here; the message says why."""


@dataclass(frozen=True)
class Variant:
    """One way to compute attention.

    Attributes:
        name: as the command line and the files name it.
        description: what is special about it, in a line.
        attention: computes it.
        compiled: goes through ``torch.compile`` in any case.
        compiles_itself: calls ``torch.compile`` where it wants to.
        only_by_name: not part of "all variants", for what a user must want.
    """

    name: str
    description: str
    attention: Attention
    compiled: bool = False
    compiles_itself: bool = False
    only_by_name: bool = False


def naive(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Attention by hand; the mask is filled out of place, which copies the scores."""
    scores = _scores(query, key)
    if mask.blocked is not None:
        scores = scores.masked_fill(mask.blocked, -math.inf)
    return _weighted(scores, value)


def naive_inplace(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Attention by hand; the mask is filled in place."""
    scores = _scores(query, key)
    if mask.blocked is not None:
        scores.masked_fill_(mask.blocked, -math.inf)
    return _weighted(scores, value)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    scores = torch.matmul(query, _shared(key, query).transpose(-2, -1))
    return torch.mul(scores, 1 / math.sqrt(query.shape[-1]))


def _weighted(scores: Tensor, value: Tensor) -> Tensor:
    return torch.matmul(torch.softmax(scores, dim=-1), _shared(value, scores))


def _shared(tensor: Tensor, query: Tensor) -> Tensor:
    """Repeat key or value heads so that every query head has one of its own."""
    groups = query.shape[1] // tensor.shape[1]
    return tensor if groups == 1 else tensor.repeat_interleave(groups, dim=1)


def sdpa(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """The library's attention; torch chooses the backend."""
    is_grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask.allowed,
        is_causal=mask.is_causal,
        **({"enable_gqa": True} if is_grouped else {}),  # torch 2.4 has no such parameter
    )


def pinned(backend_name: str) -> Attention:
    """Return the library's attention pinned to one backend of ``torch.nn.attention.SDPBackend``."""

    def attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        backend = getattr(torch_attention.SDPBackend, backend_name, None)
        if backend is None:
            raise UnavailableError(f"torch {torch.__version__} has no {backend_name} backend")
        with torch_attention.sdpa_kernel(backend):
            return sdpa(query, key, value, mask)

    return attention


class CompiledFlex:
    """flex_attention as it is meant to be used: through torch.compile, with a block mask."""

    def __init__(self) -> None:
        self._compiled: Callable[..., Tensor] | None = None

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        """Compute attention; the first call compiles."""
        if self._compiled is None:
            flex = _required("torch.nn.attention.flex_attention", "torch >= 2.5")
            self._compiled = torch.compile(flex.flex_attention)
        is_grouped = query.shape[1] != key.shape[1]
        return self._compiled(query, key, value, block_mask=mask.block_mask, enable_gqa=is_grouped)


def flash_attn(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Compute attention with the flash-attn package."""
    package = _required("flash_attn", "the package flash-attn")
    return _flash_attn_func(package.flash_attn_func, query, key, value, mask)


def hub_flash_attn(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Compute attention with the flash-attn kernels that the package ``kernels`` downloads."""
    return _flash_attn_func(_hub_kernel().flash_attn_func, query, key, value, mask)


@cache
def _hub_kernel() -> ModuleType:
    kernels = _required("kernels", "the package kernels")
    kernel: ModuleType = kernels.get_kernel(HUB_KERNEL)
    return kernel


def _flash_attn_func(
    function: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, mask: Mask
) -> Tensor:
    """Call flash-attn's function, whose tensors are [batch, seq, heads, head_dim]."""
    _refuse_explicit(mask, "flash-attn")
    if mask.is_causal and mask.seq != mask.seq_kv:
        raise UnavailableError("flash-attn aligns the causal mask at the bottom right")
    inputs = (tensor.transpose(1, 2) for tensor in (query, key, value))
    return function(*inputs, causal=mask.is_causal).transpose(1, 2)


def xformers(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Compute attention with the xformers package."""
    ops = _required("xformers.ops", "the package xformers")
    _refuse_explicit(mask, "xformers (as it is called here)")
    inputs = (
        tensor.transpose(1, 2) for tensor in (query, _shared(key, query), _shared(value, query))
    )
    bias = ops.LowerTriangularMask() if mask.is_causal else None
    output: Tensor = ops.memory_efficient_attention(*inputs, attn_bias=bias)
    return output.transpose(1, 2)


def _refuse_explicit(mask: Mask, package: str) -> None:
    if mask.explicit is not None:
        raise UnavailableError(f"{package} takes no mask tensor")


def _required(module: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnavailableError(f"needs {what}: {error}") from None


VARIANTS: tuple[Variant, ...] = (
    Variant("naive", "matmul, mul, masked_fill, softmax, matmul", naive),
    Variant("naive-inplace", "the same with masked_fill_", naive_inplace),
    Variant("sdpa-auto", "scaled_dot_product_attention, torch chooses the backend", sdpa),
    Variant("sdpa-math", "pinned to the math backend", pinned("MATH")),
    Variant(
        "sdpa-efficient", "pinned to memory-efficient attention", pinned("EFFICIENT_ATTENTION")
    ),
    Variant("sdpa-flash", "pinned to flash attention", pinned("FLASH_ATTENTION")),
    Variant("sdpa-cudnn", "pinned to cuDNN", pinned("CUDNN_ATTENTION")),
    Variant(
        "flex", "flex_attention, compiled, with a block mask", CompiledFlex(), compiles_itself=True
    ),
    Variant("compiled-naive", "naive through torch.compile", naive, compiled=True),
    Variant("flash-attn", "the package flash-attn", flash_attn),
    Variant("xformers", "memory_efficient_attention of the package xformers", xformers),
    Variant(
        "hub-flash-attn",
        f"{HUB_KERNEL}, which the package kernels downloads and runs",
        hub_flash_attn,
        only_by_name=True,
    ),
)


def find_variant(name: str) -> Variant:
    """Return the variant of a name.

    Raises:
        RequestError: there is none.
    """
    by_name = {variant.name: variant for variant in VARIANTS}
    if name not in by_name:
        raise RequestError(
            f"--variant {name}: no such variant{did_you_mean(name, by_name)}"
            " (capture --list shows all; your own: path/to/file.py:function)"
        )
    return by_name[name]
