"""The text report: about a screen, honest about what it leaves out, and safe to print."""

import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.engine.result import Checked, Finding, TraceReport
from analyze.report import console, finding_words
from analyze.report.console import DEFAULT_WIDTH
from analyze.report.formats import Rendering
from analyze.report.next_command import next_command
from analyze.report.text import MOST_REPORTS, SCREEN_LINES, render_report, write_text
from analyze.report.verdict import order_of, verdict
from tests.report.report_factory import HOSTILE, finding, hostile_report, report_of, sample_report

UNSAFE = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
REAL = (
    "switch-a100", "tl-h100-bert", "tl-h100-owl", "hta-ns", "tl-mi300-qwen", "tl-vllm-dec",
    "swin-a4000", "gen-cpu-train", "kin-r50-w0-v181",
)  # fmt: skip


@cache
def real_report(folder: Path) -> TraceReport:
    (path,) = (path for path in folder.iterdir() if ".json" in path.name)
    return load_and_check(str(path), None, load_rules(tests=False))[1]


def idle_report(
    share: float,
    cause: str | None,
    *findings: Finding,
    between: float | None = None,
    outside: float | None = None,
) -> TraceReport:
    """A report of a GPU that is idle for a share of its time, most of it for one cause."""
    coverage = sample_report().coverage
    causes = [{"cause": cause, "time_us": 730.0, "share": 0.73}]
    gpu_time = {
        **coverage["gpu_time"],
        "idle_share": share,
        "idle_causes": causes,
        "idle_between_share": between,
        "idle_outside_share": outside,
    }
    return report_of(*findings, coverage={**coverage, "gpu_time": gpu_time})


def many_findings(count: int) -> list[Finding]:
    return [
        finding(number=number, code=f"MINE{number:03}", savings_us=1000.0 - number)
        for number in range(count)
    ]


@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_takes_a_screen(name: str, real_traces: Path) -> None:
    report = real_report(real_traces / name)
    text = render_report(report)
    assert text.count("\n") <= SCREEN_LINES
    found = [f for f in report.findings if f.explained_by is None]
    for code in {f.code for f in found}:
        assert code in text


@pytest.mark.parametrize("name", REAL)
def test_verbose_says_all_of_it(name: str, real_traces: Path) -> None:
    report = real_report(real_traces / name)
    words = "".join(render_report(report, verbose=True).split())
    for said in (f for f in report.findings if f.explained_by is None):
        assert "".join(said.message.split()) in words
        assert words.count("evidence") >= len(said.evidence)
    for rule in report.not_applicable:
        assert "".join(rule.reason.split()) in words


def test_as_many_in_full_as_fit_the_others_in_a_line() -> None:
    report = report_of(*many_findings(10))
    text = render_report(report)
    in_full, others = (
        text.count("  expected  "),
        re.findall(r"^✗ error  MINE\d+ \S+  ", text, re.MULTILINE),
    )
    assert 1 <= in_full < 10
    assert len(others) == 10
    assert text.count("\n") <= SCREEN_LINES


def test_what_is_left_out_is_counted() -> None:
    text = render_report(report_of(*many_findings(500)))
    told = set(re.findall(r"^✗ error  (MINE\d+)", text, re.MULTILINE))
    assert f"\nand {500 - len(told)} more rules\n" in text
    assert "500 findings: 500 errors" in text
    assert text.count("\n") <= SCREEN_LINES


def test_findings_of_one_rule_share_a_line() -> None:
    alike = [finding(number=n, state="benign", because="by design") for n in range(7)]
    text = render_report(report_of(finding(number=9), *alike))
    assert text.count("by design") == 1
    assert "benign  COPY101 hidden-memcpy x7  by design\n" in text


def test_savings_are_named_with_their_base_and_not_added_up() -> None:
    on_host = finding(
        number=1,
        code="HOST001",
        name="slow-host",
        savings_us=623e3,
        savings_of="cpu",
        savings_share=0.8,
    )
    on_gpu = finding(
        number=2, code="GPU001", savings_us=69.5e3, savings_of="gpu", savings_share=0.84
    )
    words = verdict(report_of(on_host, on_gpu))
    assert "2 findings: 2 errors" in words
    assert "slow-host (HOST001), at most 623 ms per forward, 80 % of its CPU time" in words
    assert "(GPU001), at most 69.5 ms per forward, 84 % of its GPU busy time" in words
    assert "Savings overlap: do not add them up" in words
    assert "692" not in words
    assert "overlap" not in verdict(report_of(on_gpu))


