"""Of which traces a page draws timelines and lists kernels: as many as keep it below a size."""

from collections.abc import Sequence

import orjson

from analyze.engine.result import LEVELS, TraceReport

MAX_VIEW_BYTES = 10_000_000
"""Of all timelines and kernels together, as JSON; in the page they take up to twice as much."""


def drawn(reports: Sequence[TraceReport]) -> list[bool]:
    """Return for each report whether its timeline and kernels are on the page.

    Those with the gravest findings come first; the first of them always is.
    """
    order = sorted(range(len(reports)), key=lambda place: _rank(reports[place]))
    shown, used = set[int](), 0
    for place in order:
        used += len(orjson.dumps(reports[place].views))
        if shown and used > MAX_VIEW_BYTES:
            break
        shown.add(place)
    return [place in shown for place in range(len(reports))]


def _rank(report: TraceReport) -> list[int]:
    """Return how many new findings of each severity there are, negative, the gravest first."""
    problems = [f.severity for f in report.findings if f.state != "benign" and not f.is_known]
    return [-problems.count(level) for level in reversed(LEVELS)]
