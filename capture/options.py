"""The words that options take, and their defaults; free of torch, so that ``--help`` is quick."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from capture.errors import RequestError
from capture.words import did_you_mean

DTYPES = ("bf16", "fp16", "fp32", "fp64")
LAYOUTS = ("bhsd", "bshd")
PHASES = ("forward", "backward", "step")


@dataclass(frozen=True)
class Shape:
    """The part of a workload whose default depends on the device."""

    batch: int
    heads: int
    seq: int
    head_dim: int


GPU_SHAPE = Shape(batch=8, heads=16, seq=1024, head_dim=64)
"""The published comparison of attention variants: bf16, causal, forward."""

CPU_SHAPE = Shape(batch=2, heads=4, seq=128, head_dim=32)
"""Small enough that every variant ends in seconds."""


@dataclass(frozen=True)
class Protocol:
    """How a trace is recorded.

    Attributes:
        warm_ups: calls before the profiler exists, of which it knows nothing.
        wait, warmup, active: steps of ``torch.profiler.schedule``: not profiled, profiled and
            thrown away, recorded.
        repeat: how many traces of ``active`` steps.
        record_shapes: shapes, strides, dtypes and scalar inputs of every op.
        profile_memory: every allocation.
        with_stack: the Python frames; the costliest of all.
        with_modules: the nn.Module of every op (TorchScript only).
        with_flops: FLOPs in torch's own tables; nothing of it reaches a trace.
        cuda_sync_events: what the host waited for.
    """

    warm_ups: int = 3
    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    record_shapes: bool = True
    profile_memory: bool = False
    with_stack: bool = False
    with_modules: bool = False
    with_flops: bool = False
    cuda_sync_events: bool = False

    def __post_init__(self) -> None:
        """Refuse a schedule that records nothing.

        Raises:
            RequestError: a number is too small.
        """
        for name, value in self.as_json().items():
            if type(value) is not type(getattr(Protocol, name)):
                kind = type(getattr(Protocol, name)).__name__
                raise RequestError(f"{name} is {value!r}; it must be {kind}")
        for name, least in (
            ("warm_ups", 0),
            ("wait", 0),
            ("warmup", 0),
            ("active", 1),
            ("repeat", 1),
        ):
            if getattr(self, name) < least:
                raise RequestError(f"{name} is {getattr(self, name)}; it must be at least {least}")

    def as_json(self) -> dict[str, int | bool]:
        """Return the fields by name."""
        return asdict(self)


def make_protocol(fields: Mapping[str, object]) -> Protocol:
    """Return a protocol with some fields other than by default.

    Raises:
        RequestError: there is no such field, or its value is impossible.
    """
    known = Protocol().as_json()
    for name in fields:
        if name not in known:
            raise RequestError(f"{name}: no such option{did_you_mean(name, known)}")
    return Protocol(**fields)  # type: ignore[arg-type]  # checked when it is made
