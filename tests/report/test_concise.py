"""The format ``concise``: a line for each finding, whatever a trace is called or says."""

import dataclasses
import re
import subprocess

import pytest

from analyze.engine.result import RuleFailure, TraceReport, Unread, Vanished
from analyze.report.concise import write_concise
from analyze.report.formats import Rendering
from tests.report.report_factory import HOSTILE, finding, hostile_report, report_of, sample_report

TRIMMED = {"kept": "step 3", "of": "steps 2 to 4", "events": 80, "all_events": 273}

LINE = re.compile(
    r"(?P<trace>[^\n]*?): (?P<state>error|warning|info|benign|intermittent|informative|failed)"
    r" (?P<code>[A-Z]+\d+) (?P<name>[\w-]+): (?P<message>[^\n]*)\n"
)


def test_every_finding_has_a_line_in_order() -> None:
    report = sample_report("synthetic-sdpa-math")
    text = write_concise([report], Rendering())
    assert [found["code"] for found in LINE.finditer(text)] == [f.code for f in report.findings]
    assert text.count("\n") == len(report.findings) + 1
    assert text.count("[explained by ATTN101]") == 3
    assert "[saves at most 7.18 ms per forward, >99 % of its GPU busy time]" in text


def test_benign_findings_say_so_and_why() -> None:
    lines = write_concise([sample_report()], Rendering()).splitlines()
    benign = [line for line in lines if ": benign OCC102 " in line]
    assert len(benign) == 1
    assert "[benign: Kineto asks with the default limit" in benign[0]


def test_nothing_found_prints_nothing_and_a_failed_rule_a_line() -> None:
    clean = {**sample_report().coverage, "synthetic": False}
    assert write_concise([report_of(coverage=clean)], Rendering()) == ""
    failed = dataclasses.replace(report_of(), errors=(RuleFailure("MINE001", "mine", "no\nway"),))
    text = write_concise([failed], Rendering())
    assert text.endswith(": failed MINE001 mine: no\\x0away\n")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_stays_a_line(text: str) -> None:
    report = hostile_report(text)
    lines = write_concise([report, report], Rendering()).splitlines(keepends=True)
    assert len(lines) == 2 * (len(report.findings) + 1)
    for line in lines:
        assert re.fullmatch(r"[^\n]*: ((error|benign) |note: SYNTHETIC)[^\n]*\n", line)
        line.encode()
        assert len(line) < 2_000 + 4 * len(text)


def test_the_order_does_not_depend_on_savings_that_are_unknown() -> None:
    findings = [finding(number=n, savings_us=None, code=f"A{n:03}") for n in range(5)]
    first = write_concise([report_of(*findings)], Rendering())
    assert [found["code"] for found in LINE.finditer(first)] == [f.code for f in findings]


def test_what_makes_findings_less_than_sure_has_a_line() -> None:
    whole = sample_report()
    report = report_of(
        quality={**whole.quality, "truncated": True, "events_lost": 3},
        coverage={
            **whole.coverage,
            "synthetic": False,
            "forwards_in_part": 1,
            "trimmed": [TRIMMED],
        },
    )
    notes = [line.removeprefix(f"{whole.trace}: ") for line in _lines_of(report)]
    assert notes == [
        "note: trimmed: step 3 of steps 2 to 4; 80 of 273 events; times and shares are of what was"
        " kept",
        "note: the file is cut short: totals are lower bounds",
        "note: 3 events could not be read",
        "note: 1 of 3 forwards may lack a part of the launched work, whose amounts are unknown"
        " there",
    ]


def _lines_of(report: TraceReport) -> list[str]:
    return write_concise([report], Rendering()).splitlines()


def test_what_could_not_be_read_and_what_is_gone_have_lines() -> None:
    gone = Vanished("COPY101", "hidden-memcpy", "f", "error", "1 copy", None, "2026-01-01", None)
    unread = (Unread("no\nfile.json", "no\nfile.json: no such file"),)
    lines = write_concise([report_of(unread=unread, vanished=(gone,))], Rendering()).splitlines()
    assert lines[0] == "no\\x0afile.json: failed: no such file"
    assert "gone COPY101 hidden-memcpy is no longer found (1 copy)" in lines[-1]


def _piped(text: str, *command: str) -> list[str]:
    """What a program makes of a text, line by line."""
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def test_grep_and_awk_take_it_apart() -> None:
    reports = [sample_report("synthetic-naive"), sample_report("synthetic-sdpa-math")]
    text = write_concise(reports, Rendering())
    errors = [f.code for report in reports for f in report.findings if f.severity == "error"]
    found = _piped(text, "grep", "-oE", "^[^:]+: error [A-Z]+[0-9]+")
    assert [line.split()[-1] for line in found] == errors
    named = _piped(text, "awk", "-F", ": ", "{ print $1 }")
    counts = [len(report.findings) + 1 for report in reports]
    expected = [r.trace for r, lines in zip(reports, counts, strict=True) for _ in range(lines)]
    assert named == expected


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_to_grep_any_text_is_a_line_of_text(text: str) -> None:
    report = dataclasses.replace(hostile_report(text), trace="t.json")
    lines = _piped(write_concise([report], Rendering()), "grep", "-E", "^t.json: (error|benign) ")
    assert len(lines) == len(report.findings)  # a file that it takes for binary has no lines
