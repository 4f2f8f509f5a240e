"""JSON Lines: one compact result a line and trace, for many traces and for tools that stream."""

from collections.abc import Sequence

import orjson

from analyze.engine.result import TraceReport
from analyze.report.formats import Rendering
from analyze.report.json_writer import inert_json, json_bytes, result_data


def write_jsonl(reports: Sequence[TraceReport], _: Rendering) -> str:
    """Return reports of findings as JSON Lines; the format ``jsonl``.

    Lines are results and nothing else, however a reader splits them; see
    :func:`~analyze.report.json_writer.inert_json`.
    """
    lines = (json_bytes(result_data(report), orjson.OPT_APPEND_NEWLINE) for report in reports)
    return inert_json(b"".join(lines).decode())
