from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyze.engine.expressions import Compiled, Place, compile_expression
from analyze.engine.scope import Scope
from analyze.engine.syntax import ExpressionError
from analyze.engine.values import Kind, Typed, literal

COLUMNS = {
    "name": Kind.TEXT,
    "family": Kind.TEXT,
    "dur_us": Kind.NUMBER,
    "bytes": Kind.NUMBER,
    "tensor_core": Kind.FLAG,
}
ROWS = pl.DataFrame(
    {
        "name": ["sgemm", "softmax", None],
        "family": ["gemm", "softmax", None],
        "dur_us": [10.0, 20.0, None],
        "bytes": [None, 4, 6],
        "tensor_core": [True, None, False],
    },
    schema_overrides={"bytes": pl.Int64},
)


def scope(**params: Any) -> Scope:
    facts = {"sm_count": Typed(pl.lit(108), Kind.NUMBER), "variant": literal("math")}
    return Scope("kernels", COLUMNS, "forward", {"gpu_busy_us": Kind.NUMBER}, facts, params)


def rows(text: str, **params: Any) -> list[Any]:
    """Evaluate an expression per row."""
    names = scope(**params)
    compiled = compile_expression(text, names, Place.ROWS)
    tests = [
        ROWS[column].to_frame().select(test.alias(hidden))[hidden]
        for hidden, (column, test) in names.text_tests.items()
    ]
    frame = ROWS.with_columns(tests).with_columns(pl.lit(40.0).alias("forward.gpu_busy_us"))
    return frame.select(compiled.expr.alias("x"))["x"].to_list()


def measure(text: str, frame: pl.DataFrame = ROWS) -> Any:
    """Evaluate a measure over the rows."""
    names = scope()
    compiled = compile_expression(text, names, Place.MEASURE)
    tests = [
        frame[column].to_frame().select(test.alias(hidden))[hidden]
        for hidden, (column, test) in names.text_tests.items()
    ]
    unit = pl.lit(40.0).alias("forward.gpu_busy_us")
    aggregated = frame.with_columns(unit, *tests).select(
        pl.lit(40.0).alias("forward.gpu_busy_us"),
        *(expr.alias(hidden) for hidden, expr in names.aggregates.items()),
    )
    return aggregated.select(compiled.expr.alias("x"))["x"][0]


def fails(text: str, place: Place = Place.MEASURE, **params: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, scope(**params), place)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dur_us > 15", [False, True, None]),
        ("dur_us != 10", [False, True, None]),
        ("not dur_us > 15", [True, False, None]),
        ("5 < dur_us <= 10", [True, False, None]),
        ("family in ['gemm', 'conv']", [True, False, None]),
        ("family not in ('gemm',)", [False, True, None]),
        ("family in params.wanted", [False, True, None]),
        ("'soft' in name", [False, True, None]),
        ("dur_us > 15 or tensor_core", [True, True, None]),
        ("dur_us > 15 and tensor_core", [False, None, False]),
        ("tensor_core == false", [False, None, True]),
        ("is_null(bytes)", [True, False, False]),
        ("coalesce(bytes, 0) + 1", [1, 5, 7]),
        ("1 > coalesce(0, dur_us)", [True, True, True]),
        ("coalesce(null, bytes, 1)", [1, 4, 6]),
        ("dur_us / (dur_us - 10)", [None, 2.0, None]),
        ("dur_us // 0", [None, None, None]),
        ("dur_us % 0", [None, None, None]),
        ("1 if dur_us > 15 else 0", [0, 1, None]),
        ("when(tensor_core, 'tc', 'no')", ["tc", None, "no"]),
        ("greatest(dur_us, bytes)", [None, 20.0, None]),
        ("least(dur_us, 15)", [10.0, 15.0, None]),
        ("matches(name, '^s.*m$')", [True, False, None]),
        ("startswith(name, 's') and endswith(name, 'x')", [False, True, None]),
        ("contains(lower(name), 'gem')", [True, False, None]),
        ("length(name)", [5, 7, None]),
        ("log(dur_us - 10)", [None, pytest.approx(2.302585), None]),
        ("log2(bytes * 2)", [None, 3.0, pytest.approx(3.584962)]),
        ("sqrt(0 - dur_us)", [None, None, None]),
        ("round(dur_us / 3, 1)", [3.3, 6.7, None]),
        ("abs(-dur_us)", [10.0, 20.0, None]),
        ("dur_us > pct(40) * forward.gpu_busy_us", [False, True, None]),
        ("trace.sm_count == 108", [True]),
        ("dur_us >= params.limit", [False, True, None]),
    ],
)
def test_values_per_row_keep_the_unknown_unknown(text: str, expected: list[Any]) -> None:
    assert rows(text, wanted=["softmax"], limit=20) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count()", 3),
        ("count(dur_us)", 2),
        ("count(dur_us > 15)", 1),
        ("sum(dur_us)", 30.0),
        ("min(dur_us)", 10.0),
        ("max(dur_us)", 20.0),
        ("mean(dur_us)", 15.0),
        ("median(bytes)", 5.0),
        ("quantile(dur_us, 0.5)", 15.0),
        ("std(dur_us)", pytest.approx(7.0710678)),
        ("first(bytes)", 4),
        ("last(name)", "softmax"),
        ("n_unique(family)", 2),
        ("any(tensor_core)", True),
        ("all(tensor_core)", False),
        ("any(dur_us > 100)", None),
        ("sum(dur_us) / forward.gpu_busy_us", 0.75),
        ("sum(when(contains(name, 'gemm'), dur_us, 0))", 10.0),
        ("sum(dur_us / forward.gpu_busy_us)", 0.75),
    ],
)
def test_aggregates(text: str, expected: Any) -> None:
    assert measure(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count()", 0),
        ("sum(dur_us)", 0),
        ("n_unique(name)", 0),
        ("any(tensor_core)", False),
        ("all(tensor_core)", True),
        ("max(dur_us)", None),
        ("first(name)", None),
    ],
)
def test_aggregates_of_no_rows(text: str, expected: Any) -> None:
    assert measure(text, ROWS.clear()) == expected


