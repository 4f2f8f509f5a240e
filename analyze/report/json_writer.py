"""JSON: one object for one trace, a list for several."""

from collections.abc import Sequence
from typing import Any

import orjson

from analyze.engine.result import TraceReport
from analyze.report.formats import Rendering


def write_json(reports: Sequence[TraceReport], _: Rendering) -> str:
    """Return reports of findings as JSON; the format ``json``."""
    return to_json([report.to_dict() for report in reports])


def to_json(results: Sequence[dict[str, Any]]) -> str:
    """Return the results as indented JSON text that ends with a newline."""
    data = results[0] if len(results) == 1 else list(results)
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"
