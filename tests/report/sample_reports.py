"""The results of the samples, made once for all tests that render or store them."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.engine.result import TraceReport
from analyze.engine.rule import Rule
from analyze.report.views import with_views


@cache
def rules() -> list[Rule]:
    return load_rules(tests=False)


@cache
def report_of(trace: Path) -> TraceReport:
    """What the command would report, with views; the trace is named by its file name alone."""
    loaded, report = load_and_check(str(trace), None, rules())
    return replace(with_views(report, loaded), trace=trace.name)


def reports_of(folder: Path) -> list[TraceReport]:
    return [report_of(trace) for trace in sorted(folder.glob("*.json.gz"))]
