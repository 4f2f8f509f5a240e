"""Deterministic findings from PyTorch-profiler traces."""

import os

# polars' allocator keeps freed pages by default, which shows as memory that a large trace does not
# need. It reads this when polars is first imported; what the user has set stays.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:50,muzzy_decay_ms:0")