def test_unknown_savings_are_said_to_be_unknown() -> None:
    words = verdict(report_of(finding(savings_us=None)))
    assert "what it costs is unknown" in words


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("host", "its next work was launched late (cause host)"),
        ("input", "data was being loaded (cause input)"),
        (None, "of work whose launch is not in the file."),
        ("dust", "of dust (cause dust)"),
    ],
)
def test_idle_time_that_no_finding_explains_is_said(cause: str | None, words: str) -> None:
    idle = f"The GPU is idle 39 % of the time, 73 % of it because {words}"
    found = idle_report(0.39, cause, finding(code="COPY101"))
    nothing = idle_report(0.39, cause)
    for report in (found, nothing):
        assert idle in verdict(report)
        assert (next_command(report) or ("",))[0].startswith("analyze gaps ")
    assert "The GPU is" not in verdict(idle_report(0.2, cause, finding()))


@pytest.mark.parametrize("between", [None, 0.0, 0.49, 0.5, 1.0])
def test_idle_time_between_forwards_is_told_where_it_is_most(between: float | None) -> None:
    words = verdict(idle_report(0.39, "host", between=between))
    is_told = between is not None and between >= 0.5
    assert ("of it lies between forwards." in words) == is_told


@pytest.mark.parametrize("outside", [None, 0.49, 0.5, 1.0])
def test_idle_time_outside_of_forwards_is_not_called_between(outside: float | None) -> None:
    words = verdict(idle_report(0.39, "device", between=0.0, outside=outside))
    is_told = outside is not None and outside >= 0.5
    assert ("of it lies outside of any forward's work." in words) == is_told
    assert "between" not in words


@pytest.mark.parametrize(
    ("code", "cause"),
    [("IDLE101", "host"), ("IDLE102", "input"), ("SYNC101", "sync"), ("LAUNCH103", "launch")],
)
def test_idle_time_that_a_finding_explains_is_its_own(code: str, cause: str) -> None:
    assert "The GPU is idle" not in verdict(idle_report(0.9, cause, finding(code=code)))
    assert "The GPU is idle" in verdict(idle_report(0.9, "profiler", finding(code=code)))


@pytest.mark.parametrize(("count", "says_where"), [(1, False), (2, False), (3, True)])
def test_annotations_that_are_not_named_are_to_be_found(count: int, says_where: bool) -> None:
    names = [f"part_{number}" for number in range(count)]
    coverage = {**sample_report().coverage, "forward_is": "trace", "annotations": names}
    text = " ".join(render_report(report_of(coverage=coverage)).split())
    assert f"takes an annotation: {', '.join(names)}" in text
    assert ("; `analyze regions` lists all" in text) is says_where


def test_idle_time_of_a_known_finding_is_told_all_the_same() -> None:
    """What a baseline knows is not shown, so it explains nothing to the reader."""
    known = idle_report(0.39, "input", finding(code="IDLE102", baseline="known"))
    words = verdict(known)
    assert words.startswith("nothing but 1 known finding")
    assert "The GPU is idle 39 % of the time, 73 % of it because data was being loaded" in words


@pytest.mark.parametrize(
    ("held", "wrong", "words"),
    [(8, 0, "8 guesses hold"), (1, 0, "1 guess holds"), (3, 2, "3 of 5 guesses hold")],
)
def test_the_verdict_says_how_many_guesses_hold(held: int, wrong: int, words: str) -> None:
    passed = [Checked(f"GUESS{n:03}", f"guess-{n}", category="guess") for n in range(held)]
    found = [
        finding(number=n, code=f"GUESS{n:03}", category="guess") for n in range(20, 20 + wrong)
    ]
    report = report_of(*found, passed=(Checked("COPY101", "x", category="copies"), *passed))
    assert verdict(report).endswith(f". {words}.")
    assert "guess" not in verdict(report_of(finding(), passed=(report.passed[0],)))


def test_where_nothing_is_found_the_verdict_says_what_dominates() -> None:
    report = report_of()
    shares = [("kernel", "gemm", 0.39), ("memcpy", None, 0.09), ("kernel", None, 0.3)]
    families = [
        {"kind": kind, "family": family, "time_us": 1.0, "share": share}
        for kind, family, share in shares
    ]
    gpu_time = {"idle_us": 1.0, "idle_share": 0.09, "idle_causes": [], "families": families}
    busy = dataclasses.replace(report, coverage={**report.coverage, "gpu_time": gpu_time})
    assert "The GPU is busy 91 % of the time; of its work gemm 39 %, memcpy 9 %" in verdict(busy)
    assert verdict(busy).endswith("kernels of unknown family 30 %.")
    assert (next_command(busy) or ("",))[0].startswith("analyze kernels ")
    assert "The GPU is busy" not in verdict(dataclasses.replace(busy, findings=(finding(),)))
    small = dataclasses.replace(busy, findings=(finding(severity="info"),))
    assert "The GPU is busy 91 % of the time" in verdict(small)
    assert (next_command(small) or ("",))[0].startswith("analyze kernels ")
    unknown = dataclasses.replace(report, coverage={**report.coverage, "gpu_time": None})
    assert verdict(unknown).startswith("nothing found: ")
    assert next_command(unknown) is None


