"""What is printed into the log of a CI job: nothing that a trace or a rule says is a command."""

from dataclasses import fields

import pytest

from analyze.api import FindingsError, Report
from analyze.engine.result import TraceReport
from analyze.report.formats import FORMATS, Rendering, render
from tests.report.report_factory import HOSTILE, hostile_report
from tests.report.runner_log import commands

TEXTS = ("::add-mask::x", "  ::error::x", "##[add-mask]x", "x ##[error]y", *HOSTILE)


@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "github"])
def test_no_format_but_github_has_commands(name: str, verbose: bool) -> None:
    for text in TEXTS:
        report = hostile_report(text)
        printed = render(name, [report, report], Rendering(verbose=verbose))
        assert commands(printed) == [], text[:80]


def test_nor_has_a_report_in_python() -> None:
    for text in TEXTS:
        found = hostile_report(text)
        report = Report(**{field.name: getattr(found, field.name) for field in fields(TraceReport)})
        with pytest.raises(FindingsError) as raised:
            report.raise_for("error")
        for printed in (str(report), repr(report), str(raised.value)):
            assert commands(printed) == [], text[:80]
