"""What a report shows of a trace beside its findings, as plain data: ``TraceReport.views``.

:mod:`~analyze.report.views.model` says what is in it.
"""

from dataclasses import asdict, replace
from typing import Any

from analyze.engine.result import TraceReport
from analyze.report.views.compared import compared
from analyze.report.views.families import family_times
from analyze.report.views.kernel_rows import kernel_table
from analyze.report.views.model import Views
from analyze.report.views.timeline import build_timeline
from analyze.tables.build import Trace

__all__ = ["build_views", "with_views"]


def with_views(report: TraceReport, trace: Trace) -> TraceReport:
    """Return a report with the views of its trace."""
    return replace(report, views=build_views(trace))


def build_views(trace: Trace) -> dict[str, Any]:
    """Return the views of a trace as plain JSON data of bounded size."""
    views = Views(
        timeline=build_timeline(trace),
        families=family_times(trace),
        kernels=kernel_table(trace),
        compared=compared(trace),
    )
    return asdict(views)
