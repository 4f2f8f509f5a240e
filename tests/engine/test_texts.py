"""Conditions on texts, evaluated on the distinct texts of a column, mean what they say."""

from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyze.cli import where_option
from analyze.cli.where_option import rows_where
from analyze.engine.evaluate import holding, rows_in_units
from analyze.engine.expressions import Compiled, Place, compile_expression
from analyze.engine.per import per_of
from analyze.engine.program import Program
from analyze.engine.scope import Scope, TraceFacts, Uses, column_kinds
from analyze.engine.values import Kind, Typed
from analyze.engine.written_tables import WrittenTables
from analyze.errors import AnalyzeError
from analyze.tables.catalogue import FORWARDS, TABLES

if TYPE_CHECKING:
    from analyze.tables.build import Trace

KERNELS = TABLES["kernels"]
TEXTS: st.SearchStrategy[str] = st.deferred(
    lambda: (
        st.sampled_from(["name", "source", "'a'", "'none'"])
        | TEXTS.map("lower({})".format)
        | st.builds("coalesce({}, {})".format, TEXTS, TEXTS)
        | st.builds("when({}, {}, {})".format, FLAGS, TEXTS, TEXTS)
        | st.builds("({} if {} else {})".format, TEXTS, FLAGS, TEXTS)
    )
)
NUMBERS: st.SearchStrategy[str] = st.deferred(
    lambda: (
        st.sampled_from(["dur_us", "1"])
        | TEXTS.map("length({})".format)
        | st.builds("coalesce({}, {})".format, NUMBERS, NUMBERS)
    )
)
FLAGS: st.SearchStrategy[str] = st.deferred(
    lambda: (
        st.builds("{}({}, 'a')".format, st.sampled_from(["contains", "startswith"]), TEXTS)
        | st.builds("{} {} {}".format, st.just("'a'"), st.sampled_from(["in", "not in"]), TEXTS)
        | st.builds("{} {} {}".format, TEXTS, st.sampled_from(["==", "!="]), TEXTS)
        | TEXTS.map("({} in ['a', 'none'])".format)
        | st.builds("{} > {}".format, NUMBERS, NUMBERS)
        | (TEXTS | NUMBERS | FLAGS).map("is_null({})".format)
        | FLAGS.map("(not {})".format)
        | st.builds("({} {} {})".format, FLAGS, st.sampled_from(["and", "or"]), FLAGS)
    )
).filter(lambda text: len(text) < 300)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from([None, "a", "Ba", "b"]),
            "source": st.sampled_from([None, "none", "a.py:1"]),
            "dur_us": st.sampled_from([None, 0.5, 3.0]),
        }
    ),
    min_size=1,
    max_size=5,
)


class PlainScope(Scope):
    """A scope in which every test is made on every row."""

    def add_text_test(self, column: str, expr: pl.Expr) -> pl.Expr:
        del column
        return expr


class WrittenTrace(WrittenTables):
    """Written tables where a trace is wanted."""

    def table(self, name: str) -> pl.DataFrame:
        missing = pl.DataFrame([{}], schema=TABLES[name].schema)
        return missing if name == "trace" else super().table(name)


def written(rows: list[dict[str, Any]]) -> WrittenTrace:
    frame = pl.DataFrame(rows, schema_overrides=KERNELS.schema)
    missing = [pl.lit(None, t).alias(n) for n, t in KERNELS.schema.items() if n not in frame]
    frame = frame.with_columns(missing)
    return WrittenTrace(KERNELS, frame, units=pl.DataFrame(schema=FORWARDS.schema))


def kernels_scope(kind: type[Scope]) -> Scope:
    return kind("kernels", column_kinds("kernels"), None, {}, TraceFacts({}), {})


def in_a_rule(expression: str, tables: WrittenTrace) -> list[bool]:
    scope = kernels_scope(Scope)
    compiled = compile_expression(expression, scope, Place.ROWS, Kind.FLAG)
    program = Program(KERNELS, per_of("trace", KERNELS), scope, where=compiled.expr)
    rows = rows_in_units(program, tables, tables.units(program.per))
    return holding(program.where, rows).fill_null(value=False).to_list()


def on_every_row(expression: str, tables: WrittenTrace) -> list[bool]:
    expr = compile_expression(expression, kernels_scope(PlainScope), Place.ROWS, Kind.FLAG).expr
    return holding(expr, tables.table("kernels")).fill_null(value=False).to_list()


def test_where_that_polars_refuses_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Compiled(Typed(pl.col("nowhere"), Kind.FLAG), Uses())
    compiled = (refused, kernels_scope(Scope))
    monkeypatch.setattr(where_option, "_compile", lambda *_: compiled)
    with pytest.raises(AnalyzeError, match=r"--where: 'dur_us > 1' cannot be evaluated: .*nowhere"):
        rows_where(cast("Trace", written([{"dur_us": 1.0}])), "kernels", "dur_us > 1")


@given(FLAGS, ROWS)
@example("contains(coalesce(source, 'none'), 'none')", [{"source": None}, {"source": "a"}])
@example("contains('b' if is_null(source) else source, 'b')", [{"source": None}])
@example("contains('b' if source == 'a' and false else 'c', 'c')", [{"source": None}])
@example("'a' in ('a' if 'b' in name else name)", [{"name": "b"}, {"name": None}])
@example("1 > coalesce(0, dur_us)", [{"dur_us": None}, {"dur_us": 3.0}])
@settings(max_examples=100, deadline=None)
def test_a_condition_means_the_same_in_a_rule_in_where_and_row_by_row(
    expression: str, rows: list[dict[str, Any]]
) -> None:
    tables = written(rows)
    expected = on_every_row(expression, tables)
    assert in_a_rule(expression, tables) == expected
    trace = cast("Trace", tables)
    assert rows_where(trace, "kernels", expression).kept.to_list() == expected
