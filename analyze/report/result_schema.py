"""The JSON Schema of a result: what ``--format json`` writes, and what ``--from`` reads.

A key with a ``default`` was added after results of the same ``schema_version`` had been written: in
a stored result that lacks it, it stands for its default, which says unknown or empty.
"""

import copy
from collections.abc import Iterator
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


def completed(data: Any) -> Any:
    """Return a stored result with the keys that were added since it was written.

    Whatever else is wrong with it stays as it is.
    """
    schema = result_schema()
    return _completed(data, schema["$defs"]["result"], schema["$defs"])


def _completed(data: Any, schema: Schema, definitions: Schema) -> Any:
    for part in _alternatives(schema, definitions):
        if isinstance(data, dict) and "properties" in part:
            return _with_defaults(data, part["properties"], definitions)
        if isinstance(data, list) and _holds_objects(part, definitions):
            return [_completed(item, part["items"], definitions) for item in data]
    return data


def _with_defaults(data: Schema, properties: Schema, definitions: Schema) -> Schema:
    later = {
        key: copy.deepcopy(part["default"])
        for key, part in properties.items()
        if "default" in part and key not in data
    }
    known = {
        key: _completed(value, properties[key], definitions) if key in properties else value
        for key, value in data.items()
    }
    return {**known, **later}


def _holds_objects(schema: Schema, definitions: Schema) -> bool:
    """Whether the items of an array have keys; a view holds many thousand numbers, which do not."""
    items = schema.get("items")
    return items is not None and any(
        "properties" in part for part in _alternatives(items, definitions)
    )


def _alternatives(schema: Schema, definitions: Schema) -> Iterator[Schema]:
    """Yield what a value may be, references followed."""
    if "$ref" in schema:
        yield from _alternatives(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    elif "anyOf" in schema:
        for part in schema["anyOf"]:
            yield from _alternatives(part, definitions)
    else:
        yield schema
