"""A file accepted from a trace passes on that trace, and fails on others where they differ."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyze.errors import AnalyzeError
from analyze.guess.accepting import Accepted, accept
from analyze.guess.loading import GuessFile, load_guesses
from analyze.guess.writing import accepted_as_yaml
from analyze.report.guess import compare_guesses
from analyze.tables.build import Trace, load_trace
from analyze.trim.selection import select_between, select_forwards
from analyze.trim.trimming import trim
from tests.conftest import MakeTrace
from tests.guess.test_comparison import forwards
from tests.tables.test_attribution import kernel, launch, mark

SAMPLES = sorted(
    path.name.removesuffix(".json.gz")
    for path in (Path(__file__).parents[2] / "sample_traces").glob("*.json.gz")
)
SYNTHETIC = [name for name in SAMPLES if name.startswith("synthetic")]

SMALL = 5_000_000
"""Bytes of text up to which real traces are accepted here."""


@cache
def sample(path: Path) -> Trace:
    return load_trace(path)


@cache
def taken_from(trace: Trace) -> Accepted:
    return accept(trace)


def accepted(trace: Trace, folder: Path) -> GuessFile:
    file = folder / "accepted.yaml"
    file.write_text(accepted_as_yaml(accept(trace), trace, "2026-11-30"))
    (guesses,) = load_guesses([file])
    return guesses


def states(trace: Trace, guesses: GuessFile) -> dict[str, str]:
    data = compare_guesses(trace, guesses.guesses, guesses.path)
    return {row["key"]: row["state"] for row in data["guesses"]}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_meets_its_own_guesses(name: str, samples: Path, tmp_path: Path) -> None:
    trace = load_trace(samples / f"{name}.json.gz")
    found = states(trace, accepted(trace, tmp_path))
    assert set(found.values()) == {"confirmed"}
    if name.startswith("synthetic"):
        assert {"gpu_ops", "kernels", "copies", "dominant", "gpu_time", "idle", "order"} <= set(
            found
        )
    else:
        assert set(found) == {"cpu_ops", "cpu_time"}


@pytest.mark.parametrize("good", SYNTHETIC)
def test_other_samples_fail_where_they_differ(good: str, samples: Path, tmp_path: Path) -> None:
    guesses = accepted(sample(samples / f"{good}.json.gz"), tmp_path)
    values = {guess.quantity.key: guess.guess for guess in guesses.guesses}
    for other in set(SYNTHETIC) - {good}:
        trace = sample(samples / f"{other}.json.gz")
        found = states(trace, guesses)
        theirs = taken_from(trace).values
        for key in ("gpu_ops", "kernels", "copies", "syncs"):
            same = theirs[key] == int(values[key].low)  # type: ignore[union-attr]
            assert found[key] == ("confirmed" if same else "mismatch"), (other, key)
        same_order = theirs["order"] == list(values["order"])  # type: ignore[arg-type]
        assert found["order"] == ("confirmed" if same_order else "mismatch"), other
        assert "mismatch" in found.values(), other


def test_what_is_written_of_a_sample(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    text = accepted_as_yaml(accept(trace), trace, "2026-11-30").replace(f"{samples}/", "")
    assert text.splitlines() == [
        "# Taken from synthetic-naive.json.gz on 2026-11-30, as a trace that is known to be good.",
        "# Recorded on NVIDIA A100-SXM4-80GB."
        " A forward is the annotation attn_fwd (3 in the trace).",
        "# Check it with: analyze TRACE --expect THIS_FILE",
        "version: 1",
        "gpu_ops: 6  # kernels, copies and sets per forward",
        "kernels: 5  # per forward",
        "copies: 1  # memcpys per forward",
        "dominant: mask  # family that takes the most GPU time",
        "precision: bf16  # of matrix products, convolutions and attention",
        "idle: 0.3 % +- 5  # share of the time from the first to the last GPU work",
        "syncs: 0  # synchronising calls per forward",
        "gpu_time: 2327 us +- 20 %  # GPU busy time per forward",
        "order:  # by short name or family, in the order of their start",
        "  - ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        "  - MulFunctor",
        '  - "Memcpy DtoD (Device -> Device)"',
        "  - masked_fill_kernel",
        "  - softmax_warp_forward",
        "  - ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_nn",
    ]


def test_what_is_written_is_per_step_where_steps_are_the_forwards(make_trace: MakeTrace) -> None:
    trace = make_trace([
        mark("ProfilerStep#1", 0, 50), mark("ProfilerStep#2", 50, 50),
        launch(1, 10), kernel(1, 20, 5), launch(2, 60), kernel(2, 70, 5),
    ])  # fmt: skip
    text = accepted_as_yaml(accept(trace), trace, "2026-11-30")
    assert "gpu_ops: 1  # kernels, copies and sets per step\n" in text
    assert "per forward" not in text


def test_what_is_not_known_is_left_out_with_the_reason(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-sdpa-cudnn.json.gz")
    assert accept(trace).left_out == {
        "precision": "no name of a kernel that multiplies tells in 3 of 3 forwards"
    }
    assert "# precision (precision) is left out: no name" in accepted_as_yaml(
        accept(trace), trace, "2026-11-30"
    )


def small_traces(folder: Path) -> list[Path]:
    lines = (folder / "MANIFEST.tsv").read_text().splitlines()
    names = lines[0].split("\t")
    rows = [dict(zip(names, line.split("\t"), strict=False)) for line in lines[1:]]
    return [folder / row["path"] for row in rows if int(row["text_bytes"]) < SMALL]


def test_real_traces_meet_their_own_guesses(real_traces: Path, tmp_path: Path) -> None:
    with_gpu = 0
    for path in small_traces(real_traces):
        try:
            trace = load_trace(path)
        except AnalyzeError:
            continue
        taken = accept(trace)
        if not taken.values:
            assert taken.left_out
            continue
        found = states(trace, accepted(trace, tmp_path))
        assert set(found) == set(taken.values)
        assert set(found.values()) == {"confirmed"}, path
        with_gpu += "gpu_ops" in found
        if trace.forward_source == "trace" and "gpu_ops" in found:
            kinds = trace.facts.gpu_ops["kind"].value_counts()
            counts = dict(kinds.iter_rows())
            assert taken.values["gpu_ops"] == sum(counts.values())
            assert taken.values["copies"] == counts.get("memcpy", 0)
    assert with_gpu >= 20


durations = st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1, max_size=5)
names = st.text(st.characters(codec="utf-8"), max_size=20)


@settings(max_examples=20)
@given(durations=durations, name=names, kernels=st.lists(names, min_size=1, max_size=3))
def test_any_trace_meets_its_own_guesses(
    durations: list[list[int]], name: str, kernels: list[str]
) -> None:
    events: list[dict[str, Any]] = forwards(*durations)
    for number, event in enumerate(event for event in events if event["cat"] == "kernel"):
        event["name"] = kernels[number % len(kernels)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "made.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, "name": name}))
        trace = load_trace(path)
        taken = accept(trace)
        if taken.values:
            assert set(states(trace, accepted(trace, folder)).values()) == {"confirmed"}


OF_WORK = {"gpu_ops", "kernels", "copies", "dominant", "precision", "syncs", "gpu_time", "order"}


def cut_at(share: float, sample: str, samples: Path, folder: Path) -> Trace:
    whole = (samples / f"{sample}.json.gz").read_bytes()
    path = folder / "cut.json.gz"
    path.write_bytes(whole[: int(len(whole) * share)])
    return load_trace(path)


@pytest.mark.parametrize("share", [0.7, 0.9], ids=["in the first forward", "in the last"])
def test_what_a_cut_forward_did_is_neither_accepted_nor_compared(
    share: float, samples: Path, tmp_path: Path
) -> None:
    name = "synthetic-sdpa-math"
    cut = cut_at(share, name, samples, tmp_path)
    assert accept(cut).values == {}
    assert set(accept(cut).left_out) == {*OF_WORK, "idle"}
    whole = accepted(load_trace(samples / f"{name}.json.gz"), tmp_path)
    rows = compare_guesses(cut, whole.guesses, whole.path)["guesses"]
    unanswered = {row["key"] for row in rows if row["reason"]}
    assert unanswered == {*OF_WORK, "idle"}
    assert not [row for row in rows if row["state"] in ("mismatch", "intermittent")]
    kernels = next(row for row in rows if row["key"] == "kernels")
    assert "a part of the launched work may be missing from the file in " in kernels["reason"]


def test_what_was_trimmed_in_part_is_neither_accepted_nor_compared(
    samples: Path, tmp_path: Path
) -> None:
    whole = load_trace(samples / "synthetic-sdpa-math.json.gz")
    start, end = whole.facts.forwards.intervals.select("start_ns", "end_ns").row(1)
    trim(whole, tmp_path / "part.json", select_between(whole, (start, (start + end) // 2)), None)
    part = load_trace(tmp_path / "part.json")
    assert set(accept(part).left_out) == OF_WORK
    found = states(part, accepted(whole, tmp_path))
    assert {found[key] for key in OF_WORK} == {"unanswerable"}


def test_whole_forwards_of_a_trimmed_trace_are_accepted(samples: Path, tmp_path: Path) -> None:
    whole = load_trace(samples / "synthetic-sdpa-math.json.gz")
    trim(whole, tmp_path / "one.json", select_forwards(whole, [(1, 1)]), None)
    one = accept(load_trace(tmp_path / "one.json"))
    assert one.left_out == {}
    assert one.values["kernels"] == accept(whole).values["kernels"]


def test_nothing_is_accepted_of_a_cut_file_without_forwards(
    make_trace: MakeTrace, tmp_path: Path
) -> None:
    make_trace([*(launch(n, 10 * n) for n in (1, 2)), *(kernel(n, 90 * n, 5) for n in (1, 2))])
    text = (tmp_path / "made.json").read_text()
    (tmp_path / "made.json").write_text(text[: text.rindex("{", 0, text.rindex("args"))])
    cut = load_trace(tmp_path / "made.json")
    assert cut.is_truncated
    assert accept(cut).values == {}
    assert "nothing in it marks a forward" in accept(cut).left_out["kernels"]
