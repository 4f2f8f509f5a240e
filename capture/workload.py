"""One attention problem: shapes, dtype, device, phase; and its inputs."""

from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor

from capture.errors import RequestError
from capture.mask import Mask
from capture.options import DTYPES, LAYOUTS, PHASES

TORCH_DTYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}

BACKWARD_FLOPS = 2.5
"""Operations of a backward pass in forward passes: five matrix products against two.

The convention of the FlashAttention-2 paper (Dao 2023, section 4.1), which counts the scores that
a backward pass computes again.
"""


@dataclass(frozen=True)
class Workload:
    """Everything that decides which numbers go into attention and where it runs.

    Attributes:
        batch, heads, seq, head_dim: shape of the query.
        kv_heads: heads of key and value; fewer than ``heads`` is grouped-query attention.
        seq_kv: length of key and value.
        dtype: ``bf16``, ``fp16``, ``fp32`` or ``fp64``.
        causal: query ``i`` sees the keys ``0..i``.
        layout: how the tensors lie in memory, ``bhsd`` or ``bshd``; variants always see
            [batch, heads, seq, head_dim].
        phase: ``forward`` (no gradients), ``backward`` (forward and backward) or ``step`` (forward,
            loss, backward and an optimizer on query, key and value).
        compile: every variant goes through ``torch.compile``.
        seed: of the random inputs.
        device: a torch device, such as ``cuda:0``.

    Raises:
        RequestError: the shapes do not fit together.
    """

    batch: int
    heads: int
    kv_heads: int
    seq: int
    seq_kv: int
    head_dim: int
    dtype: str
    causal: bool
    layout: str
    phase: str
    compile: bool
    seed: int
    device: str

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "kv_heads", "seq", "seq_kv", "head_dim"):
            if getattr(self, name) < 1:
                raise RequestError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name, known in (("dtype", DTYPES), ("layout", LAYOUTS), ("phase", PHASES)):
            if getattr(self, name) not in known:
                raise RequestError(
                    f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}"
                )
        if self.heads % self.kv_heads:
            raise RequestError(
                f"{self.heads} heads cannot share {self.kv_heads} kv heads evenly;"
                " --kv-heads must divide --heads"
            )

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as torch names it."""
        return TORCH_DTYPES[self.dtype]

    @property
    def label(self) -> str:
        """Phase, shape and dtype in letters that any file system takes."""
        kv_heads = "" if self.kv_heads == self.heads else f"kv{self.kv_heads}"
        seq_kv = "" if self.seq_kv == self.seq else f"x{self.seq_kv}"
        shape = f"b{self.batch}h{self.heads}{kv_heads}s{self.seq}{seq_kv}d{self.head_dim}"
        parts = [self.phase, shape, self.dtype, "causal" if self.causal else "full"]
        parts += [self.layout] if self.layout != LAYOUTS[0] else []
        parts += ["compiled"] if self.compile else []
        return "-".join(parts)

    @property
    def flops(self) -> float:
        """Floating-point operations of one call, by the convention of published attention figures.

        Two matrix products of ``2 x batch x heads x seq x seq_kv x head_dim`` each, half of that
        with a causal mask over a square (the pairs that are looked at, otherwise); a backward pass
        counts :data:`BACKWARD_FLOPS` times. Softmax is not counted. Source: FlashAttention-2 paper
        (Dao 2023, section 4.1).
        """
        forward = 4.0 * self.batch * self.heads * self._pairs * self.head_dim
        return forward if self.phase == "forward" else forward * (1 + BACKWARD_FLOPS)

    @property
    def _pairs(self) -> float:
        if not self.causal:
            return float(self.seq * self.seq_kv)
        if self.seq <= self.seq_kv:
            return self.seq * self.seq / 2
        return self.seq_kv * self.seq_kv / 2 + (self.seq - self.seq_kv) * self.seq_kv

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)

    def mask(self) -> Mask:
        """Return the mask of this problem."""
        return Mask(self.seq, self.seq_kv, self.device, is_causal=self.causal)

    def no_mask(self) -> Mask:
        """Return a mask that lets every query look everywhere."""
        return Mask(self.seq, self.seq_kv, self.device, is_causal=False)

    def inputs(self) -> "Inputs":
        """Make the tensors; the same seed gives the same numbers on every device."""
        generator = torch.Generator().manual_seed(self.seed)

        def random(heads: int, length: int) -> Tensor:
            shape = (self.batch, heads, length, self.head_dim)
            if self.layout == "bshd":
                shape = (self.batch, length, heads, self.head_dim)
            made = torch.randn(shape, generator=generator).to(self.device, self.torch_dtype)
            return made.transpose(1, 2) if self.layout == "bshd" else made

        return Inputs(
            query=random(self.heads, self.seq),
            key=random(self.kv_heads, self.seq_kv),
            value=random(self.kv_heads, self.seq_kv),
            mask=self.mask(),
        )

    def other_inputs(self) -> "Inputs":
        """Make tensors with other numbers."""
        return replace(self, seed=self.seed + 2).inputs()

    def gradient(self) -> Tensor:
        """Make what a backward pass starts from: [batch, heads, seq, head_dim]."""
        generator = torch.Generator().manual_seed(self.seed + 1)
        shape = (self.batch, self.heads, self.seq, self.head_dim)
        return torch.randn(shape, generator=generator).to(self.device, self.torch_dtype)


@dataclass(frozen=True)
class Inputs:
    """The tensors of one problem.

    Attributes:
        query: [batch, heads, seq, head_dim].
        key, value: [batch, kv_heads, seq_kv, head_dim].
        mask: which keys a query may look at.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask

    def trainable(self) -> "Inputs":
        """Return the same numbers as leaves that gradients are computed for; memory is shared."""
        query, key, value = (
            tensor.detach().requires_grad_() for tensor in (self.query, self.key, self.value)
        )
        return Inputs(query, key, value, self.mask)

    def copied(self) -> "Inputs":
        """Return copies of everything, for code that may write to it."""
        query, key, value = (tensor.clone() for tensor in self.tensors)
        return Inputs(query, key, value, self.mask.fresh())

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value."""
        return self.query, self.key, self.value
