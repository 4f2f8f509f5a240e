"""A wrong variant is called wrong, whatever is wrong with it; a right one is not."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from capture import numerics
from capture.mask import Mask
from capture.numerics import Numerics, check_numerics
from capture.phases import Attention
from capture.variants import find_variant, naive, sdpa
from capture.workload import Workload
from tests.capture.problems import problem


def checked(attention: Attention, workload: Workload) -> Numerics:
    return check_numerics(attention, workload, workload.inputs())


def mask_ignored(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    return naive(query, key, value, replace(mask, is_causal=False, explicit=None))


def scale_off_by_a_tenth(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    return naive(1.1 * query, key, value, mask)


def mask_aligned_at_the_bottom(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    shift = mask.seq_kv - mask.seq
    blocked = torch.ones(mask.seq, mask.seq_kv, dtype=torch.bool).triu(1 + shift)
    return naive(query, key, value, replace(mask, explicit=blocked))


def one_nan(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    output = naive(query, key, value, mask)
    output[0, 0, 3, 2] = math.nan
    return output


def one_infinity(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    output = naive(query, key, value, mask)
    output[0, 0, 3, 2] = math.inf
    return output


def last_row_wrong(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    output = naive(query, key, value, mask)
    output[-1, -1, -1] = output[-1, -1, -1].roll(1)
    return output


def keys_swapped_between_heads(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    return naive(query, key.flip(1), value, mask)


def wrong_beside_masked_rows(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    output = naive(query, key, value, mask)
    return output if mask.explicit is None else output * 1.5


def large_in_masked_rows(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    output = wrong_beside_masked_rows(query, key, value, mask)
    return output if mask.explicit is None else torch.nan_to_num(output, nan=1e6)


def nan_everywhere_when_masked(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    output = naive(query, key, value, mask)
    return output if mask.explicit is None else torch.full_like(output, math.nan)


WRONG: dict[Attention, str] = {
    mask_ignored: "output off by",
    scale_off_by_a_tenth: "output off by",
    one_nan: "output holds 1 NaN",
    one_infinity: "output holds 1 NaN",
    last_row_wrong: "output off by",
    keys_swapped_between_heads: "output off by",
    wrong_beside_masked_rows: "rows beside those whose every key is masked are off",
    large_in_masked_rows: "rows beside those whose every key is masked are off",
    nan_everywhere_when_masked: "rows beside those whose every key is masked are off",
}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("attention", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_is_wrong_is_said(attention: Attention, dtype: str) -> None:
    found = checked(attention, problem(dtype=dtype, heads=4))
    assert not found.ok
    assert found.reason is not None
    assert found.reason.startswith(f"wrong numerics: {WRONG[attention]}")


def test_a_mask_aligned_at_the_bottom_is_not_torchs() -> None:
    found = checked(mask_aligned_at_the_bottom, problem(seq=8, seq_kv=24))
    assert not found.ok


def test_one_wrong_row_of_a_thousand_is_found() -> None:
    workload = problem(seq=1024)
    found = checked(last_row_wrong, workload)
    assert not found.ok
    assert checked(naive, workload).ok


def test_a_result_that_overflows_can_be_written() -> None:
    found = checked(lambda q, k, v, mask: naive(q, k, v, mask) * 1e200, problem(dtype="fp64"))
    assert not found.ok
    assert found.worst == sys.float_info.max


def test_a_variant_that_writes_to_its_inputs_is_judged_by_what_it_was_given() -> None:
    def zeroed(_query: Tensor, _key: Tensor, value: Tensor, _mask: Mask) -> Tensor:
        return value.zero_().clone()

    assert not checked(zeroed, problem()).ok


class WrongGradient(torch.autograd.Function):  # type: ignore[misc] # torch has no types here
    """Passes a tensor through, and returns a gradient of one's own choice."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.change = change
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.change(gradient), None


def first_row_zero(gradient: Tensor) -> Tensor:
    gradient = gradient.clone()
    gradient[:, :, 0] = 0
    return gradient


@pytest.mark.parametrize("phase", ["backward", "step"])
@pytest.mark.parametrize("position", range(3), ids=["query", "key", "value"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda gradient: gradient * 1.2, "off by"),
        (lambda gradient: gradient * math.nan, "NaN"),
        (torch.zeros_like, "off by"),
    ],
    ids=["scaled", "nan", "zero"],
)
def test_a_gradient_that_is_wrong_is_named(
    change: Callable[[Tensor], Tensor], said: str, position: int, phase: str
) -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        tensors = [query, key, value]
        tensors[position] = WrongGradient.apply(tensors[position], change)
        return naive(tensors[0], tensors[1], tensors[2], mask)

    found = checked(attention, problem(phase=phase))
    name = ("query.grad", "key.grad", "value.grad")[position]
    assert found.reason is not None
    assert found.reason.startswith(f"wrong numerics: {name} ")
    assert said in found.reason
    assert found.reason.count(".grad") == 1
    assert "output" not in found.reason


def test_one_wrong_row_of_a_gradient_is_found() -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        return naive(query, key, WrongGradient.apply(value, first_row_zero), mask)

    assert not checked(attention, problem(phase="backward", seq=256)).ok


