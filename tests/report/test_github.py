"""The format ``github``, read back as a runner of GitHub Actions reads the lines of a log."""

import dataclasses
from pathlib import Path

import pytest

from analyze.engine.result import Finding, Unread
from analyze.report.formats import Rendering
from analyze.report.github import MOST_OF_A_LEVEL, annotate_unread, write_github
from analyze.report.source_line import SourceLine, source_line
from tests.report.report_factory import HOSTILE, finding, hostile_report, report_of, sample_report
from tests.report.runner_log import commands, read_command
from tests.report.test_text import idle_report


def with_level(level: str, count: int) -> list[Finding]:
    return [
        finding(number=f"{level}{n}", severity=level, savings_us=float(n), code=f"MINE{n:03}")
        for n in range(count)
    ]


def test_findings_become_annotations() -> None:
    made = commands(write_github([sample_report()], Rendering()))
    assert [(name, properties["title"]) for name, properties, _ in made] == [
        ("error", "COPY101 hidden-memcpy"),
        ("warning", "ATTN103 unfused-attention"),
    ]
    message = made[0][2]
    assert message.startswith("sample_traces/synthetic-naive.json.gz: 1 DtoD copy per forward")
    assert "16 % of GPU busy time" in message
    assert "\nsaves: at most 365 us per forward" in message


def test_benign_ones_and_consequences_are_not_annotated() -> None:
    made = commands(write_github([sample_report("synthetic-sdpa-math")], Rendering()))
    assert [properties["title"].split()[0] for _, properties, _ in made] == ["ATTN101"]
    assert "explains: PREC101, ATTN102" in made[0][2]
    assert commands(write_github([sample_report("synthetic-sdpa-flash")], Rendering())) == []


def test_what_a_baseline_knows_is_not_annotated() -> None:
    known = finding(number=1, baseline="known")
    worse = finding(number=2, baseline="worse", baseline_changes=("copies 1 -> 2",), code="MINE002")
    made = commands(write_github([report_of(known, worse)], Rendering()))
    assert [properties["title"].split()[0] for _, properties, _ in made] == ["MINE002"]
    assert "copies 1 -> 2" in made[0][2]


def test_no_more_of_a_level_than_github_keeps() -> None:
    of_each = [*with_level("error", 30), *with_level("warning", 12), *with_level("info", 11)]
    first, second = report_of(*of_each[::2]), report_of(*of_each[1::2])
    made = commands(write_github([first, second], Rendering()))
    names = [name for name, _, _ in made]
    assert {name: names.count(name) for name in names} == {
        "error": MOST_OF_A_LEVEL, "warning": MOST_OF_A_LEVEL, "notice": MOST_OF_A_LEVEL,
    }  # fmt: skip
    assert made[0][1]["title"].startswith("MINE029")  # the one with the most savings
    assert made[-1][0] == "notice"
    assert made[-1][2].startswith("and 24 more findings: ")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_begins_a_command(text: str) -> None:
    report = hostile_report(text)
    printed = write_github([report, report], Rendering())
    made = commands(printed)
    assert [name for name, _, _ in made] == ["error", "error"]
    assert "##[" not in "".join(line for line in printed.splitlines() if line[:2] != "::")
    assert all(set(properties) <= {"title", "file", "line"} for _, properties, _ in made)
    assert (
        printed.count("\n") == len(made) + 4
    )  # of each trace a note that it is synthetic, a tally
    printed.encode()


def test_escapes_are_undone_to_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    says = "100 %, %0A is no newline: a,b::c"
    monkeypatch.setenv("GITHUB_WORKSPACE", "/ci/checkout")
    report = report_of(finding(message=says, guess=says, fix=None, source="a,b%3A:c.py:3"))
    ((_, properties, message),) = commands(write_github([report], Rendering()))
    assert message.splitlines()[0].endswith(f": {says}")
    assert f"expected: {says}" in message.splitlines()
    assert (properties["file"], properties["line"]) == ("a,b%3A:c.py", "3")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("model/attention.py:12", SourceLine("model/attention.py", 12)),
        ("model/attention.py(12): forward", SourceLine("model/attention.py", 12)),
        ("./a/../model.py:7", SourceLine("model.py", 7)),
        ("/ci/checkout/model.py:7", SourceLine("model.py", 7)),
        ("/ci/checkout/../other/model.py:7", None),
        ("/elsewhere/torch/nn.py:7", None),
        ("../model.py:7", None),
        ("C:\\model.py:7", None),
        ("<frozen runpy>:7", None),
        ("model.py:0", None),
        ("model.py", None),
        ("model.py:-1", None),
        (":7", None),
        ("", None),
        (None, None),
    ],
)
def test_lines_of_the_project_alone(source: str | None, expected: SourceLine | None) -> None:
    assert source_line(source, Path("/ci/checkout")) == expected