def test_a_sum_of_unknown_values_only_is_unknown() -> None:
    assert measure("sum(bytes)", ROWS.head(1)) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ns(1500)", 1.5),
        ("us(2)", 2),
        ("ms(2)", 2000),
        ("s(2)", 2e6),
        ("KiB(1)", 1024),
        ("MiB(1)", 1024**2),
        ("GiB(1)", 1024**3),
        ("pct(15)", 0.15),
    ],
)
def test_units_convert_to_those_of_the_tables(text: str, value: float) -> None:
    compiled = compile_expression(text, scope())
    assert pl.select(compiled.expr).item() == value


def test_equal_aggregates_are_computed_once_and_text_tests_on_distinct_values() -> None:
    names = scope()
    compile_expression("sum(dur_us) + sum(dur_us)", names, Place.MEASURE)
    assert len(names.aggregates) == 1
    compile_expression("matches(name, 'x') or 'y' in name", names, Place.ROWS)
    assert [column for column, _ in names.text_tests.values()] == ["name", "name"]


@pytest.mark.parametrize(
    ("text", "place", "offset", "length", "message"),
    [
        ("sum(dur_uss)", Place.MEASURE, 4, 7, "unknown column 'dur_uss'"),
        ("summ(dur_us)", Place.MEASURE, 0, 4, "unknown function 'summ'"),
        ("1 + dur_us", Place.MEASURE, 4, 6, "has a value per row"),
        ("  1 + name2", Place.ROWS, 6, 5, "unknown column"),
        ("'é' + dur", Place.ROWS, 0, 3, "needs a number"),
        ("sum(sum(dur_us))", Place.MEASURE, 4, 11, "inside another aggregate"),
        ("count() > 1", Place.ROWS, 0, 7, "cannot stand"),
        ("count() > 1", Place.FORMULA, 0, 7, "can only stand in 'measure'"),
        ("sum(1)", Place.MEASURE, 4, 1, "needs a column"),
        ("dur_us = 1", Place.ROWS, 7, 1, "syntax error"),
        ("dur_us > 'x'", Place.ROWS, 9, 3, "compares a number with text"),
        ("dur_us == null", Place.ROWS, 10, 4, "always unknown"),
        ("name in ['a', 1]", Place.ROWS, 8, 8, "another kind"),
        ("matches(name, name)", Place.ROWS, 14, 4, "must be a constant"),
        ("matches(name, '((')", Place.ROWS, 14, 4, "unclosed group"),
        ("matches(name, '\\bx')", Place.ROWS, 14, 5, "control character"),
        ("matches(name, '((a{1000}){1000}){1000}')", Place.ROWS, 14, 25, "not a regular"),
        ("quantile(dur_us, 2)", Place.MEASURE, 17, 1, "share from 0 to 1"),
        ("when(tensor_core, 1, 'a')", Place.ROWS, 0, 25, "mixes"),
        ("step.cpu_us", Place.MEASURE, 0, 11, "judged per forward"),
        ("forward.gpu_bussy", Place.MEASURE, 0, 17, "has no column"),
        ("trace.smcount", Place.MEASURE, 0, 13, "unknown column 'smcount'"),
        ("params.x", Place.MEASURE, 0, 8, "unknown parameter"),
        ("tensor_core > false", Place.ROWS, 14, 5, "cannot order"),
        ("dur_us is 1", Place.ROWS, 10, 1, "'is' is not allowed"),
        ("sum", Place.MEASURE, 0, 3, "is a function"),
        ("round(dur_us, 99)", Place.ROWS, 14, 2, "whole number"),
        ("abs(dur_us, dur_us)", Place.ROWS, 0, 19, "takes 1 argument"),
    ],
)
def test_mistakes_have_a_position(
    text: str, place: Place, offset: int, length: int, message: str
) -> None:
    error = fails(text, place)
    assert message in error.message
    assert (error.offset, error.length) == (offset, length)