def test_what_puts_the_recording_in_doubt_comes_first() -> None:
    cold = finding(
        number=1, code="LAUNCH103", name="cold-launch", category="trace", savings_us=None
    )
    costly = finding(number=2, code="GPU001", savings_us=1e6)
    assert cold.rank < costly.rank
    assert costly.rank < dataclasses.replace(cold, severity="warning").rank
    words = verdict(report_of(cold, costly))
    assert words.index("The recording itself comes first: cold-launch (LAUNCH103)") < words.index(
        "Most to save: "
    )
    assert "what it costs" not in verdict(report_of(cold))


def test_events_with_an_odd_date_are_said() -> None:
    dates = {"times_zero": 1, "times_outside": 2}
    report = sample_report()
    odd = dataclasses.replace(report, quality={**report.quality, **dates})
    written = " ".join(write_text([odd], Rendering()).split())
    words = "1 event dated 0, 2 events dated outside of the recording: counted, but left out of"
    assert words in written


def test_no_share_is_more_than_the_whole() -> None:
    wait = finding(savings_us=6e4, savings_of="cpu", savings_share=60.0, per="forward")
    assert verdict(report_of(wait)).endswith("at most 60 ms per forward.")


@pytest.mark.parametrize(
    ("name", "first", "words"),
    [
        (
            "kin-r50-w0-v19",
            "IDLE102",
            "Most to save: input-wait (IDLE102), at most 57.3 ms per step",
        ),
        ("tl-h100-owl", "IDLE102", "Most to save: input-wait (IDLE102), at most 493 ms per step"),
        ("swin-a4000", "LAUNCH103", "The recording itself comes first: cold-launch (LAUNCH103)"),
        ("switch-a100", "LAUNCH103", "The recording itself comes first: cold-launch (LAUNCH103)"),
        ("hta-cp-evsync-ms", "PREC102", "The GPU is idle 98 % of the time"),
        (
            "hta-ns",
            "PREC104",
            "Most to save: mixed-precision-off (PREC104), at most 40.3 ms per step",
        ),
    ],
)
def test_real_traces_lead_with_what_matters_most(
    name: str, first: str, words: str, real_traces: Path
) -> None:
    report = real_report(real_traces / name)
    assert report.findings[0].code == first
    assert words in verdict(report)


def test_a_busy_real_trace_says_with_what(real_traces: Path) -> None:
    report = real_report(real_traces / "tl-mi300-qwen")
    assert [item.code for item in report.findings if item.state == "mismatch"] == ["FUSE101"]
    words = verdict(dataclasses.replace(report, findings=()))
    assert "The GPU is busy 91 % of the time; of its work gemm 39 %, elementwise 30 %" in words


def test_occupancy_counts_little_while_the_gpu_waits() -> None:
    waiting = finding(
        number=1, code="IDLE101", name="gpu-idle", category="idle", savings_us=5.0, savings_of="cpu"
    )
    grid = finding(number=2, code="OCC103", category="occupancy", savings_us=90.0, savings_of="gpu")
    report = idle_report(0.9, "host", grid, waiting)
    assert [f.code for f in order_of(report).problems] == ["IDLE101"]
    text = render_report(report)
    little = "Of little weight while gpu-idle (IDLE101) holds:"
    assert text.index("IDLE101 gpu-idle") < text.index(little) < text.index("OCC103 hidden-memcpy")
    assert "Most to save: gpu-idle (IDLE101)" in verdict(report)
    mild = idle_report(0.9, "host", grid, dataclasses.replace(waiting, severity="warning"))
    half_busy = idle_report(0.49, "host", grid, waiting)
    for other in (mild, half_busy):
        assert "Of little weight" not in render_report(other)
        assert "OCC103" in verdict(other)


def test_consequences_take_a_line_below_their_cause() -> None:
    report = sample_report("synthetic-sdpa-math")
    text = render_report(report)
    assert len(re.findall(r"^  explains  PREC101 .*…$", text, re.MULTILINE)) == 2
    words = " ".join(text.split())
    assert "4 findings: 3 errors, 1 warning, 3 explained by math-backend (ATTN101)" in words