def test_without_a_workspace_the_current_folder_is_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(finding(source="/ci/checkout/model.py:7"))
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").touch()
    ((_, properties, _),) = commands(write_github([report], Rendering()))
    assert "file" not in properties
    here = report_of(finding(source=f"{tmp_path}/model.py:7"))
    ((_, properties, _),) = commands(write_github([here], Rendering()))
    assert (properties["file"], properties["line"]) == ("model.py", "7")
    monkeypatch.setenv("GITHUB_WORKSPACE", "/ci/checkout")
    ((_, properties, _),) = commands(write_github([report], Rendering()))
    assert (properties["file"], properties["line"]) == ("model.py", "7")


def test_a_file_that_the_checkout_lacks_is_named_in_the_message_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "model.py").touch()
    (tmp_path / "src" / "ours").mkdir(parents=True)
    (tmp_path / "src" / "ours" / "layer.py").touch()
    reports = [
        report_of(finding(source=source))
        for source in ("model.py:7", "ours/layer.py:7", "transformers/bert.py:7")
    ]
    made = commands(write_github(reports, Rendering()))
    files = [properties.get("file") for _, properties, _ in made]
    assert files == ["model.py", "src/ours/layer.py", None]
    assert "\nat: transformers/bert.py:7" in made[2][2]


def test_what_matters_little_comes_last_and_says_so() -> None:
    waiting = finding(number=1, code="IDLE101", name="gpu-idle", category="idle", savings_us=1.0)
    grid = finding(number=2, code="OCC103", category="occupancy", savings_us=90.0)
    made = commands(write_github([idle_report(0.9, "host", grid, waiting)], Rendering()))
    assert [properties["title"].split()[0] for _, properties, _ in made] == ["IDLE101", "OCC103"]
    weight = "\nof little weight while gpu-idle (IDLE101) holds\n"
    assert [weight in message for _, _, message in made] == [False, True]


def test_a_trace_of_that_name_begins_no_command_in_the_tally() -> None:
    for name in ("::add-mask::x", "##[add-mask]x", "x\n::add-mask::x"):
        report = dataclasses.replace(report_of(), trace=name)
        assert commands(write_github([report], Rendering())) == []


def test_a_trace_that_is_not_whole_is_a_warning() -> None:
    whole = sample_report()
    trimmed = [{"kept": "\n::add-mask::x", "of": None, "events": 80, "all_events": None}]
    damaged = report_of(quality={**whole.quality, "truncated": True, "events_lost": 2})
    part = report_of(coverage={**whole.coverage, "trimmed": trimmed})
    made = commands(write_github([whole, damaged, part], Rendering()))
    warned = [message for name, properties, message in made if properties["title"] == "kinetolint"]
    assert warned == [
        f"{whole.trace}: the file is cut short: totals are lower bounds; 2 events could not be"
        " read",
        f"{whole.trace}: trimmed: \\x0a::add-mask::x; events kept: unknown; times and shares are of"
        " what was kept",
    ]


def test_the_finding_that_a_file_is_damaged_is_not_said_twice() -> None:
    damaged = report_of(
        finding(code="TRACE105", name="damaged-file"),
        quality={**sample_report().quality, "truncated": True},
    )
    titles = [
        properties["title"] for _, properties, _ in commands(write_github([damaged], Rendering()))
    ]
    assert titles == ["TRACE105 damaged-file"]


def test_many_traces_that_are_not_whole_leave_room_for_findings() -> None:
    quality = {**sample_report().quality, "truncated": True}
    reports = [report_of(quality=quality) for _ in range(30)]
    reports.append(report_of(*with_level("warning", 12)))
    made = commands(write_github(reports, Rendering()))
    warned = [properties["title"] for name, properties, _ in made if name == "warning"]
    assert len(warned) == MOST_OF_A_LEVEL
    assert warned.count("kinetolint") == 4
    assert made[3][2].endswith("; and 26 more traces like these")


def test_what_could_not_be_read_is_an_error() -> None:
    unread = Unread("\n::x::", "\n::x::: no such file")
    made = commands(write_github([report_of(unread=(unread,))], Rendering()))
    assert made == [("error", {"title": "kinetolint"}, "\\x0a::x::: no such file")]
    assert commands(annotate_unread([unread.message])) == made


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("::error file=a%2Cb,line=3::100%25%0Ax", ("error", {"file": "a,b", "line": "3"}, "100%\nx")),  # noqa: E501
        (" \t::debug::x::y", ("debug", {}, "x::y")),
        ("said ##[add-mask a=b%3B;c=d]x%5D", ("add-mask", {"a": "b;", "c": "d"}, "x]")),
        ("x ::error::y", None),
        ("::unknown::y", None),
        ("::error y", None),
    ],
)  # fmt: skip
def test_the_reader_of_these_tests_reads_as_the_runner_does(
    line: str, read: tuple[str, dict[str, str], str] | None
) -> None:
    assert read_command(line) == read