def test_mistakes_suggest_what_was_meant() -> None:
    assert fails("sum(dur_uss)").help == "did you mean 'dur_us'?"
    assert fails("summ(dur_us)").help == "did you mean 'sum'?"
    assert "==" in (fails("dur_us = 1", Place.ROWS).help or "")
    assert fails("step.gpu_busy_us").help == "write forward.gpu_busy_us"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "().__class__.__mro__",
        "dur_us.__class__",
        "params.__class__",
        "forward.gpu_busy_us.real",
        "(lambda: 1)()",
        "[x for x in name]",
        "{1: 2}",
        "f'{dur_us}'",
        "b'x'",
        "dur_us ** 999999999",
        "dur_us << 3",
        "~dur_us",
        "'a' * 999999999",
        "1e999",
        "9" * 400,
        "1j",
        "...",
        "name[0]",
        "count(dur_us=1)",
        "count(*name)",
        "(x := 1)",
        "await name",
        "open('/etc/passwd')",
        "eval('1')",
        "pl.read_csv('x')",
        "1 +" * 300 + "1",
        "(" * 250 + "1" + ")" * 250,
        "not " * 60 + "tensor_core",
        "+".join(["1"] * 201),
        "1" * 1001,
        "",
        "   ",
        "dur_us\x00",
        "dur_us; name",
        "import os",
        "matches(name, 'a' if tensor_core else 'b')",
    ],
)
@pytest.mark.parametrize("place", list(Place))
def test_hostile_text_is_refused(text: str, place: Place) -> None:
    assert fails(text, place, x=1).message


def attempt(text: str, names: Scope, place: Place) -> Compiled | ExpressionError:
    try:
        return compile_expression(text, names, place)
    except ExpressionError as error:
        return error


WORDS = st.sampled_from(
    [
        *("name", "dur_us", "tensor_core", "params.x", "trace.sm_count", "forward.gpu_busy_us"),
        *("sum(", "count(", "matches(", "when(", "quantile(", "coalesce(", "pct(", ")", "(", ","),
        *("+", "-", "*", "/", "//", "%", "**", "<", "==", " in ", " not ", " and ", " or ", " is "),
        *(" if ", " else ", "[", "]", "'a'", "'('", "1", "0", "1e9", "null", "true", ".", "\n"),
    ]
)


@settings(deadline=None, max_examples=500)
@given(
    text=st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=14).map("".join)),
    place=st.sampled_from(list(Place)),
)
@example(text="dur_us / 0 == 1", place=Place.ROWS)
@example(text="-null + abs(null)", place=Place.ROWS)
@example(text="not null", place=Place.FORMULA)
def test_any_text_compiles_and_runs_or_is_an_error_inside_the_text(text: str, place: Place) -> None:
    names = scope(x=1)
    compiled = attempt(text, names, place)
    if isinstance(compiled, ExpressionError):
        assert 0 <= compiled.offset <= len(text)
        assert compiled.length >= 1
        return
    frame = ROWS.with_columns(pl.lit(1.0).alias("forward.gpu_busy_us"))
    frame = frame.with_columns(test.alias(hidden) for hidden, (_, test) in names.text_tests.items())
    if place is not Place.ROWS:
        frame = frame.select(
            pl.lit(1.0).alias("forward.gpu_busy_us"),
            *(expr.alias(hidden) for hidden, expr in names.aggregates.items()),
        )
    frame.select(compiled.expr.alias("x"))
