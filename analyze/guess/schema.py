"""The JSON Schema of a guess file, for editors."""

from typing import Any

from analyze.guess.model import GuessModel

DRAFT = "http://json-schema.org/draft-07/schema#"


def guess_schema() -> dict[str, Any]:
    """Return the schema: the keys with their meaning; draft 7, as for rules."""
    schema = GuessModel.model_json_schema()
    for key in schema["properties"].values():
        del key["title"]
        alternatives = [part for part in key.pop("anyOf", []) if part != {"type": "null"}]
        if alternatives:
            key.pop("default")
            key.update(alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives})
    return {"$schema": DRAFT, **schema, "title": "kinetolint guess file"}
