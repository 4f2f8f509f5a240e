"""Expressions of rules: Python syntax, parsed with ``ast``, compiled to polars expressions.

Nothing is ever evaluated as Python. A tree is checked node by node against what is allowed here;
everything else is an :class:`ExpressionError` with its position. Unknown values stay unknown: a
comparison with null is null, and so is every division by zero.
"""

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple

import polars as pl

from analyze.engine.functions import AGGREGATES, SCALARS, TEXT_TESTS, Function, choose
from analyze.engine.problems import did_you_mean
from analyze.engine.scope import Scope, Uses
from analyze.engine.syntax import BrokenNameError, ExpressionError, parse
from analyze.engine.values import (
    Kind,
    Scalar,
    Typed,
    Value,
    is_among,
    is_usable,
    kind_of_value,
    literal,
    unknown,
)

UNIT_WORDS = ("forward", "step", "call", "region")


class Place(Enum):
    """Where an expression stands, which decides the names it may use."""

    ROWS = "per row: columns of the table"
    MEASURE = "a measure: aggregates over columns, and earlier measures"
    FORMULA = "measures only"


class Compiled(NamedTuple):
    """An expression with the names it uses."""

    typed: Typed
    uses: Uses

    @property
    def expr(self) -> pl.Expr:
        """The polars expression."""
        return self.typed.expr


def compile_expression(
    text: str, scope: Scope, place: Place = Place.FORMULA, want: Kind | None = None
) -> Compiled:
    """Compile one expression.

    Args:
        text: as written in the rule.
        scope: the names it may use; collects its aggregates and text tests.
        place: where it stands.
        want: the kind the result must have.

    Raises:
        ExpressionError: the expression is not acceptable.
    """
    tree, start = parse(text)
    compiler = _Compiler(text, start, scope, place)
    typed = compiler.compile(tree)
    if want is not None and typed.kind is not want:
        message = f"must be {want.value}, but this is {typed.kind.value}"
        raise compiler.error(tree, message)
    return Compiled(typed, compiler.uses)


def number_of(
    text: str, params: Mapping[str, Value] | None = None, broken: Collection[str] = ()
) -> float:
    """Return the number that a constant expression such as ``MiB(1)`` comes to.

    Args:
        text: as written in the rule.
        params: values of the rule's parameters, which it may use.
        broken: parameters, as ``params.x``, that are not usable.

    Raises:
        ExpressionError: it is no acceptable expression of a number, or its value is unknown.
    """
    scope = Scope("", {}, None, {}, {}, params or {}, broken=set(broken))
    compiled = compile_expression(text, scope, want=Kind.NUMBER)
    number = pl.select(compiled.expr.cast(pl.Float64)).item()
    if number is None:
        help_text = "it divides by 0, or takes a root or a logarithm of what has none"
        raise ExpressionError("the value is unknown", 0, len(text), help_text)
    return float(number)


def _divide(build: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Callable[[pl.Expr, pl.Expr], pl.Expr]:
    return lambda left, right: pl.when(right != 0).then(build(left, right))


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[pl.Expr, pl.Expr], pl.Expr]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    # Int64 products wrap around silently; float64 is exact up to 2**53.
    ast.Mult: ("*", lambda left, right: left.cast(pl.Float64) * right),
    ast.Div: ("/", _divide(operator.truediv)),
    ast.FloorDiv: ("//", _divide(operator.floordiv)),
    ast.Mod: ("%", _divide(operator.mod)),
}

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}

_WORDS: dict[str, Scalar | None] = {"true": True, "false": False, "null": None}


