"""Findings drawn into a copy of their trace: everything is in it, and nothing of the trace lost."""

import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyze.annotate import slices as slices_module
from analyze.annotate.copying import Annotated, annotate
from analyze.annotate.free_numbers import FreeNumbers
from analyze.annotate.slices import Slice
from analyze.annotate.tracks import tracks_of
from analyze.engine.loading import load_rules
from analyze.engine.result import Finding, Place, TraceReport
from analyze.engine.rule import Rule
from analyze.engine.run import run_rules
from analyze.tables.build import Trace, load_trace

OURS = "kinetolint"
REAL = (
    "tl-h100-bert",
    "par-dlrm-w0",
    "tl-b200",
    "hta-bigint",
    "hta-cupti",
)

Event = dict[str, Any]


@cache
def rules() -> list[Rule]:
    return load_rules()


class Drawing:
    """An annotated copy, and what it was made from."""

    def __init__(self, path: Path, output: Path, **changes: Any) -> None:
        self.path, self.output = path, output
        self.trace: Trace = load_trace(path)
        self.report: TraceReport = replace(run_rules(self.trace, rules()), **changes)
        self.told: Annotated = annotate(path, output, self.trace, self.report)
        self.document = read(output)
        self.events: list[Event] = events_of(self.document)
        self.own = [event for event in self.events if event.get("cat") == OURS]
        self.others = [event for event in self.events if event.get("cat") != OURS]

    def of_phase(self, phase: str) -> list[Event]:
        return [event for event in self.own if event["ph"] == phase]


def read(path: Path) -> Any:
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return json.loads(text, parse_float=Decimal)


def events_of(document: Any) -> list[Event]:
    events: list[Event] = document["traceEvents"] if isinstance(document, dict) else document
    return events


def counted(events: list[Event]) -> Counter[str]:
    return Counter(json.dumps(event, sort_keys=True, default=lambda d: f"D{d}") for event in events)


def overlapping(slices: list[Event]) -> int:
    """Count the slices that start before the one before them on their thread has ended."""
    threads = defaultdict(list)
    for event in slices:
        threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    return sum(
        later[0] < earlier[1] or later[0] == earlier[0]
        for spans in map(sorted, threads.values())
        for earlier, later in pairwise(spans)
    )


def check_drawing(drawing: Drawing) -> None:
    """Check what holds for every annotated copy."""
    original = events_of(read(drawing.path))
    assert counted(drawing.others) == counted(original)
    slices = drawing.of_phase("X")
    assert overlapping(slices) == 0
    expected = Counter(
        {n: max(len(f.places), 1) for n, f in enumerate(drawing.report.findings, start=1)}
    )
    assert Counter(event["args"]["finding"] for event in slices) == expected
    check_arrows(drawing, original)
    numbers = {event.get(key) for event in original for key in ("pid", "tid")}
    assert not numbers & {event[key] for event in slices for key in ("pid", "tid")}
    again = load_trace(drawing.output)
    report = run_rules(again, rules())
    for part in ("findings", "passed", "not_applicable", "coverage"):
        assert getattr(report, part) == getattr(drawing.report, part)


def check_arrows(drawing: Drawing, original: list[Event]) -> None:
    """Check that each arrow leads from a slice to the event that its place names."""
    starts = {event["id"]: event for event in drawing.of_phase("s")}
    ends = {event["id"]: event for event in drawing.of_phase("f")}
    assert starts.keys() == ends.keys()
    assert len(starts) == drawing.told.arrows == len(drawing.of_phase("s"))
    assert not starts.keys() & {event.get("id") for event in original}
    named = {(e["pid"], e["tid"], e["ts"]): e for e in drawing.of_phase("X")}
    there = defaultdict(set)
    for event in original:
        if event.get("ph") in ("X", "i"):
            there[str(event["pid"]), str(event["tid"]), event["ts"]].add(str(event["name"])[:100])
    for number, start in starts.items():
        end = ends[number]
        place = named[start["pid"], start["tid"], start["ts"]]["args"]["place"].split(": ", 1)[1]
        names = there[str(end["pid"]), str(end["tid"]), end["ts"]]
        assert place.removesuffix(", without a duration")[:100] in names
        assert end["bp"] == "e"


