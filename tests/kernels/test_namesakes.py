"""Kernels with the same short name stay apart where they stand in one list."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.kernels.display import MAX_LENGTH, shorten
from analyze.kernels.namesakes import told_apart
from analyze.tables.build import load_trace

MUL = "at::native::binary_internal::MulFunctor<float>"
UNROLLED = (
    "void at::native::elementwise_kernel_manual_unroll<128, {n},"
    " at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<{type}, " + MUL + " > > >()"
)
VECTORIZED = f"void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<{MUL} >>"
GEMM = "Cijk_Alik_Bljk_" + "UserArgs_" * 10 + "{}_SN"


def test_other_names_are_as_short_as_ever() -> None:
    assert told_apart(["void a<int>(int)", "b"]) == {"void a<int>(int)": "a", "b": "b"}


def test_namesakes_show_what_the_others_have_not() -> None:
    half, single = UNROLLED.format(n=8, type="c10::Half"), UNROLLED.format(n=4, type="float")
    assert {shorten(name) for name in (half, single, VECTORIZED)} == {"MulFunctor"}
    shown = told_apart([half, single, VECTORIZED])
    assert shown[half] == "MulFunctor (Half)"
    assert shown[single] == "MulFunctor (elementwise_kernel_manual_unroll, 4)"
    assert shown[VECTORIZED] == "MulFunctor (vectorized_elementwise_kernel)"


def test_of_names_cut_at_the_end_the_end_tells() -> None:
    small, large = GEMM.format("MT64x64"), GEMM.format("MT128x64")
    shown = told_apart([small, large])
    assert shown[small] == f"{shorten(small)} (MT64x64)"
    assert shown[large].endswith(" (MT128x64)")


def test_where_no_part_tells_a_number_does() -> None:
    assert list(told_apart(["void a<int>", "void a<int >"]).values()) == [
        "a (name 1 of 2)",
        "a (name 2 of 2)",
    ]


@given(st.lists(st.text(alphabet="ab<>, _1\u202e\ud800", max_size=30), unique=True, max_size=8))
def test_shown_names_stay_short(names: list[str]) -> None:
    shown = told_apart(names)
    assert list(shown) != [] or not names
    assert all(len(text) <= MAX_LENGTH + 3 * 45 for text in shown.values())


@pytest.mark.parametrize("name", ["tl-mi300-qwen", "switch-a100", "tl-h100-owl", "tl-vllm-dec"])
def test_no_two_names_of_a_real_trace_look_alike(name: str, real_traces: Path) -> None:
    (path,) = (real_traces / name).iterdir()
    names = load_trace(path).facts.gpu_ops.filter(pl.col("kind") == "kernel")["name"].unique()
    shown = told_apart(names.drop_nulls().sort().to_list())
    assert len(set(map(shorten, shown))) < len(shown)
    assert len(set(shown.values())) == len(shown)