class _Compiler:
    """One pass over one tree."""

    def __init__(self, text: str, start: int, scope: Scope, place: Place) -> None:
        self._text = text.replace("\n", " ")[start:].encode()
        self._start = start
        self._scope = scope
        self._per_row = place is Place.ROWS
        self._aggregates = place is Place.MEASURE
        self._reads_null = 0
        self.uses = Uses()
        self._visitors: dict[type[ast.expr], Callable[[Any], Typed]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._dotted,
            ast.BoolOp: self._bool_op,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._arithmetic,
            ast.Compare: self._compare,
            ast.IfExp: self._if_else,
            ast.Call: self._call,
        }

    def compile(self, node: ast.expr) -> Typed:
        visitor = self._visitors.get(type(node))
        if visitor is None:
            if isinstance(node, ast.List | ast.Tuple):
                raise self.error(node, "a list can only stand behind 'in'")
            raise self.error(node, f"{type(node).__name__} is not allowed in an expression")
        return visitor(node)

    def error(self, node: ast.expr, message: str, help_text: str | None = None) -> ExpressionError:
        offset = len(self._text[: node.col_offset].decode(errors="replace"))
        end = node.end_col_offset or node.col_offset + 1
        length = len(self._text[node.col_offset : end].decode(errors="replace"))
        return ExpressionError(message, self._start + offset, max(length, 1), help_text)

    def _typed(self, node: ast.expr, kind: Kind, what: str) -> Typed:
        typed = self.compile(node)
        if typed.kind not in (kind, Kind.NULL):
            raise self.error(node, f"{what} needs {kind.value}, but this is {typed.kind.value}")
        return unknown(kind) if typed.kind is Kind.NULL else typed

    def _constant(self, node: ast.Constant) -> Typed:
        value = node.value
        if value is not None and not isinstance(value, bool | int | float | str):
            raise self.error(node, f"{type(value).__name__} is not allowed in an expression")
        if not is_usable(value):
            raise self.error(node, "the number is too large")
        return literal(value)

    def _name(self, node: ast.Name) -> Typed:
        name = node.id
        if name in _WORDS:
            return literal(_WORDS[name])
        if self._per_row:
            return self._column(node, name)
        if name in self._scope.broken:
            raise BrokenNameError(f"'{name}' is not usable")
        if name in self._scope.measures:
            self.uses.measures.add(name)
            return Typed(pl.col(name), self._scope.measures[name])
        if name in self._scope.columns:
            message = f"'{name}' is a column and has a value per row"
            raise self.error(node, message, self._how_to_aggregate(name))
        raise self._unknown(node, name, f"unknown name '{name}'", [*self._scope.measures])

    def _column(self, node: ast.Name, name: str) -> Typed:
        kind = self._scope.columns.get(name)
        if kind is None:
            if name in self._scope.measures:
                message = f"'{name}' is a measure; only columns of '{self._scope.table}' have rows"
                raise self.error(node, message)
            message = f"unknown column '{name}' in table '{self._scope.table}'"
            raise self._unknown(node, name, message, [*self._scope.columns])
        (self.uses.handled if self._reads_null else self.uses.columns).add(name)
        source = name if kind is Kind.TEXT else None
        return Typed(pl.col(name), kind, per_row=True, source=source)

    def _unknown(
        self, node: ast.Name, name: str, message: str, known: list[str]
    ) -> ExpressionError:
        if name in self._scope.declared:
            help_text = "measures are computed in order: write it above"
            return self.error(node, f"the measure '{name}' comes later", help_text)
        if name in AGGREGATES or name in SCALARS:
            return self.error(node, f"'{name}' is a function", f"call it: {name}(...)")
        return self.error(node, message, self._where_it_is(name) or did_you_mean(name, known))

    def _where_it_is(self, name: str) -> str | None:
        """Return how to write a name that has a prefix: of a parameter, the unit or the trace."""
        scope = self._scope
        places = {"params": scope.params, str(scope.unit): scope.unit_columns, "trace": scope.facts}
        return next(
            (f"write {base}.{name}" for base, names in places.items() if name in names), None
        )

    def _how_to_aggregate(self, name: str) -> str:
        if not self._aggregates:
            return "make a measure of it, then use the measure"
        if self._scope.columns[name] is Kind.NUMBER:
            return f"aggregate it: sum({name}), max({name}), median({name}), ..."
        return f"aggregate it: first({name}), n_unique({name}), count({name}), ..."

    def _dotted(self, node: ast.Attribute) -> Typed:
        if not isinstance(node.value, ast.Name):
            raise self.error(node, "only params.x, trace.x and columns of the unit have a dot")
        base, name = node.value.id, node.attr
        if base == "params":
            return self._param(node, name)
        if base == "trace":
            fact = self._scope.facts.get(name)
            if fact is None:
                message = f"unknown column '{name}' in table 'trace'"
                raise self.error(node, message, did_you_mean(name, self._scope.facts))
            if not self._reads_null:
                self.uses.facts.add(name)
            return fact
        return self._unit_column(node, base, name)

    def _param(self, node: ast.Attribute, name: str) -> Typed:
        value = self._param_value(node, name)
        if isinstance(value, list):
            raise self.error(node, "a list can only stand behind 'in'")
        return literal(value)

    def _param_value(self, node: ast.Attribute, name: str) -> Value:
        if f"params.{name}" in self._scope.broken:
            raise BrokenNameError(f"'params.{name}' is not usable")
        if name not in self._scope.params:
            message = f"unknown parameter '{name}'"
            raise self.error(node, message, did_you_mean(name, self._scope.params))
        return self._scope.params[name]

    def _unit_column(self, node: ast.Attribute, base: str, name: str) -> Typed:
        unit = self._scope.unit
        if base != unit:
            right = unit or "trace"
            if base in UNIT_WORDS:
                message = f"the rule is judged per {right}, so there is no '{base}.{name}'"
                raise self.error(node, message, f"write {right}.{name}")
            raise self.error(node, f"unknown name '{base}.{name}'", f"known: params, trace, {unit}")
        if name not in self._scope.unit_columns:
            message = f"a {unit} has no column '{name}'"
            raise self.error(node, message, did_you_mean(name, self._scope.unit_columns))
        if not self._reads_null:
            self.uses.unit.add(name)
        if self._per_row:
            self._scope.row_unit_columns.add(name)
        kind = self._scope.unit_columns[name]
        return Typed(pl.col(f"{unit}.{name}"), kind, per_row=self._per_row)

    def _bool_op(self, node: ast.BoolOp) -> Typed:
        word = "and" if isinstance(node.op, ast.And) else "or"
        parts = [self._typed(part, Kind.FLAG, f"'{word}'") for part in node.values]
        combine = operator.and_ if word == "and" else operator.or_
        expr = parts[0].expr
        for part in parts[1:]:
            expr = combine(expr, part.expr)
        return _result(expr, Kind.FLAG, parts)

    def _unary(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.Not):
            part = self._typed(node.operand, Kind.FLAG, "'not'")
            return _result(~part.expr, Kind.FLAG, [part])
        if isinstance(node.op, ast.Invert):
            raise self.error(node, "'~' is not allowed in an expression", "write 'not'")
        part = self._typed(node.operand, Kind.NUMBER, "a sign")
        if isinstance(node.op, ast.UAdd):
            return part
        if isinstance(part.constant, int | float):
            return literal(-part.constant)
        return _result(-part.expr, Kind.NUMBER, [part])

    def _arithmetic(self, node: ast.BinOp) -> Typed:
        if type(node.op) not in _ARITHMETIC:
            name = "**" if isinstance(node.op, ast.Pow) else type(node.op).__name__
            raise self.error(node, f"'{name}' is not allowed in an expression")
        sign, build = _ARITHMETIC[type(node.op)]
        left = self._typed(node.left, Kind.NUMBER, f"'{sign}'")
        right = self._typed(node.right, Kind.NUMBER, f"'{sign}'")
        return _result(build(left.expr, right.expr), Kind.NUMBER, [left, right])

    def _compare(self, node: ast.Compare) -> Typed:
        operands = [node.left, *node.comparators]
        parts = [
            self._comparison(left, op, right)
            for left, op, right in zip(operands, node.ops, node.comparators, strict=False)
        ]
        expr = parts[0].expr
        for part in parts[1:]:
            expr = expr & part.expr
        return _result(expr, Kind.FLAG, parts)

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Typed:
        if isinstance(op, ast.In | ast.NotIn):
            return self._membership(left, right, negated=isinstance(op, ast.NotIn))
        if type(op) not in _COMPARISONS:
            raise self.error(right, "'is' is not allowed in an expression", "use == or is_null()")
        sign, build = _COMPARISONS[type(op)]
        one, other = self.compile(left), self.compile(right)
        if Kind.NULL in (one.kind, other.kind):
            message = "a comparison with null is always unknown"
            raise self.error(right, message, "use is_null(...)")
        if one.kind is not other.kind:
            message = f"'{sign}' compares {one.kind.value} with {other.kind.value}"
            raise self.error(right, message)
        if one.kind is Kind.FLAG and sign not in ("==", "!="):
            raise self.error(right, f"'{sign}' cannot order true and false")
        return _result(build(one.expr, other.expr), Kind.FLAG, [one, other])

    def _membership(self, left: ast.expr, right: ast.expr, *, negated: bool) -> Typed:
        values = self._list(right)
        if values is None:
            return self._part_of(left, right, negated=negated)
        one = self.compile(left)
        for value in values:
            if kind_of_value(value) is not one.kind:
                message = f"'in' looks for {one.kind.value} among values of another kind"
                raise self.error(right, message)
        if not values:
            raise self.error(right, "the list is empty")
        found = is_among(one.expr, values)
        return _result(~found if negated else found, Kind.FLAG, [one])

    def _part_of(self, left: ast.expr, right: ast.expr, *, negated: bool) -> Typed:
        """Compile ``'part' in text``."""
        part = self._typed(left, Kind.TEXT, "'in' before text")
        text = self._typed(right, Kind.TEXT, "'in'")
        if not isinstance(part.constant, str):
            raise self.error(left, "must be a constant", "write 'part' in column")
        found = self._on_distinct(text, text.expr.str.contains(part.constant, literal=True))
        return Typed(~found if negated else found, Kind.FLAG, per_row=text.per_row)

    def _list(self, node: ast.expr) -> list[Scalar] | None:
        """Return the constants of a list, or of a parameter that is one."""
        if isinstance(node, ast.List | ast.Tuple):
            values = [self.compile(item).constant for item in node.elts]
            if any(value is None for value in values):
                raise self.error(node, "a list may hold only constants")
            return [value for value in values if value is not None]
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "params"
        ):
            value = self._param_value(node, node.attr)
            return value if isinstance(value, list) else None
        return None

    def _if_else(self, node: ast.IfExp) -> Typed:
        condition = self._typed(node.test, Kind.FLAG, "'if'")
        then, otherwise = self.compile(node.body), self.compile(node.orelse)
        kind = self._common_kind(node, [then, otherwise])
        expr = choose(condition.expr, then.expr, otherwise.expr)
        return _result(expr, kind, [condition, then, otherwise])

    def _common_kind(self, node: ast.expr, parts: list[Typed]) -> Kind:
        kinds = {part.kind for part in parts} - {Kind.NULL}
        if len(kinds) > 1:
            words = " and ".join(sorted(kind.value for kind in kinds))
            raise self.error(node, f"mixes {words}")
        return kinds.pop() if kinds else Kind.NULL

    def _call(self, node: ast.Call) -> Typed:
        if not isinstance(node.func, ast.Name):
            raise self.error(node.func, "only the functions of the rule language can be called")
        name = node.func.id
        if node.keywords:
            raise self.error(node, f"{name}() takes no named arguments")
        if name in AGGREGATES:
            return self._aggregate(node, name)
        if name not in SCALARS:
            known = [*SCALARS, *AGGREGATES]
            raise self.error(node.func, f"unknown function '{name}'", did_you_mean(name, known))
        return self._scalar(node, name, SCALARS[name])

    def _scalar(self, node: ast.Call, name: str, function: Function) -> Typed:
        self._reads_null += function.reads_null
        arguments = self._arguments(node, name, function)
        self._reads_null -= function.reads_null
        typed = self._build(node, function, arguments)
        if name in TEXT_TESTS:
            expr = self._on_distinct(typed, typed.expr)
            return Typed(expr, typed.kind, per_row=typed.per_row)
        return typed

    def _aggregate(self, node: ast.Call, name: str) -> Typed:
        if self._per_row:
            inside = "inside another aggregate" if self._aggregates else "where single rows are"
            raise self.error(node, f"the aggregate {name}() cannot stand {inside}")
        if not self._aggregates:
            message = f"the aggregate {name}() can only stand in 'measure'"
            raise self.error(node, message, "make a measure of it, then use the measure")
        self._per_row = True
        arguments = self._arguments(node, name, AGGREGATES[name])
        self._per_row = False
        if arguments and not arguments[0].per_row:
            raise self.error(node.args[0], f"{name}() needs a column of '{self._scope.table}'")
        typed = self._build(node, AGGREGATES[name], arguments)
        column = self._scope.add_aggregate(ast.dump(node), typed.expr)
        if name == "count" and arguments and arguments[0].kind is Kind.FLAG:
            self.uses.counted[column] = arguments[0].expr
        return Typed(pl.col(column), typed.kind)

    def _arguments(self, node: ast.Call, name: str, function: Function) -> list[Typed]:
        takes = function.takes
        most = len(node.args) if function.variadic else len(takes)
        if not function.required <= len(node.args) <= most:
            raise self.error(node, f"{name}() takes {_how_many(function)}")
        arguments = []
        for index, argument in enumerate(node.args):
            kind = takes[min(index, len(takes) - 1)]
            what = f"{name}()"
            typed = self.compile(argument) if kind is None else self._typed(argument, kind, what)
            if index in function.constant and typed.constant is None:
                raise self.error(argument, f"argument {index + 1} of {name}() must be a constant")
            arguments.append(typed)
        return arguments

    def _build(self, node: ast.Call, function: Function, arguments: list[Typed]) -> Typed:
        kind = function.gives
        if kind is None:
            free = [
                typed
                for index, typed in enumerate(arguments)
                if function.takes[min(index, len(function.takes) - 1)] is None
            ]
            kind = self._common_kind(node, free)
        try:
            expr = function.build(arguments)
        except ValueError as error:
            raise self.error(node.args[-1], str(error)) from None
        return _result(expr, kind, arguments)

    def _on_distinct(self, typed: Typed, expr: pl.Expr) -> pl.Expr:
        """Return a test of one text column in a form that is evaluated on its distinct values."""
        if typed.source is None:
            return expr
        return self._scope.add_text_test(typed.source, expr)


def _how_many(function: Function) -> str:
    if function.variadic:
        return f"{function.required} or more arguments"
    most = len(function.takes)
    count = str(most) if most == function.required else f"{function.required} to {most}"
    return f"{count} argument{'' if count == '1' else 's'}"


def _result(expr: pl.Expr, kind: Kind, parts: list[Typed]) -> Typed:
    """Return an expression made of others: per row if one of them is."""
    sources = {part.source for part in parts if part.constant is None}
    source = sources.pop() if len(sources) == 1 else None
    return Typed(expr, kind, per_row=any(part.per_row for part in parts), source=source)
