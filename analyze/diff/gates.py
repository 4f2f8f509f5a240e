"""``--fail-if``: conditions on what changed, in the language of rules.

A name is AFTER's amount, ``before.NAME`` is BEFORE's; in a condition about one amount, plain
``before`` is BEFORE's of the same one.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analyze.diff.quantities import QUANTITIES
from analyze.engine.expressions import Compiled, Place, compile_expression
from analyze.engine.problems import did_you_mean
from analyze.engine.scope import Scope
from analyze.engine.syntax import ExpressionError, parse
from analyze.engine.values import Kind
from analyze.errors import AnalyzeError

BEFORE = "before"
_NAMES = tuple(quantity.name for quantity in QUANTITIES)

Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Gate:
    """A condition under which two traces fail.

    Attributes:
        text: as written.
        compiled: the same, to be evaluated.
        used_after, used_before: the amounts it needs of either trace.
    """

    text: str
    compiled: Compiled
    used_after: tuple[str, ...]
    used_before: tuple[str, ...]

    @property
    def amounts(self) -> tuple[str, ...]:
        """The amounts that it is about."""
        return tuple(dict.fromkeys([*self.used_after, *self.used_before]))


@dataclass(frozen=True)
class Outcome:
    """What became of a gate.

    Attributes:
        gate: the gate.
        fails: whether its condition holds; None where that cannot be told.
        unknown: the amounts that are unknown, as a gate writes them.
    """

    gate: Gate
    fails: bool | None
    unknown: tuple[str, ...]


def compile_gate(text: str) -> Gate:
    """Compile a condition.

    Raises:
        AnalyzeError: it is not acceptable; the message says where and what to write.
    """
    scope = Scope(
        table="diff",
        columns={},
        unit=BEFORE,
        unit_columns=dict.fromkeys(_NAMES, Kind.NUMBER),
        facts={},
        params={},
        measures=dict.fromkeys((*_NAMES, BEFORE), Kind.NUMBER),
    )
    try:
        _check_dots(text)
        compiled = compile_expression(text, scope, Place.FORMULA, Kind.FLAG)
        after = sorted(compiled.uses.measures - {BEFORE})
        before = sorted({*compiled.uses.unit, *_plain_before(text, compiled, after)})
    except ExpressionError as error:
        raise AnalyzeError(f"--fail-if: {_in_one_line(text, error)}") from None
    return Gate(text, compiled, tuple(after), tuple(before))


def _check_dots(text: str) -> None:
    """Explain dots here: a gate knows no parameters and no facts of a trace.

    Raises:
        ExpressionError: something else than ``before.NAME`` has a dot.
    """
    tree, start = parse(text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        base, name = node.value.id, node.attr
        place = start + node.col_offset
        length = len(base) + 1 + len(name)
        if base != BEFORE:
            help_text = f"write before.{base}" if base in _NAMES else "write before.NAME"
            raise ExpressionError(f"unknown name '{base}.{name}'", place, length, help_text)
        if name not in _NAMES:
            message = f"unknown amount '{name}'"
            raise ExpressionError(message, place, length, did_you_mean(name, _NAMES))


def _plain_before(text: str, compiled: Compiled, after: list[str]) -> list[str]:
    """Return the amount that ``before`` without a name stands for, if it is used.

    Raises:
        ExpressionError: it might stand for several, or for none.
    """
    if BEFORE not in compiled.uses.measures:
        return []
    if len(after) != 1:
        place = max(text.find(BEFORE), 0)
        message = f"'before' alone needs exactly one amount, but this has {len(after)}"
        raise ExpressionError(message, place, len(BEFORE), "write before.NAME")
    return after


def _in_one_line(text: str, error: ExpressionError) -> str:
    help_text = f"; {error.help}" if error.help else ""
    return f"{text!r}, character {error.offset + 1}: {error.message}{help_text}"


def evaluate(gate: Gate, before: Values, after: Values) -> Outcome:
    """Tell whether a gate fails; what is unknown in it is never a pass.

    Args:
        gate: the gate.
        before: all quantities of BEFORE, null where unknown.
        after: the same of AFTER.
    """
    row: dict[str, float | None] = {
        **after,
        **{f"{BEFORE}.{name}": value for name, value in before.items()},
        BEFORE: before[gate.used_after[0]] if len(gate.used_after) == 1 else None,
    }
    columns = {name: [value] for name, value in row.items()}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(row, pl.Float64))
    fails = frame.select(fails=gate.compiled.expr.cast(pl.Boolean))["fails"][0]
    unknown = [name for name in gate.used_after if after[name] is None]
    unknown += [f"{BEFORE}.{name}" for name in gate.used_before if before[name] is None]
    return Outcome(gate, fails, tuple(unknown))
