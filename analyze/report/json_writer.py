"""JSON: one object for one trace, a list for several."""

from collections.abc import Sequence
from typing import Any

import orjson


def to_json(results: Sequence[dict[str, Any]]) -> str:
    """Return the results as indented JSON text that ends with a newline."""
    data = results[0] if len(results) == 1 else list(results)
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"
