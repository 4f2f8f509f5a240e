"""Shapes, inputs, masks, and the arithmetic that throughput rests on."""

from typing import Any

import pytest
import torch

from capture.errors import RequestError
from capture.mask import Mask
from tests.capture.problems import problem

PUBLISHED: dict[str, Any] = {"batch": 8, "heads": 16, "seq": 1024, "head_dim": 64, "dtype": "bf16"}
FORWARD = 4 * 8 * 16 * 1024**2 * 64


@pytest.mark.parametrize(
    ("changes", "flops"),
    [
        ({"causal": False}, FORWARD),
        ({"causal": True}, FORWARD / 2),
        ({"causal": True, "phase": "backward"}, 3.5 * FORWARD / 2),
        ({"causal": True, "phase": "step"}, 3.5 * FORWARD / 2),
        ({"causal": False, "kv_heads": 4}, FORWARD),
        ({"causal": False, "seq_kv": 4096}, 4 * FORWARD),
        ({"causal": True, "seq_kv": 4096}, FORWARD / 2),
        ({"causal": True, "seq_kv": 512}, FORWARD * (512**2 / 2 + 512 * 512) / 1024**2),
    ],
)
def test_operations_are_counted_as_published(changes: dict[str, Any], flops: float) -> None:
    assert problem(**(PUBLISHED | changes)).flops == flops


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "forward-b8h16s1024d64-bf16-causal"),
        ({"causal": False, "layout": "bshd"}, "forward-b8h16s1024d64-bf16-full-bshd"),
        ({"kv_heads": 4, "seq_kv": 2048}, "forward-b8h16kv4s1024x2048d64-bf16-causal"),
        ({"phase": "step", "compile": True}, "step-b8h16s1024d64-bf16-causal-compiled"),
    ],
)
def test_labels_tell_workloads_apart(changes: dict[str, Any], label: str) -> None:
    assert problem(**(PUBLISHED | changes)).label == label


def test_layout_is_the_order_in_memory_alone() -> None:
    by_heads = problem(batch=2, heads=4, kv_heads=2, seq=8, seq_kv=6).inputs()
    by_position = problem(batch=2, heads=4, kv_heads=2, seq=8, seq_kv=6, layout="bshd").inputs()
    for inputs in (by_heads, by_position):
        assert inputs.query.shape == (2, 4, 8, 8)
        assert inputs.key.shape == inputs.value.shape == (2, 2, 6, 8)
    assert by_heads.query.stride() == (256, 64, 8, 1)
    assert by_position.query.stride() == (256, 8, 32, 1)


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, again, other = (problem(seed=seed).inputs() for seed in (3, 3, 4))
    assert torch.equal(first.query, again.query)
    assert not torch.equal(first.query, other.query)
    assert not torch.equal(first.query, first.key)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": 4, "kv_heads": 3}, "4 heads cannot share 3 kv heads evenly"),
        ({"heads": 2, "kv_heads": 4}, "2 heads cannot share 4 kv heads evenly"),
        ({"seq": 0}, "seq is 0; it must be at least 1"),
        ({"dtype": "int8"}, "dtype is 'int8'; it must be one of bf16, fp16, fp32, fp64"),
    ],
)
def test_impossible_workloads(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        problem(**changes)


def test_the_mask_of_more_keys_than_queries_is_aligned_at_the_top_left() -> None:
    blocked = Mask(2, 4, "cpu", is_causal=True).blocked
    assert blocked is not None
    assert blocked.int().tolist() == [[0, 1, 1, 1], [0, 0, 1, 1]]


def test_nothing_is_blocked_without_a_mask() -> None:
    mask = Mask(2, 4, "cpu", is_causal=False)
    assert (mask.blocked, mask.allowed, mask.block_mask) == (None, None, None)


def test_sdpa_takes_an_explicit_mask_the_other_way_round() -> None:
    explicit = torch.tensor([[True, False]])
    mask = Mask(1, 2, "cpu", is_causal=False, explicit=explicit)
    assert mask.blocked is explicit
    assert mask.allowed is not None
    assert mask.allowed.tolist() == [[False, True]]
