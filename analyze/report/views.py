"""What a report shows of a trace beside its findings, as plain data: ``TraceReport.views``."""

from dataclasses import replace
from typing import Any

from analyze.engine.result import TraceReport
from analyze.tables.build import Trace


def with_views(report: TraceReport, trace: Trace) -> TraceReport:
    """Return a report with the views of its trace."""
    return replace(report, views=build_views(trace))


def build_views(trace: Trace) -> dict[str, Any]:
    """Return the views of a trace as plain JSON data of bounded size."""
    return {"unit": trace.forward_source}
