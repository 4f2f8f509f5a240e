"""A guess against a trace: states, what was observed, surprise, the order, what nobody guessed."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.guess.order import differences
from analyze.report.summary import summarise
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace
from tests.guess.conftest import Compare, by_key

GUESS = """
gpu_ops: 5
copies: none
precision: bf16
syncs: none
gpu_time: 2 ms
"""


def test_the_copy_that_nobody_expected(compare: Compare) -> None:
    data = compare("synthetic-naive", GUESS)
    copies, gpu_ops, *rest = data["guesses"]
    assert (copies["key"], copies["state"], copies["observed"]) == ("copies", "mismatch", 1)
    assert copies["evidence"][0]["op_chain"] == "aten::masked_fill > aten::clone > aten::copy_"
    assert (gpu_ops["key"], gpu_ops["guess"], gpu_ops["observed"]) == ("gpu_ops", "5", 6)
    assert {row["state"] for row in rest} == {"confirmed"}
    assert copies["surprise"] == pytest.approx(math.log2(2 / 1))
    assert gpu_ops["surprise"] == pytest.approx(math.log2(7 / 6))


@pytest.mark.parametrize(
    ("guess", "ending"),
    [
        ("gpu_ops: ~4", "6 GPU ops per forward; guessed ~4"),
        ("kernels: 3-4", "5 kernels per forward; guessed 3-4"),
        ("copies: none", "1 copy per forward; guessed none"),
        ("dominant: conv", "%; guessed conv, which takes 0 %"),
        ("precision: fp8", "is in another precision; guessed fp8"),
        ("idle: 50 %", "from its first to its last work; guessed 50 %"),
        ("syncs: 2", "0 synchronising calls per forward; guessed 2"),
        ("gpu_time: 1 s", "of GPU time per forward; guessed 1 s"),
        ("cpu_ops: 1", "CPU ops per forward; guessed 1"),
        ("cpu_time: 1 s", "of CPU time per forward; guessed 1 s"),
        ("order: [gemm]", "6 GPU ops per forward: 5 unexpected"),
    ],
)
def test_a_message_says_what_was_guessed(guess: str, ending: str, compare: Compare) -> None:
    (row,) = compare("synthetic-naive", guess)["guesses"]
    assert row["message"].endswith(ending)


def test_without_the_copy_everything_is_as_guessed(compare: Compare) -> None:
    data = compare("synthetic-naive-inplace", GUESS)
    assert {row["state"] for row in data["guesses"]} == {"confirmed"}
    assert by_key(data)["gpu_time"]["observed"] == pytest.approx(1955, rel=0.01)


def test_what_the_names_do_not_tell_is_unanswerable(compare: Compare) -> None:
    row = by_key(compare("synthetic-sdpa-cudnn", "precision: bf16"))["precision"]
    assert row["state"] == "unanswerable"
    assert row["reason"] == "no name of a kernel that multiplies tells in 3 of 3 forwards"


def test_what_was_not_recorded_is_unanswerable(compare: Compare) -> None:
    data = compare("cpu-naive", "gpu_ops: 5\nidle: 10 %\nsyncs: none\ncpu_ops: at least 1")
    rows = by_key(data)
    assert rows["cpu_ops"]["state"] == "confirmed"
    for key in ("gpu_ops", "idle", "syncs"):
        assert rows[key]["state"] == "unanswerable"
        assert rows[key]["reason"].startswith("no GPU work was recorded")


def test_a_precision_elsewhere_is_a_surprise(compare: Compare) -> None:
    row = by_key(compare("synthetic-sdpa-math", "precision: bf16"))["precision"]
    assert (row["state"], row["observed"]) == ("mismatch", "fp32")
    assert row["measures"]["other_share"] == 1
    assert 0 < row["surprise"] < 4


@pytest.mark.parametrize("words", ["fp32 or bf16", "[bf16, fp32]", "float32"])
def test_several_precisions_can_be_guessed(words: str, compare: Compare) -> None:
    (row,) = compare("synthetic-sdpa-math", f"precision: {words}")["guesses"]
    assert row["state"] == "confirmed"


def test_a_family_that_nearly_dominates_surprises_little(compare: Compare) -> None:
    near = by_key(compare("synthetic-naive", "dominant: gemm"))["dominant"]
    far = by_key(compare("synthetic-sdpa-flash", "dominant: gemm"))["dominant"]
    assert (near["observed"], far["observed"]) == ("mask", "attn")
    assert near["surprise"] < 0.1
    assert far["surprise"] == 4
    confirmed = by_key(compare("synthetic-naive", "dominant: gemm or mask"))["dominant"]
    assert confirmed["state"] == "confirmed"


def test_who_guesses_attention_is_right_where_it_is_written_out(compare: Compare) -> None:
    for guess in ("attention", "mask", "conv or attention"):
        data = compare("synthetic-naive", f"dominant: {guess}")
        assert by_key(data)["dominant"]["state"] == "confirmed"
    attention = by_key(compare("synthetic-naive", "dominant: attention"))["dominant"]
    assert attention["observed"] == "attn"
    rest = compare("synthetic-naive", "dominant: attention")["not_guessed"]
    assert (rest["time_us"], rest["families"]) == (0, [])
    wrong = by_key(compare("synthetic-naive", "dominant: gemm"))["dominant"]
    assert wrong["observed"] == "mask"


def test_the_dominant_family_is_that_of_the_summary(compare: Compare, samples: Any) -> None:
    for name in ("synthetic-naive-inplace", "synthetic-sdpa-math", "synthetic-sdpa-efficient"):
        trace = load_trace(samples / f"{name}.json.gz")
        largest = summarise(trace)["families"][0]["family"]
        (row,) = compare(trace, f"dominant: {largest}")["guesses"]
        assert (row["state"], row["observed"]) == ("confirmed", largest.partition(".")[0])


ORDERS = {
    "as it is": ("gemm, elementwise, memcpy, mask, softmax, gemm", {}),
    "by name": ("gemm, MulFunctor, Memcpy DtoD, masked_fill_kernel, softmax, gemm", {}),
    "without the copy": ("gemm, elementwise, mask, softmax, gemm", {"unexpected": 1}),
    "with one more": (
        "gemm, elementwise, memcpy, mask, norm, softmax, gemm",
        {"missing": 1},
    ),
    "in another order": ("gemm, elementwise, mask, memcpy, softmax, gemm", {"moved": 1}),
    "something else": ("attn", {"missing": 1, "unexpected": 6}),
}


@pytest.mark.parametrize("what", ORDERS)
def test_an_order_and_what_differs(what: str, compare: Compare) -> None:
    items, changes = ORDERS[what]
    (row,) = compare("synthetic-naive", f"order: [{items}]")["guesses"]
    counted = dict.fromkeys(("missing", "unexpected", "moved"), 0)
    for line in row["evidence"]:
        counted[line["change"]] += 1
    assert row["state"] == ("mismatch" if changes else "confirmed")
    assert counted == {"missing": 0, "unexpected": 0, "moved": 0, **changes}


def test_the_differences_say_where_and_why(compare: Compare) -> None:
    (row,) = compare("synthetic-naive", "order: [gemm, elementwise, mask, softmax, gemm]")[
        "guesses"
    ]
    (copy,) = row["evidence"]
    assert (copy["change"], copy["position"]) == ("unexpected", 2)
    assert copy["op_chain"] == "aten::masked_fill > aten::clone > aten::copy_"
    assert row["message"] == "6 GPU ops per forward: 1 unexpected"


words = st.lists(st.sampled_from(["gemm", "softmax", "mask", "my_kernel"]), max_size=8)


@given(guessed=words, launched=words)
def test_the_differences_turn_the_guess_into_what_was_launched(
    guessed: list[str], launched: list[str]
) -> None:
    rows = [{"short_name": name, "family": None, "kind": "kernel"} for name in launched]
    shown = dict.fromkeys(("op_chain", "dur_us", "start_us"))
    changes = differences(guessed, [{**row, **shown} for row in rows])
    gone = {change.expected_at for change in changes if change.change != "unexpected"}
    new = {change.position for change in changes if change.change != "missing"}
    kept = [item for number, item in enumerate(guessed) if number not in gone]
    assert kept == [name for number, name in enumerate(launched) if number not in new]
    missing = Counter(change.item for change in changes if change.change == "missing")
    assert missing == Counter(guessed) - Counter(launched)
    assert (changes == []) == (guessed == launched)


def test_a_long_forward_is_aligned_all_the_same() -> None:
    shown = dict.fromkeys(("family", "op_chain", "dur_us", "start_us"))
    names = ["first", *["other"] * 3000, *["my_kernel", "x"] * 200, "last"]
    rows = [{"short_name": name, "kind": "kernel", **shown} for name in names]
    changes = differences(["my_kernel", "x"] * 200, rows)
    assert Counter(change.change for change in changes) == {"unexpected": 3002}


def test_what_no_guess_is_about(compare: Compare) -> None:
    rest = compare("synthetic-naive", "copies: 1\nprecision: bf16\ngpu_time: 1-9 ms")["not_guessed"]
    assert [row["family"] for row in rest["families"]] == ["mask", "softmax", "elementwise"]
    whole = compare("synthetic-naive", "gpu_ops: 6")["not_guessed"]
    assert whole["time_us"] == whole["gpu_sum_us"]
    assert sum(row["time_us"] for row in whole["families"]) == pytest.approx(whole["gpu_sum_us"])
    listed = compare("synthetic-naive", "order: [gemm, elementwise, memcpy, mask, softmax, gemm]")
    assert listed["not_guessed"]["families"] == []


def forwards(*durations: list[int]) -> list[dict[str, Any]]:
    """Forwards of kernels that run for so many microseconds."""
    events: list[dict[str, Any]] = []
    for number, kernels in enumerate(durations):
        start = 1 + number * 1000
        where = {"pid": 1, "tid": 1, "ph": "X"}
        note = {"name": "attn_fwd", "cat": "user_annotation", "ts": start, "dur": 900}
        events.append({**where, **note})
        for place, duration in enumerate(kernels):
            correlation = number * 100 + place + 1
            args = {"correlation": correlation}
            begin = start + 1 + place
            call = {"name": "cudaLaunchKernel", "cat": "cuda_runtime", "ts": begin, "dur": 0.5}
            work = {"name": "my_kernel", "cat": "kernel", "ts": begin + 100 * place + 1}
            events.append({**where, **call, "args": args})
            gpu = {"pid": 0, "tid": 7, "ph": "X", "dur": duration}
            events.append({**gpu, **work, "args": {**args, "device": 0, "stream": 7}})
    return events


def test_too_few_wrong_forwards_are_intermittent(make_trace: MakeTrace, compare: Compare) -> None:
    trace = make_trace(forwards([10], [10], [10, 10]))
    (row,) = compare(trace, "gpu_ops: 1")["guesses"]
    assert (row["state"], row["units_mismatching"], row["units_total"]) == ("intermittent", 1, 3)
    (row,) = compare(trace, "gpu_ops: 2")["guesses"]
    assert (row["state"], row["units_mismatching"]) == ("mismatch", 2)


@pytest.mark.parametrize(
    ("guess", "surprise"),
    [("10-20 us", 0), ("1-3 us", math.log2(11 / 4)), ("39-50 us", math.log2(40 / 11))],
)
def test_surprise_counts_doublings(
    guess: str, surprise: float, make_trace: MakeTrace, compare: Compare
) -> None:
    (row,) = compare(make_trace(forwards([10], [10])), f"gpu_time: {guess}")["guesses"]
    assert (row["surprise"] or 0) == pytest.approx(surprise)


def test_the_position_is_that_among_the_work_of_the_forward(make_trace: MakeTrace) -> None:
    trace: Trace = make_trace(forwards([10, 10], [10, 10, 10]))
    rows = trace.table("gpu_ops").select("forward", "position").rows()
    assert rows == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


def test_a_name_of_a_kernel_is_never_run(compare: Compare) -> None:
    hostile = 'order: ["\') or __import__(\'os\').abort() or (\'", "{x}", "\\\\\'"]'
    (row,) = compare("synthetic-naive", hostile)["guesses"]
    assert row["state"] == "mismatch"
    assert row["measures"]["missing"] == 3


def test_the_longest_order_can_be_checked(make_trace: MakeTrace, compare: Compare) -> None:
    trace = make_trace(forwards([1] * 90))
    name = "x" * 200
    long_order = ", ".join(["my_kernel"] * 90 + [name] * 410)
    (row,) = compare(trace, f"order: [{long_order}]")["guesses"]
    assert (row["measures"]["missing"], row["state"]) == (410, "mismatch")
    (row,) = compare(trace, f"order: [{', '.join(['my_kernel'] * 90)}]")["guesses"]
    assert row["state"] == "confirmed"
