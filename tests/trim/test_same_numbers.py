"""A trimmed trace says of its steps what the whole trace says of them."""

from itertools import pairwise
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from analyze.engine.loading import load_sound_rules
from analyze.engine.result import TraceReport
from analyze.engine.run import run_rules
from analyze.tables.build import Trace, load_trace
from analyze.trim.selection import select_forwards, select_steps
from analyze.trim.trimming import TrimReport, trim
from tests.conftest import MakeTrace
from tests.tables.test_attribution import repeated_steps
from tests.trim.comparison import (
    TABLES,
    amounts_of_units,
    regions_inside,
    rows_of_units,
)

SAMPLES = (
    "cpu-decode-cat", "cpu-naive", "cpu-sdpa-math", "synthetic-naive", "synthetic-sdpa-cudnn",
    "synthetic-sdpa-math",
)  # fmt: skip
REAL_TRACES = ("hta-ns", "hta-nccl", "kin-r50-w0-v19", "gen-cpu-train")

OTHER_STEPS_MATTER = {
    "LAUNCH101": "the first call of an op in the trace is left out",
    "TRACE101": "compares the first step with the others",
    "TRACE102": "is about the recording as a whole",
}
"""Rules that may say something else of a part."""


def trim_steps(trace: Trace, numbers: list[int], output: Path) -> TrimReport:
    chosen = select_steps(trace, [(number, number) for number in numbers])
    return trim(trace, output, chosen, None)


def assert_same_steps(path: Path, output: Path) -> None:
    whole = load_trace(path)
    steps = whole.facts.steps.intervals["number"].to_list()
    assert len(steps) > 1
    for numbers in ([steps[0]], [steps[0], steps[-1]], steps[-2:]):
        report = trim_steps(whole, numbers, output)
        part = load_trace(output)
        assert part.facts.steps.intervals["number"].to_list() == numbers
        for table in TABLES:
            rows = [rows_of_units(trace, table, "step", numbers) for trace in (whole, part)]
            assert rows[0].height == rows[1].height
            assert_frame_equal(*rows)
        assert_frame_equal(
            amounts_of_units(whole, "step", numbers), amounts_of_units(part, "step", numbers)
        )
        assert report.selected is not None
        shift = whole.clock.origin_ns
        windows = [(start + shift, end + shift) for start, end in report.selected.windows]
        regions = regions_inside(whole, windows)
        assert regions.height >= len(numbers)
        assert_frame_equal(regions, regions_inside(part, windows))


def gaps_of(trace: Trace) -> set[tuple[int, int]]:
    """Return the gaps, in the file's own time."""
    gaps = trace.gaps.select("start_ns", "dur_ns").iter_rows()
    return {(start + trace.clock.origin_ns, length) for start, length in gaps}


def assert_same_idle_time(path: Path, output: Path) -> None:
    whole = load_trace(path)
    steps = whole.facts.steps.intervals["number"].to_list()
    trim_steps(whole, [steps[0], steps[-1]], output)
    part = load_trace(output)
    gaps, row = part.gaps, part.table("trace").row(0, named=True)
    assert 0 < gaps.height < whole.gaps.height
    assert gaps_of(part) < gaps_of(whole)
    idle_ns = round((row["gpu_span_us"] - row["gpu_busy_us"]) * 1000)
    assert gaps["dur_ns"].sum() == idle_ns
    assert part.table("gpu_ops")["gap_before_us"].sum() * 1000 == pytest.approx(idle_ns)


@pytest.mark.parametrize("name", ["synthetic-naive", "synthetic-sdpa-math"])
def test_a_step_that_was_left_out_is_no_idle_time(name: str, samples: Path, tmp_path: Path) -> None:
    assert_same_idle_time(samples / f"{name}.json.gz", tmp_path / "part.json.gz")


