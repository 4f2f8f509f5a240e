"""Parameters of rules: their values in the file and on the command line (``--set``)."""

import ast
import re
from collections.abc import Mapping

from analyze.engine.expressions import number_of
from analyze.engine.functions import UNITS
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.engine.syntax import ExpressionError, parse, spelt_quantity
from analyze.engine.values import Kind, Scalar, Value, is_usable, kind_of_value
from analyze.errors import AnalyzeError

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_QUANTITY_NODES = (ast.Constant, ast.Call, ast.Name, ast.BinOp, ast.UnaryOp)
_MANY: Mapping[Kind, str] = {Kind.NUMBER: "numbers", Kind.TEXT: "texts", Kind.FLAG: "flags"}
_WORDS: Mapping[str, bool] = {"true": True, "false": False}


def resolve_params(written: Mapping[str, Value], reporter: Reporter) -> dict[str, Value]:
    """Return the values of a rule's parameters; quantities such as ``MiB(1)`` become numbers."""
    values: dict[str, Value] = {}
    for name, value in written.items():
        try:
            values[name] = resolve_param(value)
        except ExpressionError as error:
            reporter.add_in(("params", name), error)
            values[name] = value
    return values


def resolve_param(value: Value) -> Value:
    """Return the value of one parameter as written.

    Raises:
        ExpressionError: it looks like a quantity, but is not one.
    """
    if isinstance(value, list):
        return [_resolve_scalar(item) for item in value]
    return _resolve_scalar(value)


def _resolve_scalar(value: Scalar) -> Scalar:
    if not is_usable(value):
        raise ExpressionError("the number is too large")
    if not isinstance(value, str):
        return value
    quantity = quantity_of(value)
    if quantity is not None:
        return quantity
    meant = spelt_quantity(value)
    if meant is not None:
        raise ExpressionError(f"'{value}' is text, not a number", help_text=f"write {meant}")
    return value


def quantity_of(text: str) -> float | None:
    """Return the number that a text such as ``MiB(1)`` means; None when it is just text.

    Raises:
        ExpressionError: it looks like a quantity, but the unit or the number is wrong.
    """
    try:
        tree, start = parse(text)
    except ExpressionError:
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    names = {node for node in nodes if isinstance(node, ast.Name)}
    is_text = bool(names - {call.func for call in calls})
    if not calls or is_text or not all(isinstance(node, _QUANTITY_NODES) for node in nodes):
        return None
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id not in UNITS:
            name = call.func.id
            message = f"unknown unit '{name}'"
            offset = start + call.col_offset
            raise ExpressionError(message, offset, len(name), did_you_mean(name, UNITS))
    return number_of(text)


def replaced_param(params: Mapping[str, Value], name: str, written: Value) -> dict[str, Value]:
    """Return parameters with one of them replaced by a value from a pack or a configuration.

    Args:
        params: the values so far.
        name: which one.
        written: its new value; quantities such as ``MiB(1)`` are text.

    Raises:
        ExpressionError: there is no such parameter, or the value is of another kind.
    """
    if name not in params:
        known = did_you_mean(name, params) or "the rule has no parameters"
        raise ExpressionError(f"unknown parameter '{name}'", help_text=known)
    value = resolve_param(written)
    if _shape(value) != _shape(params[name]):
        kind, was = _in_words(value), _in_words(params[name])
        raise ExpressionError(f"'{name}' is {was}, but this is {kind}")
    return {**params, name: value}


def _shape(value: Value) -> tuple[bool, set[Kind]]:
    items = value if isinstance(value, list) else [value]
    return isinstance(value, list), {kind_of_value(item) for item in items}


def _in_words(value: Value) -> str:
    if not isinstance(value, list):
        return kind_of_value(value).value
    kinds = dict.fromkeys(_MANY[kind_of_value(item)] for item in value)
    return f"a list of {' and '.join(kinds)}" if kinds else "an empty list"


def parse_setting(text: str) -> tuple[str, str, str]:
    """Split ``CODE.name=value``.

    Raises:
        AnalyzeError: it has another form.
    """
    match = re.fullmatch(r"\s*([A-Za-z0-9_-]+)\.([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*", text)
    if match is None:
        message = f"--set {text}: write CODE.name=value, e.g. COPY101.min_bytes=MiB(2)"
        raise AnalyzeError(message)
    return match[1], match[2], match[3]


def changed_params(
    params: Mapping[str, Value], name: str, written: str, setting: str
) -> dict[str, Value]:
    """Return parameters with one of them set from the command line.

    Args:
        params: the values so far.
        name: which one.
        written: its new value as text; a list is written with commas.
        setting: the whole setting, for messages.

    Raises:
        AnalyzeError: there is no such parameter, or the value is of another kind than the default.
    """
    if name not in params:
        known = did_you_mean(name, params) or "the rule has no parameters"
        raise AnalyzeError(f"--set {setting}: no parameter '{name}'; {known}")
    default = params[name]
    value = _value_like(default, written, setting)
    return {**params, name: value}


def _value_like(default: Value, written: str, setting: str) -> Value:
    if isinstance(default, list):
        like = default[0] if default else ""
        return [_scalar_like(like, part.strip(), setting) for part in written.split(",")]
    return _scalar_like(default, written, setting)


def _scalar_like(default: Scalar, written: str, setting: str) -> Scalar:
    kind = kind_of_value(default)
    if kind is Kind.TEXT:
        return written
    value: Scalar | None = _WORDS.get(written) if kind is Kind.FLAG else _number(written)
    if value is None:
        meant = spelt_quantity(written)
        like = f"write {meant}" if meant else f"like {default}"
        raise AnalyzeError(f"--set {setting}: the value must be {kind.value}, {like}")
    return value


def _number(written: str) -> float | None:
    if _NUMBER.fullmatch(written):
        number = float(written)
        if not is_usable(number):
            return None
        return int(number) if number.is_integer() else number
    try:
        return quantity_of(written)
    except ExpressionError:
        return None
