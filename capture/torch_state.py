"""torch's global settings, which a variant may change and the next must not inherit."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def restored_torch_state() -> Iterator[None]:
    """Put torch's global settings back as they were."""
    grad_enabled = torch.is_grad_enabled()
    default_dtype, default_device = torch.get_default_dtype(), torch.get_default_device()
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    precision = torch.get_float32_matmul_precision()
    try:
        yield
    finally:
        torch.set_grad_enabled(grad_enabled)
        torch.set_default_dtype(default_dtype)
        if torch.get_default_device() != default_device:
            torch.set_default_device(default_device)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)
        torch.set_float32_matmul_precision(precision)
