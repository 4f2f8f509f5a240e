"""The JSON Schema of capture.json."""

from importlib import resources


def schema_text() -> str:
    """Return the schema as text."""
    return resources.files("capture").joinpath("manifest.schema.json").read_text("utf-8")
