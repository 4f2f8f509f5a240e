"""What a file still holds: amounts are unknown where a cut or ``analyze trim`` left only a part."""

from pathlib import Path

import pytest

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.report.coverage_text import coverage_lines
from analyze.tables.build import Trace, load_trace
from analyze.tables.coverage import coverage, quality
from analyze.trim.selection import select_between, select_forwards
from analyze.trim.trimming import trim

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
