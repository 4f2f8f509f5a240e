"""``--where``: keep the rows of a table for which an expression of the rule language holds."""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from analyze.cli.completing import complete_columns
from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.engine.expressions import Compiled
    from analyze.engine.scope import Scope
    from analyze.engine.syntax import ExpressionError
    from analyze.report.condition import Condition
    from analyze.tables.build import Trace

Command = TypeVar("Command", bound=Callable[..., Any])


def where_option(table: str) -> Callable[[Command], Command]:
    """Return the option ``--where`` over a table; the command gets a ``where: str | None``."""
    return click.option(
        "--where",
        metavar="EXPR",
        shell_complete=complete_columns(table),
        help=f"Only rows of the table `{table}` for which this holds, in the language of rules,"
        f' e.g. "{_EXAMPLES.get(table, "dur_us > ms(1)")}". `analyze columns {table}` lists the'
        " columns.",
    )


_EXAMPLES = {
    "gaps": "cause == 'host' and dur_us > 100",
    "kernels": "family == 'gemm' and not tensor_core",
    "ops": "contains(name, 'copy_') and self_us > 10",
}


def check_where(expression: str | None, table: str) -> None:
    """Check an expression before any trace is read.

    Raises:
        AnalyzeError: it is not acceptable; the message has the position and a suggestion.
    """
    if expression is not None:
        _compile(expression, table, {})


def rows_where(trace: "Trace", table: str, expression: str) -> "Condition":
    """Evaluate an expression on the rows of a table or view of the catalogue.

    Args:
        trace: the trace.
        table: name of the table.
        expression: over its columns and ``trace.x``.

    Raises:
        AnalyzeError: the expression is not acceptable, or cannot be evaluated.
    """
    import polars as pl  # noqa: PLC0415

    from analyze.report.condition import Condition  # noqa: PLC0415

    rows = trace.table(table)
    compiled, scope = _compile(expression, table, trace.table("trace").row(0, named=True))
    tests = [test.alias(name) for name, (_, test) in scope.text_tests.items()]
    condition = compiled.expr.cast(pl.Boolean)
    try:
        holds = rows.with_columns(tests).with_columns(holds=condition)["holds"]
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise AnalyzeError(f"--where: {expression!r} cannot be evaluated: {reason}") from None
    return Condition(expression, holds.fill_null(value=False), holds.null_count())


def _compile(expression: str, table: str, facts: dict[str, Any]) -> "tuple[Compiled, Scope]":
    from analyze.engine.expressions import Place, compile_expression  # noqa: PLC0415
    from analyze.engine.scope import Scope, TraceFacts, column_kinds  # noqa: PLC0415
    from analyze.engine.syntax import ExpressionError  # noqa: PLC0415
    from analyze.engine.values import Kind  # noqa: PLC0415

    scope = Scope(table, column_kinds(table), None, {}, TraceFacts(facts), {})
    try:
        _check_dots(expression, table)
        return compile_expression(expression, scope, Place.ROWS, Kind.FLAG), scope
    except ExpressionError as error:
        raise AnalyzeError(_in_one_line(expression, error)) from None


def _check_dots(expression: str, table: str) -> None:
    """Explain dots here: there are neither units nor parameters, as in a rule.

    Raises:
        ExpressionError: something else than ``trace.NAME`` has a dot.
    """
    from analyze.engine.syntax import ExpressionError, parse  # noqa: PLC0415

    tree, start = parse(expression)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if node.value.id != "trace":
                message = f"unknown name '{name}'"
                help_text = f"write a column of `{table}`, or trace.NAME"
                raise ExpressionError(message, start + node.col_offset, len(name), help_text)


def _in_one_line(expression: str, error: "ExpressionError") -> str:
    wrong = expression[error.offset : error.offset + error.length].strip()
    place = f"at character {error.offset + 1}" + (f", {wrong!r}" if wrong else "")
    help_text = f"; {error.help}" if error.help else ""
    return f"--where: {error.message} ({place}){help_text}"