def test_every_sample_is_drawn(samples: Path, tmp_path: Path) -> None:
    for path in sorted(samples.glob("*.json.gz")):
        drawing = Drawing(path, tmp_path / "copy.json.gz")
        check_drawing(drawing)
        assert set(drawing.document) == set(read(path))


@pytest.mark.parametrize("name", REAL)
def test_real_traces_are_drawn(name: str, real_traces: Path, tmp_path: Path) -> None:
    path = next(path for path in (real_traces / name).iterdir() if path.is_file())
    check_drawing(Drawing(path, tmp_path / "copy.json.gz"))


def test_a_slice_says_what_the_report_says(samples: Path, tmp_path: Path) -> None:
    drawing = Drawing(samples / "synthetic-naive.json.gz", tmp_path / "copy.json")
    copies = [e for e in drawing.of_phase("X") if e["name"] == "COPY101 hidden-memcpy"]
    memcpys = [e for e in drawing.others if e.get("cat") == "gpu_memcpy"]
    assert sorted((e["ts"], e["dur"]) for e in copies) == [(e["ts"], e["dur"]) for e in memcpys]
    said = copies[0]["args"]
    assert said["severity"] == "error"
    assert said["observed"].startswith("1 DtoD copy per forward, 365 us")
    assert said["saves"].startswith("at most 365 us per forward")
    assert said["do"].startswith("The op chain in the evidence owns the copy")
    assert "aten::masked_fill > aten::clone > aten::copy_" in said["evidence"]
    assert said["fingerprint"] == drawing.report.findings[0].fingerprint
    assert said["place"].split(" of ")[1] == "3: Memcpy DtoD (Device -> Device)"


def test_benign_findings_are_drawn_and_named_so(samples: Path, tmp_path: Path) -> None:
    drawing = Drawing(samples / "synthetic-sdpa-flash.json.gz", tmp_path / "copy.json")
    assert {e["name"] for e in drawing.of_phase("X")} == {"OCC101 low-occupancy (benign)"}
    assert all("fused attention" in e["args"]["benign"] for e in drawing.of_phase("X"))


def test_the_process_comes_first_and_counts_findings(samples: Path, tmp_path: Path) -> None:
    drawing = Drawing(samples / "synthetic-naive.json.gz", tmp_path / "copy.json")
    said = {(e["name"], e["tid"]): e["args"] for e in drawing.of_phase("M")}
    assert said["process_name", 0] == {"name": "kinetolint findings"}
    assert said["process_labels", 0] == {"labels": "2 findings, 1 benign, 2 not applicable"}
    indices = [e["args"]["sort_index"] for e in drawing.others if e["name"] == "process_sort_index"]
    assert said["process_sort_index", 0]["sort_index"] < min(indices)
    threads = [args["name"] for (kind, _), args in said.items() if kind == "thread_name"]
    assert list(dict.fromkeys(threads)) == [
        "COPY101 hidden-memcpy",
        "ATTN103 unfused-attention",
        "OCC102 occupancy-misreported",
    ]


def test_annotating_again_replaces(samples: Path, tmp_path: Path) -> None:
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    first = Drawing(samples / "synthetic-sdpa-math.json.gz", once)
    second = Drawing(once, twice)
    assert second.told.replaced == len(first.own) > 0
    assert twice.read_bytes() == once.read_bytes()
    nothing = Drawing(once, tmp_path / "none.json", findings=())
    assert nothing.of_phase("X") == []
    assert nothing.of_phase("M")[1]["args"] == {"labels": "0 findings, 0 benign, 2 not applicable"}