@pytest.mark.parametrize("name", ["naive", "naive-inplace", "sdpa-auto", "sdpa-math"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32", "fp64"])
@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_right_variants_are_right(name: str, dtype: str, phase: str) -> None:
    found = checked(find_variant(name).attention, problem(dtype=dtype, phase=phase, seq=64))
    assert found.ok, found.reason
    assert found.reason is None
    assert found.reference == "float64"
    gradients = {"query.grad", "key.grad", "value.grad"} if phase == "backward" else set()
    assert set(found.errors) == {"output"} | gradients


@pytest.mark.parametrize(
    ("name", "content"),
    [("naive", "nan"), ("naive-inplace", "nan"), ("sdpa-math", "zeros"), ("sdpa-flash", "zeros")],
)
@pytest.mark.parametrize("causal", [True, False])
def test_what_stands_in_fully_masked_rows(name: str, content: str, causal: bool) -> None:
    found = checked(find_variant(name).attention, problem(causal=causal))
    assert found.ok
    assert found.fully_masked_rows == content
    assert found.fully_masked_ok is True


def causal_or_nothing(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    return scaled_dot_product_attention(query, key, value, is_causal=mask.is_causal)


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_variant_that_knows_only_the_causal_mask_is_not_wrong(phase: str) -> None:
    found = checked(causal_or_nothing, problem(phase=phase))
    assert found.ok
    assert found.fully_masked_rows == "mask ignored"
    assert found.fully_masked_ok is None


def test_a_variant_may_refuse_fully_masked_rows() -> None:
    def causal_only(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        if mask.explicit is not None:
            raise ValueError("only causal")
        return sdpa(query, key, value, mask)

    found = checked(causal_only, problem())
    assert found.ok
    assert found.fully_masked_rows == "not supported"
    assert found.fully_masked_ok is None


def test_an_output_that_cannot_be_written_to_can_be_checked() -> None:
    def expanded(query: Tensor, _key: Tensor, _value: Tensor, _mask: Mask) -> Tensor:
        return torch.zeros(1).expand_as(query)

    found = checked(expanded, problem())
    assert found.errors["output"].relative == pytest.approx(1)
    assert found.fully_masked_rows == "zeros"


def test_a_reference_computed_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = problem(phase="backward", heads=4, kv_heads=2, seq=24)
    whole = checked(naive, workload)
    monkeypatch.setattr(numerics, "MAX_BLOCK_ELEMENTS", 2 * 24 * 5)
    in_blocks = checked(naive, workload)
    for name, error in whole.errors.items():
        assert error.relative is not None
        assert in_blocks.errors[name].relative == pytest.approx(error.relative, rel=1e-3)
    assert not checked(last_row_wrong, problem(heads=4, kv_heads=2, seq=24)).ok


shapes = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 2),
        "kv_heads": st.integers(1, 2),
        "seq": st.integers(1, 40),
        "seq_kv": st.integers(1, 40),
        "head_dim": st.sampled_from([8, 32, 64]),
        "causal": st.booleans(),
        "layout": st.sampled_from(["bhsd", "bshd"]),
        "phase": st.sampled_from(["forward", "backward"]),
        "seed": st.integers(0, 1000),
    }
)


@pytest.mark.parametrize("name", ["naive", "sdpa-auto"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
def test_gradients_that_cancel_are_no_error(name: str, dtype: str) -> None:
    """A query that sees one key has a gradient of zero, of which rounding leaves a little."""
    workload = problem(heads=2, kv_heads=1, seq_kv=1, head_dim=64, dtype=dtype, phase="backward")
    assert checked(find_variant(name).attention, workload).ok


def test_an_output_row_that_cancels_is_no_error() -> None:
    workload = problem(heads=1, seq=8, seq_kv=4, head_dim=1, dtype="bf16", causal=False)
    found = checked(naive, workload)
    assert found.ok, found.reason


@settings(max_examples=60)
@given(shape=shapes, groups=st.integers(1, 3), name=st.sampled_from(["naive", "sdpa-auto"]))
def test_correct_bf16_stays_ok_whatever_the_shape(
    shape: dict[str, Any], groups: int, name: str
) -> None:
    workload = problem(dtype="bf16", heads=groups * shape["kv_heads"], **shape)
    found = checked(find_variant(name).attention, workload)
    assert found.ok, found.reason


@settings(max_examples=40)
@given(shape=shapes, groups=st.integers(1, 3))
def test_a_scale_off_by_a_fifth_is_never_ok_in_fp32(shape: dict[str, Any], groups: int) -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        return naive(1.2 * query, key, value, mask)

    workload = problem(heads=groups * shape["kv_heads"], **(shape | {"seq": 8, "seq_kv": 24}))
    assert not checked(attention, workload).ok


def test_a_bias_too_small_for_any_row_is_found_over_all_rows() -> None:
    for wrong in (
        lambda q, k, v, mask: sdpa(q, k, v, mask) * 1.03,
        lambda q, k, v, mask: sdpa(q * 1.03, k, v, mask),
    ):
        found = checked(wrong, problem(dtype="bf16", seq=128, head_dim=64))
        assert not found.ok
        error = found.errors["output"]
        assert error.relative is not None
        assert error.relative < found.row_tolerance


@pytest.mark.parametrize("head_dim", [1, 2, 3])
def test_short_rows_are_no_false_alarm(head_dim: int) -> None:
    workload = problem(dtype="bf16", seq=300, seq_kv=300, head_dim=head_dim, phase="backward")
    assert checked(naive, workload).ok
    assert checked(sdpa, workload).ok
