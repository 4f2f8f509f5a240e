from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.kernels.classify import KernelFacts, classify

PIECES = st.sampled_from(
    [
        *"<>(){},: _*&-1aZ",
        "::",
        "->",
        "operator()",
        "void ",
        "at::native::",
        "(anonymous namespace)::",
        "vectorized_elementwise_kernel",
        "reduce_kernel",
        "ReduceOp",
        "BinaryFunctor",
        "cutlass::Kernel2",
        "float",
        "gemm",
        "sgemm_",
        "flash_fwd",
        "Cijk_",
        "_ZN",
        "12",
        "\x00",
        "\u0130",
        "\ud800",
    ]
)
REPEATED = [
    "float8_to",
    "compute",
    "bprop",
    "flash sdpa ",
    "mla_",
    "ncclA",
    "e4m3 bf16 ",
    "double float ",
    "<(",
    "a<b,",
    "_ZN1a",
    "1a",
    "\u0130",
]


def check(facts: KernelFacts) -> None:
    assert 0 < len(facts.short_name) <= 80
    assert facts.short_name == facts.short_name.strip()
    assert facts.short_name.isprintable()


@given(st.text())
def test_any_text(name: str) -> None:
    check(classify(name))


@given(st.lists(PIECES, max_size=60).map("".join))
def test_text_that_looks_like_a_name(name: str) -> None:
    check(classify(name))


@pytest.mark.parametrize("piece", REPEATED)
@pytest.mark.parametrize("start", ["", "void ", "gemm_", "flash_fwd", "_ZN"])
def test_long_names_stay_cheap(start: str, piece: str) -> None:
    name = start + piece * (100_000 // len(piece))
    before = time.perf_counter()
    check(classify(name))
    # Some milliseconds in practice; a pattern that backtracks without bound takes minutes.
    assert time.perf_counter() - before < 2
