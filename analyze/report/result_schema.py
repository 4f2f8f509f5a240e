"""The JSON Schema of a result: what ``--format json`` writes, and what ``--from`` reads."""

from importlib import resources
from typing import Any

import orjson

Schema = dict[str, Any]


def schema_text() -> str:
    """Return the schema as text."""
    return resources.files("analyze.report").joinpath("result.schema.json").read_text("utf-8")


def result_schema() -> Schema:
    """Return the schema of what is written: every key is required, and no other is allowed."""
    schema: Schema = orjson.loads(schema_text())
    return schema


def stored_schema() -> Schema:
    """Return the schema of one result that may come from a later version with further keys.

    Views are only asked to be an object: who draws them reads them, many thousand numbers, faster
    than a schema is checked.
    """
    schema = _open(result_schema())
    schema["$defs"]["result"]["properties"]["views"] = {"type": ["object", "null"]}
    return {"$schema": schema["$schema"], "$ref": "#/$defs/result", "$defs": schema["$defs"]}


def _open(schema: Any) -> Any:
    """Return a schema that allows keys it does not know."""
    if isinstance(schema, list):
        return [_open(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    is_closed = schema.get("additionalProperties") is False
    return {
        key: _open(part)
        for key, part in schema.items()
        if not (is_closed and key == "additionalProperties")
    }
