"""The syntax of expressions: one Python expression of bounded size, parsed and never run."""

import ast
import re
import warnings
from functools import lru_cache

MAX_LENGTH = 1000
MAX_NODES = 200
MAX_DEPTH = 40


class ExpressionError(Exception):
    """An expression is not acceptable.

    Attributes:
        message, help: for people.
        offset, length: the characters of the expression that are wrong.
    """

    def __init__(
        self, message: str, offset: int = 0, length: int = 1, help_text: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length
        self.help = help_text


class BrokenNameError(ExpressionError):
    """An expression uses a measure that is itself wrong, which has been reported already."""


@lru_cache(maxsize=1000)
def parse(text: str) -> tuple[ast.expr, int]:
    """Parse an expression and check its size.

    A rule is compiled when it is loaded and again for every trace, so trees are kept; they must not
    be changed.

    Returns:
        The tree, and how many characters were skipped in front of it.

    Raises:
        ExpressionError: it is too large or not Python syntax.
    """
    if len(text) > MAX_LENGTH:
        message = f"an expression of {len(text)} characters; at most {MAX_LENGTH} are allowed"
        raise ExpressionError(message)
    line = " ".join(text.split("\n")).rstrip()
    start = len(line) - len(line.lstrip())
    if start == len(line):
        raise ExpressionError("the expression is empty")
    tree = _parse_line(line[start:], start)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    if len(nodes) > MAX_NODES:
        message = f"an expression of {len(nodes)} parts; at most {MAX_NODES} are allowed"
        raise ExpressionError(message)
    if _depth(tree) > MAX_DEPTH:
        raise ExpressionError(f"nested more than {MAX_DEPTH} levels deep")
    return tree, start


def _parse_line(line: str, start: int) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        offset = start + max((error.offset or 1) - 1, 0)
        reason = (error.msg or "").split(".")[0]
        raise ExpressionError(f"syntax error: {reason}", offset, 1, _help(line)) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("syntax error: not an expression") from None


_NUMBER_WITH_UNIT = re.compile(r"\b(\d+(?:\.\d+)?)\s*(ns|us|ms|s|KiB|MiB|GiB|%)(?!\w|\()")


_OPERATORS = {">=": "gte", "<=": "lte", "==": "eq", "!=": "ne", ">": "gt", "<": "lt"}


def spelt_quantity(text: str) -> str | None:
    """Return how a number with a unit, such as ``5 ms`` or ``60%``, is written; None for others."""
    quantity = _NUMBER_WITH_UNIT.fullmatch(text.strip())
    return None if quantity is None else _spelt(quantity)


def _spelt(quantity: re.Match[str]) -> str:
    unit = "pct" if quantity[2] == "%" else quantity[2]
    return f"{unit}({quantity[1]})"


def _help(line: str) -> str | None:
    """Return what to write instead, where the line looks like another language's."""
    quantity = _NUMBER_WITH_UNIT.search(line)
    if quantity is not None:
        return f"write {_spelt(quantity)}"
    sign = next((sign for sign in _OPERATORS if line.startswith(sign)), None)
    if sign is not None:
        return f"write {{{_OPERATORS[sign]}: {line.removeprefix(sign).strip()}}}"
    for sign, word in (("&&", "and"), ("||", "or")):
        if sign in line:
            return f"write '{word}' for '{sign}'"
    if re.search(r"!(?!=)", line):
        return "write 'not' for '!'"
    return "use '==' to compare, not '='" if _single_equals(line) else None


def _single_equals(line: str) -> bool:
    return any(
        char == "=" and line[index - 1 : index] not in ("=", "!", "<", ">") and after != "="
        for index, (char, after) in enumerate(zip(line, line[1:] + " ", strict=True))
    )


def _depth(tree: ast.expr) -> int:
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [
            child
            for node in level
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        ]
    return depth
