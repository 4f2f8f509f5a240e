"""Which keys a query may look at."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


@dataclass
class Mask:
    """The mask of one attention problem; what is derived from it is made once, when asked for.

    Fused kernels need no mask tensor for the causal case, and at long sequences it would be the
    largest tensor of all: hence nothing is made ahead.

    Attributes:
        seq: number of queries.
        seq_kv: number of keys.
        device: where the tensors of the mask live.
        is_causal: query ``i`` sees the keys ``0..i``: aligned at the top left, as torch does it.
        explicit: any other mask, bool of shape [seq, seq_kv], True where a query must not look.
    """

    seq: int
    seq_kv: int
    device: str
    is_causal: bool
    explicit: Tensor | None = None
    _blocked: Tensor | None = field(default=None, repr=False)
    _block_mask: "BlockMask | None" = field(default=None, repr=False)

    def fresh(self) -> "Mask":
        """Return the same mask, sharing no tensor with this one."""
        explicit = None if self.explicit is None else self.explicit.clone()
        return Mask(self.seq, self.seq_kv, self.device, self.is_causal, explicit)

    @property
    def blocked(self) -> Tensor | None:
        """Bool of shape [seq, seq_kv], True where a query must not look; None if it never must."""
        if self.explicit is not None:
            return self.explicit
        if self.is_causal and self._blocked is None:
            ones = torch.ones(self.seq, self.seq_kv, dtype=torch.bool, device=self.device)
            self._blocked = ones.triu(1)
        return self._blocked

    @property
    def allowed(self) -> Tensor | None:
        """The explicit mask as SDPA's ``attn_mask``: True where a query may look."""
        return None if self.explicit is None else ~self.explicit

    @property
    def block_mask(self) -> "BlockMask | None":
        """The mask as flex attention takes it; None if every query may look everywhere."""
        if self._block_mask is None and (self.is_causal or self.explicit is not None):
            self._block_mask = self._make_block_mask()
        return self._block_mask

    def _make_block_mask(self) -> "BlockMask":
        from torch.nn.attention.flex_attention import create_block_mask  # noqa: PLC0415

        explicit = self.explicit

        def may_look(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return query >= key if explicit is None else ~explicit[query, key]

        return create_block_mask(
            may_look, B=None, H=None, Q_LEN=self.seq, KV_LEN=self.seq_kv, device=self.device
        )
