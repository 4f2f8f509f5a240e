"""What the data of every view of one trace begins with."""

from typing import Any

from analyze.tables.build import Trace
from analyze.tables.coverage import coverage, quality


def opening(trace: Trace, schema_version: int) -> dict[str, Any]:
    """Return the first keys of a view: how to read it, of which trace, and how sound that is.

    Args:
        trace: the trace.
        schema_version: of the view.
    """
    return {
        "schema_version": schema_version,
        "trace": trace.name,
        "coverage": coverage(trace),
        "quality": quality(trace),
    }
