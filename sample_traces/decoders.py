"""Two ways to decode with a key-value cache, as steps that ``capture run`` records.

Each call is one decoding step: a new query attends to all keys and values so far.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention

BATCH, HEADS, SEQ, HEAD_DIM = 2, 4, 128, 32
CACHE_ROOM = 16

generator = torch.Generator().manual_seed(0)


def random(length: int) -> torch.Tensor:
    """Return bf16 numbers, shape [BATCH, HEADS, length, HEAD_DIM]."""
    shape = (BATCH, HEADS, length, HEAD_DIM)
    return torch.randn(shape, generator=generator).to(torch.bfloat16)


class Cache:
    """Keys and values so far, and the new query, key and value of a step."""

    def __init__(self) -> None:
        self.query, self.new_key, self.new_value = random(1), random(1), random(1)
        self.keys, self.values = random(SEQ), random(SEQ)


class RoomyCache(Cache):
    """The same with room for more, of which ``length`` is in use."""

    def __init__(self) -> None:
        super().__init__()
        room = torch.zeros(BATCH, HEADS, SEQ + CACHE_ROOM, HEAD_DIM, dtype=torch.bfloat16)
        self.keys, self.values = room, room.clone()
        self.length = SEQ


growing, roomy = Cache(), RoomyCache()


def with_cat() -> None:
    """Append to the cache with torch.cat, which copies all of it."""
    cache = growing
    cache.keys = torch.cat([cache.keys, cache.new_key], dim=2)
    cache.values = torch.cat([cache.values, cache.new_value], dim=2)
    scaled_dot_product_attention(cache.query, cache.keys, cache.values)


def preallocated() -> None:
    """Write the new entry into a cache that has room for it."""
    cache = roomy
    cache.keys[:, :, cache.length : cache.length + 1] = cache.new_key
    cache.values[:, :, cache.length : cache.length + 1] = cache.new_value
    cache.length += 1
    keys, values = (room[:, :, : cache.length] for room in (cache.keys, cache.values))
    scaled_dot_product_attention(cache.query, keys, values)
