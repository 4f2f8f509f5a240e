"""JSON Lines: one compact result a line and trace, for many traces and for tools that stream."""

from collections.abc import Sequence

import orjson

from analyze.engine.result import TraceReport
from analyze.report.formats import Rendering
from analyze.report.json_writer import json_bytes, result_data

_LINE_SEPARATORS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
"""What Python's ``splitlines`` and JavaScript take for the end of a line, and JSON does not."""


def write_jsonl(reports: Sequence[TraceReport], _: Rendering) -> str:
    """Return reports of findings as JSON Lines; the format ``jsonl``.

    A line separator inside a text is written as an escape, so that lines are results and nothing
    else, however a reader splits them.
    """
    lines = (json_bytes(result_data(report), orjson.OPT_APPEND_NEWLINE) for report in reports)
    return b"".join(lines).decode().translate(_LINE_SEPARATORS)
