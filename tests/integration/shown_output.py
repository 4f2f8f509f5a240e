"""Compare what a command printed with what a document shows of it."""

import re

_MEASURED = re.compile(r"\b\d+(\.\d+)?(e-\d+)?( (us|ms|s|[KMG]iB))?\b")


def assert_printed(printed: str, shown: str, command: str, *, same_numbers: bool = True) -> None:
    """Assert that the parts shown, with ``...`` between them, were printed in this order.

    Measurements differ from run to run: without ``same_numbers`` a number stands for any number,
    and columns may be of any width.
    """
    if not same_numbers:
        printed, shown = _any_numbers(printed), _any_numbers(shown)
    position = 0
    for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        expected = part.strip("\n")
        at = printed.find(expected, position)
        assert at >= 0, f"not printed (in this order) by {command}:\n{expected}\n---\n{printed}"
        position = at + len(expected)


def _any_numbers(text: str) -> str:
    return re.sub(r" +", " ", _MEASURED.sub("#", text))
