"""How measures are written where no text of their rule says so: from the units of the columns."""

import ast
from collections.abc import Mapping

from analyze.engine.syntax import parse
from analyze.tables.catalogue import TABLES, Table

_LIKE_FIRST = ("abs", "first", "last", "max", "mean", "median", "min", "quantile", "round", "std")
_SUMS = ("sum", "coalesce", "greatest", "least")
_COUNTS = ("count", "n_unique")
_UNITS = ("us", "bytes")
"""Units of the catalogue that are formats of templates, too."""


def formats_of(
    formulas: Mapping[str, str], table: Table, written: Mapping[str, str]
) -> dict[str, str]:
    """Return formats for measures that are a time, a size, a number of things or a share of time.

    Args:
        formulas: the measures as written, in the order in which they are computed.
        table: whose columns they read.
        written: formats by measure that the rule's texts use; they come first.
    """
    formats: dict[str, str] = {}
    for name, formula in formulas.items():
        found = written.get(name) or _format(parse(formula)[0], table, formats)
        if found:
            formats[name] = found
    return formats


def _format(node: ast.expr, table: Table, measures: Mapping[str, str]) -> str | None:
    """Return the format of what an expression gives; None where its parts do not tell."""
    match node:
        case ast.Name(id=name):
            return measures.get(name) or _unit(table, name)
        case ast.Attribute(value=ast.Name(id=unit), attr=name):
            return _unit_of_repetition(unit, name)
        case ast.UnaryOp(operand=ast.expr() as body) | ast.IfExp(body=body):
            return _format(body, table, measures)
        case ast.BinOp(left=left, op=operator, right=right):
            return _of_two(operator, [_format(side, table, measures) for side in (left, right)])
        case ast.Call(func=ast.Name(id=function), args=args):
            return _of_call(function, args, table, measures)
    return None


def _of_call(
    function: str, args: list[ast.expr], table: Table, measures: Mapping[str, str]
) -> str | None:
    if function in _COUNTS:
        return "int"
    if function == "when":
        return _first(args[1:], table, measures)
    if function in _LIKE_FIRST:
        return _first(args[:1], table, measures)
    return _first(args, table, measures) if function in _SUMS else None


def _of_two(operator: ast.operator, sides: list[str | None]) -> str | None:
    left, right = sides
    if isinstance(operator, ast.Add | ast.Sub):
        return left or right
    if isinstance(operator, ast.Div) and left == right:
        return "pct" if left == "us" else None
    is_scaled = isinstance(operator, ast.Mult) and right in (None, "int", "pct")
    return left if left in _UNITS and (is_scaled or right == "int") else None


def _first(nodes: list[ast.expr], table: Table, measures: Mapping[str, str]) -> str | None:
    return next(filter(None, (_format(node, table, measures) for node in nodes)), None)


def _unit(table: Table, name: str) -> str | None:
    column = table.column(name)
    return column.unit if column is not None and column.unit in _UNITS else None


def _unit_of_repetition(unit: str, name: str) -> str | None:
    """Return the unit of a column such as ``forward.cpu_us``; a region has those of a forward."""
    names = {"trace": "trace", "step": "steps", "call": "calls"}
    table = TABLES.get(names.get(unit, "forwards"))
    return None if table is None else _unit(table, name)
