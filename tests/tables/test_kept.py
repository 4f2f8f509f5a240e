"""What a file still holds: amounts are unknown where a cut or ``analyze trim`` left only a part."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analyze.annotate.copying import annotate
from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.report.coverage_text import coverage_lines
from analyze.tables.build import Trace, load_trace
from analyze.tables.coverage import coverage, quality
from analyze.trim.anonymise import Anonymiser
from analyze.trim.selection import select_between, select_forwards
from analyze.trim.trimming import trim
from tests.conftest import MakeTrace

AMOUNTS = ("gpu_busy_us", "gpu_ops", "kernels", "copies", "launches", "syncs")


@pytest.fixture
def cut(samples: Path, tmp_path: Path) -> Path:
    """A trace of three forwards, cut inside the launches of the first."""
    whole = (samples / "synthetic-sdpa-math.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) * 7 // 10])
    return path


def test_of_a_cut_file_amounts_are_unknown_and_not_nothing(cut: Path) -> None:
    trace = load_trace(cut)
    forwards = trace.table("forwards")
    assert forwards.height == 3
    for name in AMOUNTS:
        assert forwards[name].to_list() == [None] * 3
    assert trace.table("trace")["gpu_ops"].item() == 10  # a lower bound, and said to be one
    late = trace.table("ops").filter(forward=2)
    assert late["gpu_ops"].null_count() == late.height > 0
    assert coverage(trace)["forwards_in_part"] == 3
    assert coverage(trace)["forward_median"]["gpu_ops"] is None


def test_no_finding_of_a_cut_file_claims_nothing_at_all(cut: Path) -> None:
    _, report = load_and_check(str(cut), None, load_rules(tests=False))
    math = next(finding for finding in report.findings if finding.code == "ATTN101")
    assert "0 GPU ops" not in math.message
    assert (math.savings_us, math.savings_share) == (None, None)
    damaged = next(finding for finding in report.findings if finding.code == "TRACE105")
    assert damaged in report.failing("error")


def test_forwards_before_the_cut_are_known(samples: Path, tmp_path: Path) -> None:
    whole = (samples / "synthetic-sdpa-math.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) * 9 // 10])
    amounts = load_trace(path).table("forwards")["gpu_ops"].to_list()
    assert amounts[0] == 20
    assert amounts[-1] is None


def copy_by_annotate(path: Path, output: Path) -> None:
    trace, report = load_and_check(str(path), None, load_rules(tests=False))
    annotate(path, output, trace, report)


def copy_anonymised(path: Path, output: Path) -> None:
    trim(load_trace(path), output, None, Anonymiser())


def copy_by_trim(path: Path, output: Path) -> None:
    trace = load_trace(path)
    trim(trace, output, select_between(trace, (0, 10**9)), None)


def copy_of_a_copy(path: Path, output: Path) -> None:
    between = output.with_name("between.json")
    copy_by_annotate(path, between)
    copy_anonymised(between, output)


COPIES = (copy_by_annotate, copy_anonymised, copy_by_trim, copy_of_a_copy)


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("bare", [False, True], ids=["object", "list"])
def test_the_copy_of_a_cut_file_lacks_the_same(
    bare: bool, copy: Callable[[Path, Path], None], samples: Path, tmp_path: Path
) -> None:
    path, output = tmp_path / "cut.json", tmp_path / "copy.json"
    text = gzip.decompress((samples / "synthetic-sdpa-math.json.gz").read_bytes())
    begin = text.index(b"[", text.index(b"traceEvents")) if bare else 0
    path.write_bytes(text[begin : len(text) * 7 // 10])
    copy(path, output)
    source, copied = load_trace(path), load_trace(output)
    assert isinstance(json.loads(output.read_bytes()), dict)
    assert source.is_truncated
    for name in AMOUNTS:
        assert copied.table("forwards")[name].to_list() == source.table("forwards")[name].to_list()
    lost = [(trace.table("trace")["events_lost"].item()) for trace in (source, copied)]
    assert lost[0] == lost[1] > 0
    assert coverage(copied)["forwards_in_part"] == coverage(source)["forwards_in_part"] > 0
    notes = [sentence for label, sentence in _lines(copied) if label == "note"]
    assert {sentence for label, sentence in _lines(source) if label == "note"} <= set(notes)
    assert any(sentence.startswith("a copy of a file that was cut short") for sentence in notes)
    _, report = load_and_check(str(output), None, load_rules(tests=False))
    assert "TRACE105" in {finding.code for finding in report.failing("error")}


def test_a_copy_says_how_many_events_its_source_lost(samples: Path, tmp_path: Path) -> None:
    path, output = tmp_path / "damaged.json", tmp_path / "copy.json"
    text = gzip.decompress((samples / "synthetic-sdpa-math.json.gz").read_bytes())
    path.write_bytes(text.replace(b'"ph"', b'"ph": {]', 1))
    lost = load_trace(path).table("trace")["events_lost"].item()
    assert lost > 0
    copy_of_a_copy(path, output)
    (row,) = load_trace(output).table("trace").to_dicts()
    assert (row["truncated"], row["events_lost"]) == (False, lost)


def test_what_was_trimmed_from_before_the_cut_is_not_cut(samples: Path, tmp_path: Path) -> None:
    path, output = tmp_path / "cut.json.gz", tmp_path / "part.json"
    whole = (samples / "synthetic-sdpa-math.json.gz").read_bytes()
    path.write_bytes(whole[: len(whole) * 9 // 10])
    cut = load_trace(path)
    for numbers, truncated in ((0, 0), False), ((0, 2), True), ((2, 2), True):
        trim(cut, output, select_forwards(cut, [numbers]), None)
        assert load_trace(output).is_truncated is truncated


@pytest.mark.parametrize("note", ["yes", {"truncated": "yes", "events_lost": -1}, {}, []])
def test_a_note_of_what_was_lost_that_says_nothing_is_none(
    note: object, make_trace: MakeTrace
) -> None:
    (row,) = make_trace([], kinetolint_lost=note).table("trace").to_dicts()
    assert (row["truncated"], row["events_lost"]) == (False, 0)


def test_the_most_events_that_notes_say_were_lost_can_be_told(make_trace: MakeTrace) -> None:
    note = {"truncated": True, "events_lost": (1 << 63) - 1}
    trace = make_trace([], kinetolint_lost=note, kinetolint_lost_2=note)
    (row,) = trace.table("trace").to_dicts()
    assert row["truncated"]
    assert row["events_lost"] > 0


def test_a_whole_file_keeps_every_amount(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-sdpa-math.json.gz")
    assert trace.table("forwards")["gpu_ops"].to_list() == [20, 20, 20]
    assert coverage(trace)["forwards_in_part"] == 0
    assert coverage(trace)["trimmed"] == []


def test_a_forward_of_which_a_part_was_trimmed_away_is_not_compared(
    samples: Path, tmp_path: Path
) -> None:
    whole = load_trace(samples / "synthetic-sdpa-math.json.gz")
    start, end = whole.facts.forwards.intervals.select("start_ns", "end_ns").row(1)
    output = tmp_path / "part.json.gz"
    trim(whole, output, select_between(whole, (start, (start + end) // 2)), None)
    part = load_trace(output)
    (forward,) = part.table("forwards").to_dicts()
    assert part.table("trace")["gpu_ops"].item() > 0
    assert forward["gpu_busy_us"] is None
    assert forward["launches"] is None
    assert any("1 of 1 forward may lack" in sentence for _, sentence in _lines(part))


def test_the_period_to_a_unit_that_was_trimmed_away_is_unknown(
    samples: Path, tmp_path: Path
) -> None:
    whole = load_trace(samples / "synthetic-sdpa-math.json.gz")
    output = tmp_path / "part.json.gz"
    periods = whole.table("forwards")["period_us"].to_list()
    for kept, expected in ([(0, 0), (2, 2)], [None, None]), ([(1, 2)], [periods[1], None]):
        trim(whole, output, select_forwards(whole, kept), None)
        assert load_trace(output).table("forwards")["period_us"].to_list() == expected


def test_a_whole_forward_of_a_trimmed_trace_is_known(samples: Path, tmp_path: Path) -> None:
    whole = load_trace(samples / "synthetic-sdpa-math.json.gz")
    once, twice = tmp_path / "once.json.gz", tmp_path / "twice.json.gz"
    trim(whole, once, select_forwards(whole, [(1, 2)]), None)
    again = load_trace(once)
    trim(again, twice, select_forwards(again, [(0, 0)]), None)
    trace = load_trace(twice)
    assert trace.table("forwards")["gpu_ops"].to_list() == [20]
    trimmed = [sentence for label, sentence in _lines(trace) if label == "trimmed"]
    assert [sentence.split(";")[0] for sentence in trimmed] == [
        "forwards 1 to 2 of forwards 0 to 2",
        "forward 0 of forwards 0 to 1",
    ]


def _lines(trace: Trace) -> list[tuple[str, str]]:
    return list(coverage_lines(coverage(trace), quality(trace)))
