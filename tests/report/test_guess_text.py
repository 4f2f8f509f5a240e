"""The comparison of a guess with a trace, as text and as JSON."""

import json
from pathlib import Path

import pytest

from analyze.guess.loading import load_guesses
from analyze.report.guess import compare_guesses
from analyze.report.guess_text import render_guesses
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace
from tests.guess.test_comparison import forwards
from tests.report.test_golden_text import compare

GUESS = """version: 1
gpu_ops: 5
copies: none
dominant: gemm
precision: bf16
idle: 0-5 %
syncs: none
gpu_time: 2 ms
order: [gemm, elementwise, mask, softmax, gemm]
"""


def rendered(trace: Trace, text: str, folder: Path, limit: int = 6) -> str:
    file = folder / "guess.yaml"
    file.write_text(text)
    (guesses,) = load_guesses([file])
    return render_guesses(compare_guesses(trace, guesses.guesses, "guess.yaml"), limit=limit)


@pytest.mark.parametrize("name", ["synthetic-naive", "synthetic-sdpa-cudnn", "cpu-naive"])
def test_words(name: str, samples: Path, tmp_path: Path) -> None:
    trace = load_trace(samples / f"{name}.json.gz")
    compare(rendered(trace, GUESS, tmp_path), f"{name}.guess", samples)


def test_a_copy_surprises_more_than_one_gpu_op_more(samples: Path, tmp_path: Path) -> None:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    text = rendered(trace, "version: 1\ngpu_ops: 5\ncopies: none\n", tmp_path)
    first, second = text.index("1. copies: guessed none, observed 1"), text.index("2. GPU ops")
    assert first < text.index("aten::masked_fill > aten::clone > aten::copy_") < second
    assert "2. GPU ops: guessed 5, observed 6" in text


def test_lists_end_with_how_many_more_there_are(make_trace: MakeTrace, tmp_path: Path) -> None:
    trace = make_trace(forwards([1] * 80))
    text = rendered(trace, "version: 1\norder: [gemm]\n", tmp_path, limit=2)
    assert "80 GPU ops per forward: 1 missing, 80 unexpected" in text
    assert "and 79 more; --limit shows more of them" in text


def test_names_of_the_trace_are_harmless(make_trace: MakeTrace, tmp_path: Path) -> None:
    events = forwards([5])
    for event in events:
        if event["cat"] == "kernel":
            event["name"] = "\x1b[31m[bold]red\u202e"
    text = rendered(make_trace(events), "version: 1\ngpu_ops: 2\norder: [x]\n", tmp_path)
    assert "[bold]red" in text
    assert not {"\x1b", "\u202e"} & set(text)


def test_the_json_is_plain_and_complete(samples: Path, tmp_path: Path) -> None:
    file = tmp_path / "guess.yaml"
    file.write_text(GUESS)
    (guesses,) = load_guesses([file])
    trace = load_trace(samples / "synthetic-naive.json.gz")
    data = compare_guesses(trace, guesses.guesses, "guess.yaml")
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert list(data)[:2] == ["schema_version", "trace"]
    assert len(data["guesses"]) == len(GUESS.splitlines()) - 1


def test_the_idle_share_is_what_streams_leave_free(samples: Path, tmp_path: Path) -> None:
    trace = load_trace(samples / "synthetic-sdpa-math.json.gz")
    rows = trace.table("gpu_ops").select("start_us", "dur_us").rows()  # one stream, no overlap
    span = max(start + length for start, length in rows) - min(start for start, _ in rows)
    idle = 1 - sum(length for _, length in rows) / span
    file = tmp_path / "guess.yaml"
    file.write_text("version: 1\nidle: at least 0 %\n")
    (guesses,) = load_guesses([file])
    (row,) = compare_guesses(trace, guesses.guesses, None)["guesses"]
    assert row["observed"] == pytest.approx(idle)
