"""What the YAML files of this package hold, as it was read when the wheel was built.

To read them takes a tenth of a short run. They are known by the digest of their text, so that a
file which somebody has edited is read, and checked, like any other. A checkout has none of this.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

_PACKAGE = Path(__file__).parent
_FILE = _PACKAGE / "parsed.json"


def as_built(text: bytes) -> Any | None:
    """Return what a YAML text holds, a rule without its tests; None for a text that is not ours."""
    parsed = _parsed()
    return parsed.get(hashlib.sha256(text).hexdigest()) if parsed else None


def read_table(file: str) -> Any:
    """Return what a YAML file of this package holds, which is named by its path in it."""
    text = (_PACKAGE / file).read_bytes()
    data = as_built(text)
    return _read(text) if data is None else data


def _read(text: bytes) -> Any:
    from ruamel.yaml import YAML  # noqa: PLC0415

    return YAML(typ="safe").load(text)


@cache
def _parsed() -> Mapping[str, Any]:
    """Return what the build wrote; nothing where that is missing or damaged."""
    try:
        parsed = orjson.loads(_FILE.read_bytes())
    except (OSError, ValueError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
