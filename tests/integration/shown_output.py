"""Compare what a command printed with what a document shows of it."""

import re


def assert_printed(printed: str, shown: str, command: str) -> None:
    """Assert that the parts shown, with ``...`` between them, were printed in this order."""
    position = 0
    for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        expected = part.strip("\n")
        at = printed.find(expected, position)
        assert at >= 0, f"not printed (in this order) by {command}:\n{expected}\n---\n{printed}"
        position = at + len(expected)
