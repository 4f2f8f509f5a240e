"""Names that stand for kernels and still say what the rules read from a kernel's name."""

from collections.abc import Iterator
from typing import NamedTuple

from analyze.kernels.attention import attention_implementation
from analyze.kernels.classify import classify

_FAMILY_WORDS: dict[str | None, tuple[str, ...]] = {
    None: ("kernel_{n}",),
    "comm": ("kernel_{n}_all_reduce_fusion",),
    "triton.template": ("triton_tem_kernel_{n}", "triton_tem_flex_attention_kernel_{n}"),
    "triton.reduction": ("triton_red_kernel_{n}",),
    "triton.pointwise": ("triton_poi_kernel_{n}",),
    "triton.other": ("triton_kernel_{n}",),
    "attn.aux": ("kernel_{n}_merge_attn_states",),
    "attn.bwd": ("kernel_{n}_flash_bwd", "kernel_{n}_fmha_bwd", "flash::flash_bwd_kernel_{n}"),
    "attn.fwd": (
        *("kernel_{n}_fmha_fwd", "kernel_{n}_flash_fwd", "flash::flash_fwd_kernel_{n}"),
        *("kernel_{n}_paged_attention", "kernel_{n}_unified_attention", "kernel_{n}_mla_attn"),
        *("kernel_{n}_FlashAttnFwd", "kernel_{n}_FlashAttnFwdSm90", "kernel_{n}_fmha_v2"),
        *("kernel_{n}_cuteflash_fwd", "kernel_{n}_cudnn_sdpa_fprop", "kernel_{n}_sage_fwd"),
        *(
            "kernel_{n}_BatchPrefillWith",
            "kernel_{n}_fmha_cutlassF",
            "kernel_{n}_fmhaSm100",
            "kernel_{n}_fmhaFwd",
        ),
    ),
    "conv": ("kernel_{n}_conv2d", "kernel_{n}_nchwToNhwc"),
    "gemm": ("kernel_{n}_gemm", "_ZN2ck_kernel_{n}"),
    "gemm.aux": ("kernel_{n}_splitKreduce",),
    "gemm.gemv": ("kernel_{n}_gemv",),
    "norm": ("kernel_{n}_layer_norm",),
    "optim": ("kernel_{n}_fused_adam",),
    "rope": ("kernel_{n}_rotary",),
    "embed": ("kernel_{n}_embedding_bag",),
    "sparse.fbgemm": ("kernel_{n}_jagged",),
    "moe.route": ("kernel_{n}_moe_align",),
    "copy.cast": ("kernel_{n}_float32_copy_kernel_cuda",),
    "copy": ("kernel_{n}_transpose",),
    "mask": ("kernel_{n}_masked_fill",),
    "fill": ("kernel_{n}_fill_kernel",),
    "reduce": ("void reduce_kernel_{n}",),
    "sort.scan": ("kernel_{n}_sort",),
    "index": ("kernel_{n}_index_",),
    "loss": ("kernel_{n}_mse_",),
    "pool.interp": ("kernel_{n}_pooling",),
    "quant": ("kernel_{n}_quantize",),
    "rng": ("kernel_{n}_dropout",),
}
"""By family of ``kernels/names.yaml``, names that it puts there; other families by their own."""

_PRECISION_WORDS = (
    *("", "bf16", "fp16", "tf32", "fp8", "float", "int8_i", "mxfp4", "dgemm", "sgemm", "cgemm"),
    *("mxfp6", "_QkvE4m3", "_QkvBfloat16", "_QkvFp16"),
)
_CORE_WORDS = ("", "tensorop", "simt", "mfma")


class _Facts(NamedTuple):
    family: str | None
    precision: str | None
    tensor_core: bool | None
    implementation: str | None


def kernel_name(number: int, instance: int, name: str) -> str:
    """Return a name with this number of which the same is known as of ``name``.

    Where there is none for all of it, the implementation of attention goes first, then tensor
    cores, then the precision.

    Args:
        number: of the kernel.
        instance: of the template; the first does not show it.
        name: the kernel's own name.
    """
    wanted = _facts(name)
    candidates = [
        (candidate, _facts(candidate)) for candidate in _candidates(number, instance, wanted)
    ]
    for length in range(len(wanted), 0, -1):
        for candidate, facts in candidates:
            if facts[:length] == wanted[:length]:
                return candidate
    return f"kernel_{number}{_arguments(str(instance))}"


def _facts(name: str) -> _Facts:
    known = classify(name)
    implementation = attention_implementation(name, known.family)
    return _Facts(known.family, known.precision, known.tensor_core, implementation)


def _candidates(number: int, instance: int, wanted: _Facts) -> Iterator[str]:
    own_word = f"kernel_{{n}}_{wanted.family}"
    instance_word = "" if instance == 1 else str(instance)
    for words in _FAMILY_WORDS.get(wanted.family, (own_word,)):
        for precision in _PRECISION_WORDS:
            for cores in _CORE_WORDS:
                yield words.format(n=number) + _arguments(precision, cores, instance_word)


def _arguments(*words: str) -> str:
    """Return words as template arguments: they do not count as part of a kernel's short name."""
    given = ", ".join(word for word in words if word)
    return f"<{given}>" if given else ""
