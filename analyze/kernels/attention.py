"""Which implementation of attention a kernel belongs to, read from its name."""

import re
from collections.abc import Iterable

from analyze.kernels.display import shorten

MAX_TEXT = 4096
"""Characters of a name that are looked at."""

UNFUSED = "unfused"
"""Attention as a matrix product, a softmax and a matrix product, each a kernel of its own."""

_BY_NAME: tuple[tuple[str, str], ...] = (
    ("mla", r"_mla_|mla_.{0,80}(?:fwd|decode|attn)|multi_latent|::mla::|flashmla"),
    ("trtllm", r"fmhasm\d+|fmha_v2"),
    ("flash4", r"cuteflash_?fwd|flashattentionforwardsm\d+|flash_attn.?cute.?flash_fwd"),
    ("flash3", r"flashattnfwd"),
    ("flash1", r"fmha_fwd_loop_kernel|fmha_fprop"),
    ("cudnn", r"cudnn.{0,200}sdpa|sdpa_sm\d+_flash_fprop"),
    ("efficient", r"fmha_cutlassf|attentionkernel"),
    ("flex", r"^triton_tem_.{0,400}flex_attention"),
    ("flashinfer", r"batch(?:prefill|decode)with|single(?:prefill|decode)with"),
    ("sage", r"sage_fwd"),
    ("aiter", r"aiter::|^_?pa_(?:fwd|decode|ragged|bf16|fp8)"),
    ("ck", r"ck_tile|fmhafwd|fmhabatchprefill"),
    ("aotriton", r"^attn_fwd(?:\.kd)?$"),
    ("paged", r"paged_attention"),
    ("triton", r"unified_attention|_fwd_grouped_kernel_stage|_attn_fwd|^attn_fwd"),
    ("flash2", r"flash_?fwd"),
)
"""Implementation, and what the names of its forward kernels hold in lower case; first that fits.

From section E.3 of the trace-format reference: FlashMLA and other latent attention, TensorRT-LLM,
FlashAttention 4 (CuTe), 3 (Hopper) and 1 (torch 2.0), cuDNN, memory-efficient (CUTLASS; torch and
xformers), FlexAttention, FlashInfer, SageAttention, AITER, Composable Kernel and AOTriton (AMD),
paged attention of vLLM, Triton kernels of vLLM, SGLang and others, FlashAttention 2.
"""

IMPLEMENTATIONS = (*(name for name, _ in _BY_NAME), UNFUSED)

_PRODUCTS = ("gemm", "gemm.gemv")
_FORWARD = ("attn.fwd", "triton.template")


def attention_implementation(name: str, family: str | None) -> str | None:
    """Return which implementation a forward attention kernel belongs to; None where unknown.

    Args:
        name: name of the kernel as the profiler wrote it.
        family: its family as :mod:`analyze.kernels.classify` tells it.
    """
    if family not in _FORWARD:
        return None
    # Template arguments name helpers of other implementations, so they come second.
    return _named_in(shorten(name[:MAX_TEXT])) or _named_in(name[:MAX_TEXT])


def _named_in(text: str) -> str | None:
    lowered = text.strip().lower()
    return next((found for found, pattern in _BY_NAME if re.search(pattern, lowered)), None)


def is_unfused(families: Iterable[str | None]) -> bool:
    """Whether kernels of these families are attention in parts: products and a softmax, unfused."""
    present = set(families)
    fused = "attn.fwd" in present
    return not fused and "softmax" in present and any(family in present for family in _PRODUCTS)