@pytest.mark.parametrize("name", ["hta-ns", "hta-nccl"])
def test_a_real_step_that_was_left_out_is_no_idle_time(
    name: str, real_traces: Path, tmp_path: Path
) -> None:
    assert_same_idle_time(next((real_traces / name).glob("*.json*")), tmp_path / "part.json")


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_of_the_kept_steps_are_the_same(name: str, samples: Path, tmp_path: Path) -> None:
    assert_same_steps(samples / f"{name}.json.gz", tmp_path / "part.json.gz")


@pytest.mark.parametrize("name", REAL_TRACES)
def test_rows_of_real_steps_are_the_same(name: str, real_traces: Path, tmp_path: Path) -> None:
    assert_same_steps(next((real_traces / name).glob("*.json*")), tmp_path / "part.json")


def check(path: Path) -> TraceReport:
    rules, _ = load_sound_rules([], installed=False, tests=False)
    return run_rules(load_trace(path), rules)


def verdicts(report: TraceReport) -> dict[tuple[str, str], str]:
    return {
        (finding.code, finding.fingerprint): f"{finding.state} {finding.severity}"
        for finding in report.findings
        if finding.code not in OTHER_STEPS_MATTER
    }


def assert_same_findings(path: Path, output: Path) -> None:
    whole = load_trace(path)
    forwards = whole.facts.forwards.intervals["index"].to_list()
    expected = check(path)
    for numbers in (forwards, forwards[1:2], forwards[:2]):
        chosen = select_forwards(whole, [(number, number) for number in numbers])
        trim(whole, output, chosen, None)
        found = check(output)
        assert verdicts(found) == verdicts(expected)
        assert found.unit.count == len(numbers)
        assert not found.errors


@pytest.mark.parametrize("name", SAMPLES)
def test_the_findings_are_the_same(name: str, samples: Path, tmp_path: Path) -> None:
    assert_same_findings(samples / f"{name}.json.gz", tmp_path / "part.json.gz")


@pytest.mark.parametrize("name", ["hta-nccl", "gen-cpu-train"])
def test_real_findings_are_the_same(name: str, real_traces: Path, tmp_path: Path) -> None:
    assert_same_findings(next((real_traces / name).glob("*.json*")), tmp_path / "part.json")


def test_measures_of_all_forwards_are_the_same(samples: Path, tmp_path: Path) -> None:
    path, output = samples / "synthetic-naive.json.gz", tmp_path / "part.json"
    chosen = select_forwards(load_trace(path), [(0, 2)])
    trim(load_trace(path), output, chosen, None)
    measures = [
        {f.code: (f.measures, f.units_mismatching, f.savings_us) for f in check(file).findings}
        for file in (path, output)
    ]
    assert measures[0].keys() == {"COPY101", "ATTN103", "OCC102"}
    assert measures[0] == measures[1]


@pytest.mark.parametrize("name", SAMPLES)
def test_trimming_again_changes_nothing(name: str, samples: Path, tmp_path: Path) -> None:
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    path = samples / f"{name}.json.gz"
    steps = load_trace(path).facts.steps.intervals["number"].to_list()[:2]
    trim_steps(load_trace(path), steps, once)
    report = trim_steps(load_trace(once), steps, twice)
    assert once.read_bytes() == twice.read_bytes()
    assert report.events == report.all_events


def test_the_time_between_two_kept_steps_is_kept(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    assert len(select_steps(trace, [(2, 3)]).windows) == 1
    apart = select_steps(trace, [(2, 2), (4, 4)]).windows
    assert len(apart) == 2
    assert all(before[1] < after[0] for before, after in pairwise(apart))


def test_a_number_stands_for_every_step_that_bears_it(
    make_trace: MakeTrace, tmp_path: Path
) -> None:
    trace = make_trace(repeated_steps(second_pid=10))
    trim(trace, tmp_path / "part.json", select_steps(trace, [(4, 4)]), None)
    steps = load_trace(tmp_path / "part.json").table("steps")
    assert steps["index"].to_list() == [4, 4]
    assert steps["gpu_ops"].to_list() == [1, 2]