def test_times_since_1970_lose_no_digit(samples: Path, tmp_path: Path) -> None:
    text = gzip.decompress((samples / "synthetic-naive.json.gz").read_bytes()).decode()
    shift = Decimal("1729003456000000.123")
    path = tmp_path / "epoch.json"
    path.write_text(
        re.sub(r'"ts": ?([\d.]+)', lambda found: f'"ts": {shift + Decimal(found.group(1))}', text)
    )
    drawing = Drawing(path, tmp_path / "copy.json")
    assert drawing.told.arrows == drawing.told.slices == 27
    check_drawing(drawing)


def test_a_finding_about_the_whole_trace_spans_it(samples: Path, tmp_path: Path) -> None:
    path = samples / "synthetic-naive.json.gz"
    finding = Drawing(path, tmp_path / "copy.json").report.findings[0]
    whole = replace(finding, places=(), places_total=1)
    drawing = Drawing(path, tmp_path / "copy.json", findings=(whole, whole))
    timed = [e for e in drawing.others if e["ph"] == "X"]
    work = ("cpu_op", "kernel", "cuda_runtime")
    last = max(e["ts"] + e["dur"] for e in timed if e["cat"] in work)
    spans = {(e["ts"], e["ts"] + e["dur"]) for e in drawing.of_phase("X")}
    assert spans == {(min(e["ts"] for e in timed), last)}
    assert len({e["tid"] for e in drawing.of_phase("X")}) == 2
    assert {e["args"]["place"] for e in drawing.of_phase("X")} == {"the whole trace"}


def test_no_finding_is_left_out_when_there_are_too_many_places(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices_module, "MAX_SLICES", 5)
    drawing = Drawing(samples / "synthetic-naive.json.gz", tmp_path / "copy.json")
    found = Counter(e["args"]["finding"] for e in drawing.of_phase("X"))
    assert found == {1: 3, 2: 1, 3: 1}
    assert drawing.told.left_out == 22


def test_untrusted_names_are_text(samples: Path, tmp_path: Path) -> None:
    path = samples / "synthetic-naive.json.gz"
    nasty = "\x1b[2J<b>[bold]\u202e\ud800" + "n" * 10_000
    finding = Drawing(path, tmp_path / "copy.json").report.findings[0]
    place = Place(nasty, 0.0, None, None, None, None, None)
    nasty_one = replace(finding, name=nasty, message=nasty, places=(place,), places_total=1)
    drawing = Drawing(path, tmp_path / "copy.json", findings=(nasty_one,))
    written = json.dumps(drawing.own, ensure_ascii=False, default=str)
    assert not {"\x1b", "\u202e", "\ud800"} & set(written)
    assert "<b>[bold]" in written
    assert len(written) < 10_000
    assert "without a duration" in written


@pytest.fixture(scope="module")
def finding(samples: Path) -> Finding:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    return run_rules(trace, rules()).findings[0]


@settings(max_examples=200)
@given(
    spans=st.lists(
        st.tuples(st.sampled_from("AB"), st.integers(0, 50), st.integers(0, 20)), max_size=40
    )
)
def test_no_slice_is_lost_or_overlaps_another(
    finding: Finding, spans: list[tuple[str, int, int]]
) -> None:
    slices = [
        Slice(number, replace(finding, code=code), None, 1, start, dur)
        for number, (code, start, dur) in enumerate(spans, start=1)
    ]
    tracks = tracks_of(slices)
    assert sorted(p.number for t in tracks for p in t.slices) == list(range(1, len(spans) + 1))
    assert [track.code for track in tracks] == sorted(
        (track.code for track in tracks), key=[code for code, *_ in spans].index
    )
    for track in tracks:
        assert {part.finding.code for part in track.slices} == {track.code}
        for earlier, later in pairwise(track.slices):
            assert earlier.end_ns <= later.start_ns
            assert earlier.start_ns < later.start_ns


@given(seen=st.sets(st.integers(95, 125)), count=st.integers(0, 8))
def test_free_numbers_are_free(seen: set[int], count: int) -> None:
    numbers = FreeNumbers(100)
    for number in [*seen, "120", None, True, 100.5]:
        numbers.see(number)
    run = numbers.run(count)
    assert len(run) == count
    assert not seen & set(run)
    assert all(number >= 100 for number in run)
