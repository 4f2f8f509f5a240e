"""The identity of a finding across runs: rule and group, without what changes by chance."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_LENGTH = 16


def fingerprints(code: str, groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fingerprints of all findings of a rule in one trace, no two the same.

    Of groups that differ only in what does not count the first has the fingerprint that it would
    have alone; the others are numbered, so that one more of them is a new finding.

    Args:
        code: of the rule.
        groups: of the findings, in any order; they are numbered by their full values.
    """
    made = [""] * len(groups)
    seen: Counter[str] = Counter()
    for at in sorted(range(len(groups)), key=lambda at: _in_full(groups[at])):
        alone = fingerprint(code, groups[at])
        seen[alone] += 1
        made[at] = fingerprint(code, groups[at], number=seen[alone])
    return made


def _in_full(group: Mapping[str, Any]) -> tuple[str, str]:
    """Return what groups are ordered by: addresses, which change from run to run, come last."""
    text = repr(sorted(group.items()))
    return _ADDRESS.sub("0x", text), text


def fingerprint(code: str, group: Mapping[str, Any], *, number: int = 1) -> str:
    """Return 16 hexadecimal digits that identify a finding.

    Args:
        code: of the rule.
        group: the columns the rule groups by, with their values. Template arguments and addresses
            in texts do not count.
        number: of the finding among those of which nothing else that counts differs.
    """
    parts = [code] if number == 1 else [code, f"#{number}"]
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
