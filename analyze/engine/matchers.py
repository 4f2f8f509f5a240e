"""Matchers: the declarative conditions of ``where`` and ``benign``, compiled to polars.

Unknown never matches: a comparison with null is unknown, unknown survives ``not``, and at the end
only what is known to be true counts.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl

from analyze.engine.document import KeyPath
from analyze.engine.expressions import Place, number_of
from analyze.engine.functions import check_pattern
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.engine.scope import Scope, Uses
from analyze.engine.syntax import ExpressionError
from analyze.engine.values import Kind, Scalar, Value, is_among, is_usable, kind_of_value
from analyze.tables.catalogue import TABLES

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
TEXT_OPERATORS: Mapping[str, Callable[[pl.Expr, str], pl.Expr]] = {
    "regex": lambda text, pattern: text.str.contains(pattern),
    "contains": lambda text, part: text.str.contains(part, literal=True),
    "startswith": lambda text, part: text.str.starts_with(part),
    "endswith": lambda text, part: text.str.ends_with(part),
}
OPERATORS = (*COMPARISONS, "in", "not_in", *TEXT_OPERATORS, "exists")
WORDS = ("all", "any", "not", "use", "expr")

_MAX_MACRO_DEPTH = 10
_PARAM = "params."
_PARAM_NAME = re.compile(r"params\.[A-Za-z_]\w*")


class Macro(NamedTuple):
    """A matcher with a name.

    Attributes:
        tree: the matcher as written.
        reporter: reports problems of the pack file it stands in.
    """

    tree: Any
    reporter: Reporter


@dataclass(frozen=True)
class Shared:
    """What the rules of one pack share.

    Attributes:
        lists: by name, used as ``$name``.
        macros: by name, used as ``use: name``.
    """

    lists: Mapping[str, list[Scalar]] = field(default_factory=dict)
    macros: Mapping[str, Macro] = field(default_factory=dict)

    def beside(self, other: "Shared") -> "Shared":
        """Return these with those of another pack, which give way."""
        return Shared({**other.lists, **self.lists}, {**other.macros, **self.macros})


class Matcher(NamedTuple):
    """A compiled matcher.

    Attributes:
        expr: true, false or null (unknown) per row.
        uses: the names it uses.
    """

    expr: pl.Expr
    uses: Uses


def compile_matcher(
    tree: object, path: KeyPath, scope: Scope, reporter: Reporter, shared: Shared
) -> Matcher:
    """Compile the matcher at ``path``; its problems go to the reporter."""
    compiler = _Compiler(scope, shared)
    expr = compiler.compile(tree, path, reporter)
    return Matcher(expr, compiler.uses)


class _Compiler:
    """One pass over one matcher tree."""

    def __init__(self, scope: Scope, shared: Shared) -> None:
        self._scope = scope
        self._shared = shared
        self._macros: list[str] = []
        self.uses = Uses()

    def compile(self, tree: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        if not isinstance(tree, dict):
            reporter.add(path, "a matcher maps columns to values", "write {column: value}")
            return _true()
        parts = [self._entry(key, value, (*path, key), reporter) for key, value in tree.items()]
        return _combine(parts, operator.and_)

    def _entry(self, key: str, value: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        match key:
            case "all" | "any":
                return self._branches(key, value, path, reporter)
            case "not":
                if value == {}:
                    reporter.add(path, "'not' of everything matches nothing")
                return ~self.compile(value, path, reporter)
            case "use":
                return self._macro(value, path, reporter)
            case "expr":
                return self._expression(value, path, reporter)
        return self._column(key, value, path, reporter)

    def _branches(self, key: str, value: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        if not isinstance(value, list) or not value:
            reporter.add(path, f"'{key}' takes a list of matchers")
            return _true()
        parts = [
            self.compile(branch, (*path, index), reporter) for index, branch in enumerate(value)
        ]
        return _combine(parts, operator.and_ if key == "all" else operator.or_)

    def _macro(self, value: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        names = value if isinstance(value, list) else [value]
        if not names:
            reporter.add(path, "the list is empty")
        return _combine([self._one_macro(name, path, reporter) for name in names], operator.and_)

    def _one_macro(self, name: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        if not isinstance(name, str) or name not in self._shared.macros:
            reporter.unknown(path, "macro", str(name), self._shared.macros)
            return _true()
        if name in self._macros or len(self._macros) >= _MAX_MACRO_DEPTH:
            reporter.add(path, f"the macro '{name}' uses itself")
            return _true()
        self._macros.append(name)
        macro = self._shared.macros[name]
        expr = self.compile(macro.tree, ("macros", name), macro.reporter)
        self._macros.pop()
        return expr

    def _expression(self, value: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        compiled = reporter.expression(path, value, self._scope, Place.ROWS, Kind.FLAG)
        if compiled is None:
            return _true()
        self.uses.add(compiled.uses)
        return compiled.expr

    def _column(self, name: str, value: object, path: KeyPath, reporter: Reporter) -> pl.Expr:
        kind = self._scope.columns.get(name)
        if kind is None:
            known = [*self._scope.columns, *WORDS]
            message = f"unknown column '{name}' in table '{self._scope.table}'"
            reporter.add(path, message, did_you_mean(name, known), key=True)
            return _true()
        test = _Test(self, name, kind, path, reporter)
        if not isinstance(value, dict):
            self.uses.columns.add(name)
            return test.compile("in" if self._is_list(value) else "eq", value, path)
        (self.uses.handled if "exists" in value else self.uses.columns).add(name)
        if not value:
            reporter.add(path, "no operator", f"known: {', '.join(OPERATORS)}")
        parts = [test.compile(op, item, (*path, op)) for op, item in value.items()]
        return _combine(parts, operator.and_)

    def _is_list(self, value: object) -> bool:
        if isinstance(value, str):
            param = self._scope.params.get(value.removeprefix(_PARAM))
            return value.startswith("$") or (value.startswith(_PARAM) and isinstance(param, list))
        return isinstance(value, list)

    def value(self, written: object, kind: Kind, path: KeyPath, reporter: Reporter) -> Value | None:
        """Return a constant: as written, a parameter, a list of the pack, or a quantity."""
        if isinstance(written, list):
            return self._value_list(written, kind, path, reporter)
        if isinstance(written, str):
            return self._text(written, kind, path, reporter)
        if isinstance(written, bool | int | float):
            return written
        help_text = "write {exists: false} for unknown" if written is None else None
        reporter.add(path, "not a value to compare with", help_text)
        return None

    def _text(self, written: str, kind: Kind, path: KeyPath, reporter: Reporter) -> Value | None:
        if written.startswith("$"):
            return self._pack_list(written[1:], path, reporter)
        if written in self._scope.broken:
            return None
        if written.startswith(_PARAM) and written.removeprefix(_PARAM) in self._scope.params:
            return self._scope.params[written.removeprefix(_PARAM)]
        if kind is Kind.NUMBER:
            return self._quantity(written, path, reporter)
        if _PARAM_NAME.fullmatch(written):
            name = written.removeprefix(_PARAM)
            reporter.unknown(path, "parameter", name, self._scope.params)
            return None
        return written

    def _value_list(
        self, written: list[object], kind: Kind, path: KeyPath, reporter: Reporter
    ) -> Value | None:
        values: list[Scalar] = []
        for index, item in enumerate(written):
            value = self.value(item, kind, (*path, index), reporter)
            if isinstance(value, list):
                values += value
            elif value is not None:
                values.append(value)
        if not written:
            reporter.add(path, "the list is empty")
        return values or None

    def _pack_list(self, name: str, path: KeyPath, reporter: Reporter) -> Value | None:
        if name not in self._shared.lists:
            reporter.unknown(
                path, "list", f"${name}", [f"${known}" for known in self._shared.lists]
            )
            return None
        return self._shared.lists[name]

    def _quantity(self, written: str, path: KeyPath, reporter: Reporter) -> Value | None:
        """Evaluate a constant expression such as ``MiB(1)`` or ``params.x * 2``."""
        try:
            return number_of(written, self._scope.params, self._scope.broken)
        except ExpressionError as error:
            reporter.add_in(path, error)
            return None

    def vocabulary(self, column: str) -> tuple[str, ...]:
        """Return the only values a column holds; empty where it may hold any."""
        spec = TABLES[self._scope.table].column(column)
        return spec.values if spec else ()

    def on_distinct(self, column: str, expr: pl.Expr) -> pl.Expr:
        """Return a text test in the form that is evaluated on distinct values."""
        return self._scope.add_text_test(column, expr)


@dataclass(frozen=True)
class _Test:
    """The tests of one column."""

    compiler: _Compiler
    name: str
    kind: Kind
    path: KeyPath
    reporter: Reporter

    def compile(self, op: str, written: object, path: KeyPath) -> pl.Expr:
        if op not in OPERATORS:
            self.reporter.unknown(path, "operator", op, OPERATORS, key=True)
            return _true()
        if op == "exists":
            return self._exists(written, path)
        value = self.compiler.value(written, self.kind, path, self.reporter)
        if value is None or not self._fits(op, value, path):
            return _true()
        column = pl.col(self.name)
        if op in TEXT_OPERATORS:
            return self.compiler.on_distinct(self.name, TEXT_OPERATORS[op](column, str(value)))
        if op in COMPARISONS:
            compared: pl.Expr = COMPARISONS[op](column, value)
            return compared
        found = is_among(column, value if isinstance(value, list) else [value])
        return ~found if op == "not_in" else found

    def _exists(self, written: object, path: KeyPath) -> pl.Expr:
        if not isinstance(written, bool):
            self.reporter.add(path, "'exists' takes true or false")
        column = pl.col(self.name)
        return column.is_not_null() if written else column.is_null()

    def _fits(self, op: str, value: Value, path: KeyPath) -> bool:
        """Check that the column can be compared with the value in this way."""
        message = self._misfit(op, value)
        if message is None and op in _EXACT:
            self._check_vocabulary(value, path)
        if message is None and op == "regex":
            try:
                check_pattern(str(value))
            except ValueError as error:
                message = str(error)
        if message is not None:
            several = op in TEXT_OPERATORS and isinstance(value, list)
            help_text = f"write any: [{{{self.name}: {{{op}: ...}}}}, ...], or use regex"
            self.reporter.add(path, message, help_text if several else None)
        return message is None

    def _check_vocabulary(self, value: Value, path: KeyPath) -> None:
        """Refuse a word that the column never holds: it would match nothing, silently."""
        words = self.compiler.vocabulary(self.name)
        for item in _each(value):
            if words and item not in words:
                self.reporter.unknown(path, f"value of '{self.name}'", str(item), words)

    def _misfit(self, op: str, value: Value) -> str | None:
        if isinstance(value, list) and op not in ("in", "not_in"):
            return f"'{op}' takes one value, not a list"
        wrong = [item for item in _each(value) if kind_of_value(item) is not self.kind]
        if wrong:
            kind = kind_of_value(wrong[0])
            return f"'{self.name}' holds {self.kind.value}, but this is {kind.value}"
        if not all(is_usable(item) for item in _each(value)):
            return "the number is too large"
        wanted = kind_needed(op)
        if wanted is not None and self.kind is not wanted:
            return f"'{op}' needs {wanted.value}, but '{self.name}' holds {self.kind.value}"
        return f"'{op}' needs some text" if value == "" and op in TEXT_OPERATORS else None


def kind_needed(op: str) -> Kind | None:
    """Return the kind of column that an operator needs; None where it fits any."""
    if op in TEXT_OPERATORS:
        return Kind.TEXT
    return Kind.NUMBER if op in ("lt", "lte", "gt", "gte") else None


_EXACT = ("eq", "ne", "in", "not_in")


def _each(value: Value) -> Iterator[Scalar]:
    if isinstance(value, list):
        yield from value
    else:
        yield value


def _combine(parts: list[pl.Expr], build: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> pl.Expr:
    if not parts:
        return _true()
    expr = parts[0]
    for part in parts[1:]:
        expr = build(expr, part)
    return expr


def _true() -> pl.Expr:
    return pl.lit(value=True)
