"""The format ``concise``: a line for each finding, whatever a trace is called or says."""

import dataclasses
import re

import pytest

from analyze.engine.result import RuleFailure
from analyze.report.concise import write_concise
from analyze.report.formats import Rendering
from tests.report.report_factory import HOSTILE, finding, hostile_report, report_of, sample_report

LINE = re.compile(
    r"(?P<trace>[^\n]*?): (?P<state>error|warning|info|benign|intermittent|informative|failed)"
    r" (?P<code>[A-Z]+\d+) (?P<name>[\w-]+): (?P<message>[^\n]*)\n"
)


def test_every_finding_has_a_line_in_order() -> None:
    report = sample_report("synthetic-sdpa-math")
    text = write_concise([report], Rendering())
    assert [found["code"] for found in LINE.finditer(text)] == [f.code for f in report.findings]
    assert text.count("\n") == len(report.findings)
    assert text.count("[explained by ATTN101]") == 3
    assert "[saves at most 7.23 ms per forward, 100 % of its GPU busy time]" in text


def test_benign_findings_say_so_and_why() -> None:
    lines = write_concise([sample_report()], Rendering()).splitlines()
    benign = [line for line in lines if ": benign OCC102 " in line]
    assert len(benign) == 1
    assert "[benign: Kineto asks with the default limit" in benign[0]


def test_nothing_found_prints_nothing_and_a_failed_rule_a_line() -> None:
    assert write_concise([report_of()], Rendering()) == ""
    failed = dataclasses.replace(report_of(), errors=(RuleFailure("MINE001", "mine", "no\nway"),))
    text = write_concise([failed], Rendering())
    assert text.endswith(": failed MINE001 mine: no\\x0away\n")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_stays_a_line(text: str) -> None:
    report = hostile_report(text)
    lines = write_concise([report, report], Rendering()).splitlines(keepends=True)
    assert len(lines) == 2 * len(report.findings)
    for line in lines:
        assert re.fullmatch(r"[^\n]*: (error|benign) [^\n]*\n", line)
        line.encode()
    assert len(lines[0]) < 2_000 + 4 * len(text)


def test_the_order_does_not_depend_on_savings_that_are_unknown() -> None:
    findings = [finding(number=n, savings_us=None, code=f"A{n:03}") for n in range(5)]
    first = write_concise([report_of(*findings)], Rendering())
    assert [found["code"] for found in LINE.finditer(first)] == [f.code for f in findings]
