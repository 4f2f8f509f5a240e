"""The parts of a diff: names without tiles, noise, alignment, and what a gate may be."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.diff.alignment import align_calls, align_kernels, align_ops
from analyze.diff.gates import compile_gate
from analyze.diff.groups import Group, per_forward
from analyze.diff.kernel_names import same_kernel_name
from analyze.diff.noise import amount, judge
from analyze.errors import AnalyzeError


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_nn",
            "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn",
        ),
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_a",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x128x64_warpgroupsize2x1x1_a",
        ),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x64x32_MI16x16_SE_1", "Cijk_Ailk_Bljk_BBS_BH_MT64x64x8_SN_2"),
        ("nvjet_tst_64x64_64x16_2x1_v_bz_TNT", "nvjet_tst_128x64_64x8_1x1_v_bz_TNT"),
        ("triton_poi_fused_add_mul_3", "triton_poi_fused_add_mul_12"),
        ("x_knob_6_128x64x64_kernel0_0", "x_knob_31_64x64x64_kernel0_1"),
    ],
)
def test_another_tile_is_the_same_name(one: str, other: str) -> None:
    assert same_kernel_name(one) == same_kernel_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_tn"),
        ("ampere_bf16_s16816gemm_64x64", "ampere_fp16_s16816gemm_64x64"),
        ("triton_poi_fused_add_3", "triton_poi_fused_mul_3"),
        ("sm80_gemm", "sm90_gemm"),
        ("MulFunctor", "AddFunctor"),
    ],
)
def test_another_kernel_has_another_name(one: str, other: str) -> None:
    assert same_kernel_name(one) != same_kernel_name(other)


def test_the_spread_of_few_values_is_from_their_range() -> None:
    assert amount([5.0]).spread is None
    assert amount([10.0, 10.0, 12.0]).spread == pytest.approx(2 / 1.693)
    assert amount([1.0, 2.0, 3.0, 4.0, 100.0]).spread == pytest.approx(1.4826)


def test_only_a_change_beyond_the_noise_is_one() -> None:
    noisy, steady = [90.0, 100.0, 110.0], [100.0, 100.0, 100.0]
    assert judge(amount(noisy), amount([value + 20 for value in noisy])) == "unchanged"
    assert judge(amount(steady), amount([value + 20 for value in steady])) == "more"
    assert judge(amount(steady), amount([value + 0.5 for value in steady])) == "unchanged"
    assert judge(amount([5.0]), amount([6.0]), least_change=0.0) == "more"


VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=9)


@given(VALUES, VALUES)
def test_judging_backwards_gives_the_opposite(before: list[float], after: list[float]) -> None:
    opposite = {"more": "less", "less": "more", "unchanged": "unchanged"}
    one, other = amount(before), amount(after)
    assert opposite[judge(one, other)] == judge(other, one)
    assert judge(one, one) == "unchanged"


PARTS = st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 10**9)), max_size=4)


@given(PARTS)
def test_forwards_with_nothing_count(parts: list[dict[int, int]]) -> None:
    totals = [0] * 6
    for part in parts:
        for index, value in part.items():
            totals[index] += value
    assert per_forward(parts, 6).median == median(totals)


def op(chain: str, time_ns: int = 1, count: int = 1) -> Group:
    leaf = chain.rpartition(" > ")[2]
    return Group(chain, leaf, chain, None, {0: count}, {0: time_ns}, {0: 0})


def kernel(name: str, chain: str | None, family: str | None = None) -> Group:
    return Group(name, name, chain, family, {0: 1}, {0: 1})


def test_a_subtree_that_moved_is_the_same_ops() -> None:
    before = [op("a"), op("a > b"), op("a > b > c"), op("x")]
    after = [op("new"), op("new > a"), op("new > a > b"), op("new > a > b > c"), op("x")]
    pairs = align_ops(before, after)
    moved = {pair.after[0].name for pair in pairs if pair.matched_by == "elsewhere"}
    assert moved == {"new > a", "new > a > b", "new > a > b > c"}
    assert [pair.after[0].name for pair in pairs if not pair.before] == ["new"]
    assert not [pair for pair in pairs if not pair.after]


def test_what_is_inside_a_gone_op_counts_in_it() -> None:
    before = [op("a", 5), op("a > b", 7, count=9), op("a > b > c", 11)]
    (pair,) = align_ops(before, [])
    (gone,) = pair.before
    assert (gone.name, gone.time_ns, gone.count, gone.inside) == ("a", {0: 23}, {0: 1}, 2)
    assert before[0].time_ns == {0: 5}


GROUPS = st.lists(
    st.builds(op, st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(" > ".join)),
    unique_by=lambda group: group.name,
    max_size=8,
)


@given(GROUPS, GROUPS)
def test_no_time_is_lost_in_aligning(before: list[Group], after: list[Group]) -> None:
    for align in (align_ops, align_kernels, align_calls):
        pairs = align(before, after)
        for groups, ours in (
            (before, [p.before for p in pairs]),
            (after, [p.after for p in pairs]),
        ):
            total = sum(group.time_ns[0] for side in ours for group in side)
            assert total == len(groups)


def test_kernels_are_matched_by_name_before_op() -> None:
    before = [kernel("gemm_64x64", "mm", "gemm"), kernel("old", "mm", "gemm")]
    after = [kernel("gemm_128x64", "bmm", "gemm"), kernel("other", "mm", "gemm")]
    pairs = align_kernels(before, after)
    assert [(pair.before[0].name, pair.after[0].name, pair.matched_by) for pair in pairs] == [
        ("gemm_64x64", "gemm_128x64", "name"),
        ("old", "other", "op"),
    ]


def test_kernels_of_unknown_family_replace_nothing() -> None:
    pairs = align_kernels([kernel("old", "mm")], [kernel("other", "mm")])
    assert [pair.matched_by for pair in pairs] == [None, None]


def test_a_copy_of_another_op_is_another_copy() -> None:
    before, after = [kernel("Memcpy", "a > clone")], [kernel("Memcpy", "b > to")]
    assert [pair.matched_by for pair in align_calls(before, after)] == [None, None]
    moved = align_calls(before, [kernel("Memcpy", "b > clone")])
    assert [pair.matched_by for pair in moved] == ["elsewhere"]


@pytest.mark.parametrize(
    ("condition", "help_text"),
    [
        ("gputime > 3", "did you mean 'gpu_time'?"),
        ("gpu_time > 1.05 * befor", "did you mean 'before'?"),
        ("gpu_time.before > 3", "write before.gpu_time"),
        ("before.copis > 3", "did you mean 'copies'?"),
        ("gpu_time > copies * before", "write before.NAME"),
        ("before > 3", "write before.NAME"),
        ("gpu_time", "must be true or false"),
        ("gpu_time > 5%", "write pct(5)"),
        ("__import__('os').system('true') > 1", "can be called"),
        ("", "the expression is empty"),
    ],
)
def test_a_wrong_gate_says_what_to_write(condition: str, help_text: str) -> None:
    with pytest.raises(AnalyzeError) as caught:
        compile_gate(condition)
    assert help_text in str(caught.value)
    assert "\n" not in str(caught.value)
