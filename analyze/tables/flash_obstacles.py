"""What of an attention call's recorded inputs torch's flash attention does not take.

From torch's own checks before it chooses a backend (torch 2.5 to 2.13,
``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`` and ``sdp_utils_cpp.{h,cpp}``). Not all of
them leave something in a trace: whether a backend was switched off is not recorded, and that a
tensor requires grad shows in a backward pass alone. So an empty answer does not mean that nothing
stood in the way.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from analyze.kernels.device import DeviceLimits

CHECKED_OP = "aten::scaled_dot_product_attention"
"""The op that chooses a backend; the inputs of others are not looked at."""

OBSTACLES = (
    "dtype",
    "mask",
    "head_size",
    "causal",
    "compute_capability",
    "dropout",
    "dimensions",
    "heads",
    "empty",
    "layout",
    "requires_grad",
)

_MASK, _DROPOUT, _CAUSAL, _GQA = 3, 4, 5, 7
"""Places of ``scaled_dot_product_attention``'s inputs behind query, key and value."""

_DTYPES = ("fp16", "bf16")
_FIRST_CAPABILITY = (8, 0)
_LARGEST_HEAD = {"nvidia": 256, "amd": 512}
"""Of AMD's the newer libraries' limit; older ones take 256."""

_LARGEST_TRAINED_HEAD = 192
_LARGEST_UNTRAINED_HEAD = 224
_SMALL_CHIPS = (((8, 6), (8, 9)), ((12, 0), (12, 1)))
"""Compute capabilities, from and to, that cannot train all sizes of heads: those between the two
sizes not at all, larger ones not with dropout."""


class Asked(NamedTuple):
    """What a call was asked for; None is unknown.

    Attributes:
        shapes: of all inputs.
        dtype: of query, key and value.
        dropout, causal, grouped: the scalar inputs ``dropout_p``, ``is_causal``, ``enable_gqa``.
        last_strides: of query, key and value, between neighbours of the last dimension, in
            elements.
        trained: there is a backward pass, so that inputs require grad.
    """

    shapes: list[Any]
    dtype: str | None
    dropout: float | None
    causal: bool | None
    grouped: bool | None
    last_strides: tuple[int | None, ...]
    trained: bool


def asked_for(
    shapes: str | None,
    dtype: str | None,
    scalars: str | None,
    strides: str | None,
    *,
    trained: bool,
) -> Asked:
    """Read what was recorded of a call.

    Args:
        shapes: Kineto's ``Input Dims`` as JSON.
        dtype: as in the tables.
        scalars: Kineto's ``Concrete Inputs`` as JSON.
        strides: Kineto's ``Input Strides`` as JSON (torch 2.4 and newer).
        trained: the trace holds a backward pass.
    """
    dims, values = orjson.loads(shapes or "[]"), orjson.loads(scalars or "[]")
    values = values if isinstance(values, list) else []
    return Asked(
        shapes=dims if isinstance(dims, list) else [],
        dtype=dtype,
        dropout=_number(_at(values, _DROPOUT)),
        causal=_flag(_at(values, _CAUSAL)),
        # Without that input (before torch 2.5) heads of keys were never shared.
        grouped=_flag(_at(values, _GQA)) if len(values) > _GQA else (False if values else None),
        last_strides=_last_strides(orjson.loads(strides or "[]")),
        trained=trained,
    )


def obstacles_on_gpu(asked: Asked, device: DeviceLimits | None) -> Iterator[str]:
    """Yield what flash attention on a GPU does not take of the inputs."""
    if asked.dtype is not None and asked.dtype not in _DTYPES:
        yield "dtype"
    if _at(asked.shapes, _MASK):
        yield "mask"
    vendor = device.vendor if device else None
    largest = _LARGEST_HEAD.get(vendor or "")
    if _differ(asked, -1) or (largest and any(size > largest for size in _sizes(asked, -1))):
        yield "head_size"
    if asked.causal and _sizes(asked, -2)[:1] != _sizes(asked, -2)[1:2]:
        yield "causal"
    capability = device.compute_capability if device else None
    if vendor == "nvidia" and capability is not None and capability < _FIRST_CAPABILITY:
        yield "compute_capability"
    yield from _obstacles_everywhere(asked)
    if _is_strided(asked) and _sizes(asked, -1)[:1] != [1]:
        yield "layout"
    if vendor == "nvidia" and capability is not None and _cannot_be_trained(asked, capability):
        yield "requires_grad"


def _cannot_be_trained(asked: Asked, capability: tuple[int, int]) -> bool:
    if not asked.trained or not any(low <= capability <= high for low, high in _SMALL_CHIPS):
        return False
    head = max(_sizes(asked, -1)[:1], default=0)
    if head > _LARGEST_UNTRAINED_HEAD:
        return bool(asked.dropout)
    return head > _LARGEST_TRAINED_HEAD


def obstacles_on_cpu(asked: Asked) -> Iterator[str]:
    """Yield what flash attention on a CPU does not take of the inputs."""
    if asked.dropout is not None and asked.dropout > 0:
        yield "dropout"
    if _differ(asked, -1):
        yield "head_size"
    yield from _obstacles_everywhere(asked)
    if _is_strided(asked):
        yield "layout"


def _obstacles_everywhere(asked: Asked) -> Iterator[str]:
    given = _given(asked)
    if any(len(shape) != 4 for shape in given):
        yield "dimensions"
    elif _differ(asked, 0) or (asked.grouped is False and _differ(asked, 1)):
        yield "heads"
    if 0 in _sizes(asked, -2)[:2]:
        yield "empty"


def _is_strided(asked: Asked) -> bool:
    """Whether neighbours of the last dimension of query, key or value are known to lie apart.

    With heads of size 1 a GPU's check overlooks that, a CPU's does not
    (``check_last_dim_stride_equals_1_dense<ignore_singleton_dim>``).
    """
    return any(stride not in (None, 1) for stride in asked.last_strides)


def _last_strides(strides: object) -> tuple[int | None, ...]:
    inputs = strides[:3] if isinstance(strides, list) else []
    return tuple(_last_number(of_input) for of_input in inputs)


def _last_number(numbers: object) -> int | None:
    last = numbers[-1] if isinstance(numbers, list) and numbers else None
    return last if type(last) is int else None


def _given(asked: Asked) -> list[list[int]]:
    """Return the shapes of query, key and value; nothing where one was not recorded."""
    given = asked.shapes[:3]
    return given if len(given) == 3 and all(map(_is_shape, given)) else []


def _is_shape(shape: object) -> bool:
    return isinstance(shape, list) and len(shape) > 1 and all(type(size) is int for size in shape)


def _sizes(asked: Asked, dimension: int) -> list[int]:
    return [shape[dimension] for shape in _given(asked)]


def _differ(asked: Asked, dimension: int) -> bool:
    return len(set(_sizes(asked, dimension))) > 1


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _flag(value: object) -> bool | None:
    return {"True": True, "False": False}.get(value) if isinstance(value, str) else None
