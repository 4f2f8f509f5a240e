"""The identity of a finding across runs: rule and group, without what changes by chance."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_LENGTH = 16


def fingerprint(code: str, group: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that identify a finding.

    Args:
        code: of the rule.
        group: the columns the rule groups by, with their values. Template arguments and addresses
            in texts do not count.
    """
    parts = [code]
    for name in sorted(group):
        value = group[name]
        value = _normalise(value) if isinstance(value, str) else value
        parts.append(f"{name}={value!r}")
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:_LENGTH]


def _normalise(text: str) -> str:
    """Return text without the insides of its angle brackets and without addresses."""
    kept: list[str] = []
    depth = 0
    for char in _ADDRESS.sub("0x", text):
        if char == ">" and depth:
            depth -= 1
        if not depth:
            kept.append(char)
        if char == "<":
            depth += 1
    return "".join(kept)