def test_a_line_says_what_it_saves_and_of_whose_time() -> None:
    bound = {"savings_kind": "upper_bound", "per": "forward"}
    findings = [
        finding(number=1, savings_us=9e3, savings_of="cpu", **bound),
        finding(number=2, code="TEST002", savings_us=2500.0, savings_of="gpu", **bound),
        finding(
            number=3, code="TEST003", savings_us=70.0, savings_of="cpu", savings_kind="estimate"
        ),
        finding(number=4, code="TEST004", savings_us=None),
    ]
    many = [dataclasses.replace(f, message="x " * 400) for f in findings]
    lines = render_report(report_of(*many)).splitlines()
    found = {
        code: line for line in lines for code in ("TEST002", "TEST003", "TEST004") if code in line
    }
    assert "  saves up to 2.5 ms GPU  " in found["TEST002"]
    assert "  saves about 70 us CPU   " in found["TEST003"]
    assert "saves" not in found["TEST004"]
    assert len({line.index("x x") for line in found.values()}) == 1
    assert all(cell_len(line) <= DEFAULT_WIDTH for line in found.values())


def test_a_number_in_front_of_evidence_says_what_it_is() -> None:
    evidence = ({"dur_us": 248.0, "op": "aten::addmm"},)
    named = ({"name": "Memcpy DtoD", "dur_us": 3.0},)
    for verbose in (False, True):
        text = render_report(report_of(finding(evidence=evidence)), verbose=verbose)
        assert "evidence  dur 248 us; op aten::addmm" in text
        text = render_report(report_of(finding(evidence=named)), verbose=verbose)
        assert "evidence  Memcpy DtoD; dur 3 us" in text


def test_a_consequence_without_its_cause_has_a_verdict() -> None:
    """A stored result may name a cause that it does not hold."""
    words = verdict(report_of(finding(explained_by="gone", savings_us=None)))
    assert words.startswith("1 finding")


def test_a_benign_look_alike_says_why_in_a_line() -> None:
    text = render_report(sample_report("synthetic-naive"))
    (line,) = re.findall(r"^i benign  OCC102 .*$", text, re.MULTILINE)
    assert "48 KiB" in line or "default limit" in line
    assert cell_len(line) <= DEFAULT_WIDTH


def test_what_cannot_be_answered_is_grouped() -> None:
    text = render_report(sample_report("cpu-sdpa-math"))
    assert re.search(r"not applicable  \d\d rules: no GPU work was recorded", text)
    assert re.search(r"not applicable  TRACE102, TRACE104$", text, re.MULTILINE)


def test_the_next_command_can_be_copied() -> None:
    report = dataclasses.replace(
        sample_report("synthetic-sdpa-math"), trace="my traces/" + "x" * 90
    )
    lines = render_report(report).splitlines()
    (place,) = (place for place, line in enumerate(lines) if line.startswith("  next"))
    assert lines[place].endswith(
        "each attention call, what ran and why (--verbose shows all there is):"
    )
    assert lines[place + 1].strip() == f"analyze calls 'my traces/{'x' * 90}'"
    assert next_command(dataclasses.replace(report, trace="<stdin>")) is None
    assert next_command(sample_report("cpu-sdpa-flash")) is None


def test_many_traces_get_their_verdicts_and_one_table() -> None:
    names = ("synthetic-naive", "synthetic-sdpa-math", "synthetic-sdpa-flash", "cpu-naive")
    reports = [sample_report(name) for name in names]
    assert len(reports) > MOST_REPORTS
    text = write_text(reports, Rendering())
    assert text.count("verdict") == 4
    assert "expected" not in text
    assert "Traces side by side" in text
    assert text.splitlines()[-1].startswith("4 traces: 7 findings, ")
    assert text.count("\n") < SCREEN_LINES
    in_full = write_text(reports, Rendering(verbose=True))
    assert in_full.count("expected") >= 4


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
def test_nothing_that_a_trace_says_leaves_its_place(text: str, verbose: bool) -> None:
    printed = render_report(hostile_report(text), verbose=verbose)
    assert not UNSAFE.search(printed)
    printed.encode()
    assert len(printed) < 20_000
    if "[bold]" in text:
        assert "[bold]x[/bold]" in printed


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("width", [40, 80, 100])
def test_labels_stay_in_their_column(
    text: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "terminal_width", lambda: width)
    lines = render_report(hostile_report(text)).splitlines()
    labelled = [line for line in lines if line.startswith(("  observed", "  expected"))]
    assert len(labelled) == 2
    # What is to be copied, the path above and the command, is one line however long it is.
    own_line = [line for line in lines[1:] if not line.strip().startswith("analyze ")]
    # A backslash that keeps a CI runner from seeing a command comes after the layout.
    laid_out = [re.sub(r"\\(?=::|#\[)", "", line) for line in own_line]
    assert max(map(cell_len, laid_out)) <= width


def test_columns_whose_names_would_be_misread_are_reworded() -> None:
    row = {"dur_us": 248.0, "op": "aten::addmm", "op_us": 33.6}
    found = finding(group={"short_name": "gemm_k"}, evidence=(row,))
    said = dict(finding_words.sentences(found, verbose=True))
    assert said["of"] == "kernel gemm_k"
    assert said["evidence"] == "dur 248 us; op aten::addmm; in that op 33.6 us"
