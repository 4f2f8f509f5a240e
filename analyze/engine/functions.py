"""The closed set of functions that expressions of rules may call.

Null is unknown and stays unknown: no function turns it into a value except ``coalesce`` and
``is_null``. Results that do not exist (a logarithm of 0) are null, never infinite.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import polars as pl

from analyze.engine.values import Kind, Typed

Build = Callable[[Sequence[Typed]], pl.Expr]

_NUMBER, _TEXT, _FLAG = Kind.NUMBER, Kind.TEXT, Kind.FLAG
_MAX_DIGITS = 12


@dataclass(frozen=True)
class Function:
    """One function.

    Attributes:
        takes: kind of each argument; None takes any. Of a variadic function the last repeats.
        gives: kind of the result; None is the common kind of the arguments that take any kind.
        build: makes the polars expression.
        required: how many arguments must be given.
        variadic: any number of further arguments.
        constant: positions of arguments that must be constants.
        reads_null: it says something about null, so an unknown argument is no obstacle.
        doc: what it gives, in one line.
        example: a call. Aggregates name columns of ``kernels``; scalars the numbers ``a`` and
            ``b`` and the text ``word``.
    """

    takes: tuple[Kind | None, ...]
    gives: Kind | None
    build: Build
    required: int
    variadic: bool = False
    constant: frozenset[int] = frozenset()
    reads_null: bool = False
    doc: str = field(kw_only=True)
    example: str = field(kw_only=True)


def _known(arguments: Sequence[Typed]) -> pl.Expr:
    return pl.all_horizontal(argument.expr.is_not_null() for argument in arguments)


def _count(arguments: Sequence[Typed]) -> pl.Expr:
    if not arguments:
        return pl.len().cast(pl.Int64)
    counted = arguments[0]
    values = counted.expr.sum() if counted.kind is _FLAG else counted.expr.count()
    return values.cast(pl.Int64)


def _sum(arguments: Sequence[Typed]) -> pl.Expr:
    """Sum the known values; unknown when there are rows and none of them is known."""
    values = arguments[0].expr
    return pl.when((values.count() > 0) | (pl.len() == 0)).then(values.sum())


def _quantile(arguments: Sequence[Typed]) -> pl.Expr:
    share = arguments[1].constant
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        message = "the second argument of quantile() is a share from 0 to 1"
        raise ValueError(message)
    return arguments[0].expr.quantile(float(share), interpolation="linear")


def _round(arguments: Sequence[Typed]) -> pl.Expr:
    digits = arguments[1].constant if len(arguments) > 1 else 0
    if not isinstance(digits, int) or not 0 <= digits <= _MAX_DIGITS:
        message = f"the second argument of round() is a whole number from 0 to {_MAX_DIGITS}"
        raise ValueError(message)
    return arguments[0].expr.round(digits)


def _matches(arguments: Sequence[Typed]) -> pl.Expr:
    pattern = str(arguments[1].constant)
    check_pattern(pattern)
    return arguments[0].expr.str.contains(pattern)


def _when(arguments: Sequence[Typed]) -> pl.Expr:
    return choose(*(argument.expr for argument in arguments))


def _coalesce(arguments: Sequence[Typed]) -> pl.Expr:
    """Return the first known argument; unlike ``pl.coalesce``, constants may stand anywhere."""
    *firsts, last = (argument.expr for argument in arguments)
    return reduce(
        lambda rest, first: pl.when(first.is_not_null()).then(first).otherwise(rest),
        reversed(firsts),
        last,
    )


def _aggregate(
    build: Callable[[pl.Expr], pl.Expr], kind: Kind | None, doc: str, example: str
) -> Function:
    return Function(
        (kind,),
        kind,
        lambda arguments: build(arguments[0].expr),
        required=1,
        doc=doc,
        example=example,
    )


def _scalar(
    build: Callable[[pl.Expr], pl.Expr], takes: Kind, gives: Kind, doc: str, example: str
) -> Function:
    return Function(
        (takes,),
        gives,
        lambda arguments: build(arguments[0].expr),
        required=1,
        doc=doc,
        example=example,
    )


def _text_test(build: Callable[[pl.Expr, pl.Expr], pl.Expr], doc: str, example: str) -> Function:
    return Function(
        (_TEXT, _TEXT),
        _FLAG,
        lambda arguments: build(arguments[0].expr, arguments[1].expr),
        required=2,
        constant=frozenset({1}),
        doc=doc,
        example=example,
    )


def _unit(build: Callable[[pl.Expr], pl.Expr], doc: str, example: str) -> Function:
    return _scalar(build, _NUMBER, _NUMBER, doc, example)


def choose(condition: pl.Expr, then: pl.Expr, otherwise: pl.Expr) -> pl.Expr:
    """Return one of two expressions; unknown when the condition is unknown."""
    return pl.when(condition).then(then).when(condition.is_not_null()).then(otherwise)


def check_pattern(pattern: str) -> None:
    """Check a regular expression.

    Raises:
        ValueError: it is not one, or it would be too large; the text says why.
    """
    if not pattern.isprintable():
        message = "the pattern holds a control character; write it as r'...' to keep backslashes"
        raise ValueError(message)
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        reason = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = next((line for line in reason if line.startswith("error:")), reason[0])
        message = f"not a regular expression: {why.removeprefix('error:').strip()}"
        raise ValueError(message) from None


AGGREGATES = {
    "count": Function(
        (None,),
        _NUMBER,
        _count,
        required=0,
        doc="How many rows; given a value, those that have one; given a condition, those where it"
        " holds: unknown is not counted (ask any() to keep it unknown)",
        example="count(tensor_core == false)",
    ),
    "sum": Function(
        (_NUMBER,),
        _NUMBER,
        _sum,
        required=1,
        doc="Sum of the known values; 0 without rows, unknown where rows have none",
        example="sum(dur_us)",
    ),
    "min": _aggregate(pl.Expr.min, _NUMBER, "Smallest known value", "min(start_us)"),
    "max": _aggregate(pl.Expr.max, _NUMBER, "Largest known value", "max(bytes)"),
    "mean": _aggregate(pl.Expr.mean, _NUMBER, "Mean of the known values", "mean(dur_us)"),
    "median": _aggregate(pl.Expr.median, _NUMBER, "Median of the known values", "median(dur_us)"),
    "quantile": Function(
        (_NUMBER, _NUMBER),
        _NUMBER,
        _quantile,
        required=2,
        constant=frozenset({1}),
        doc="Value below which a share of the known values lies, interpolated",
        example="quantile(dur_us, 0.9)",
    ),
    "std": _aggregate(
        pl.Expr.std, _NUMBER, "Sample standard deviation; needs two known values", "std(dur_us)"
    ),
    "first": _aggregate(
        lambda values: values.first(ignore_nulls=True),
        None,
        "First known value, in the table's order",
        "first(root_op)",
    ),
    "last": _aggregate(
        lambda values: values.last(ignore_nulls=True),
        None,
        "Last known value, in the table's order",
        "last(name)",
    ),
    "n_unique": Function(
        (None,),
        _NUMBER,
        lambda arguments: arguments[0].expr.drop_nulls().n_unique().cast(pl.Int64),
        required=1,
        doc="How many different known values",
        example="n_unique(short_name)",
    ),
    "any": _aggregate(
        lambda values: values.any(ignore_nulls=False),
        _FLAG,
        "Whether a condition holds for at least one row; false without rows",
        "any(dur_us > ms(1))",
    ),
    "all": _aggregate(
        lambda values: values.all(ignore_nulls=False),
        _FLAG,
        "Whether a condition holds for every row; true without rows",
        "all(tensor_core)",
    ),
}
"""Functions over the rows of one unit (and group)."""

UNITS = {
    "ns": _unit(lambda value: value / 1000, "Nanoseconds in microseconds", "ns(500)"),
    "us": _unit(lambda value: value, "Microseconds as they are", "us(10)"),
    "ms": _unit(lambda value: value * 1e3, "Milliseconds in microseconds", "ms(1)"),
    "s": _unit(lambda value: value * 1e6, "Seconds in microseconds", "s(0.5)"),
    "KiB": _unit(lambda value: value * 1024, "Units of 1024 bytes in bytes", "KiB(48)"),
    "MiB": _unit(lambda value: value * 1024**2, "Units of 1024 KiB in bytes", "MiB(1)"),
    "GiB": _unit(lambda value: value * 1024**3, "Units of 1024 MiB in bytes", "GiB(2)"),
    "pct": _unit(lambda value: value / 100, "Percent as a share", "pct(20)"),
}
"""Functions that convert to the units of the tables: microseconds, bytes, shares."""

SCALARS = {
    "abs": _scalar(pl.Expr.abs, _NUMBER, _NUMBER, "Distance from 0", "abs(a - b)"),
    "sqrt": _scalar(
        lambda x: pl.when(x >= 0).then(x.sqrt()),
        _NUMBER,
        _NUMBER,
        "Square root; unknown below 0",
        "sqrt(a)",
    ),
    "log": _scalar(
        lambda x: pl.when(x > 0).then(x.log()),
        _NUMBER,
        _NUMBER,
        "Natural logarithm; unknown at 0 and below",
        "log(a)",
    ),
    "log2": _scalar(
        lambda x: pl.when(x > 0).then(x.log(2)),
        _NUMBER,
        _NUMBER,
        "Logarithm to base 2; unknown at 0 and below",
        "log2(a / b)",
    ),
    "round": Function(
        (_NUMBER, _NUMBER),
        _NUMBER,
        _round,
        required=1,
        constant=frozenset({1}),
        doc="Rounded to a number of digits behind the point, 0 by default",
        example="round(a, 2)",
    ),
    "least": Function(
        (_NUMBER,),
        _NUMBER,
        lambda args: pl.when(_known(args)).then(pl.min_horizontal(a.expr for a in args)),
        required=1,
        variadic=True,
        doc="Smallest of the arguments; unknown when one of them is",
        example="least(a, b)",
    ),
    "greatest": Function(
        (_NUMBER,),
        _NUMBER,
        lambda args: pl.when(_known(args)).then(pl.max_horizontal(a.expr for a in args)),
        required=1,
        variadic=True,
        doc="Largest of the arguments; unknown when one of them is",
        example="greatest(a, 1)",
    ),
    "coalesce": Function(
        (None,),
        None,
        _coalesce,
        required=2,
        variadic=True,
        reads_null=True,
        doc="First argument that is known",
        example="coalesce(a, 0)",
    ),
    "is_null": Function(
        (None,),
        _FLAG,
        lambda args: args[0].expr.is_null(),
        required=1,
        reads_null=True,
        doc="Whether a value is unknown",
        example="is_null(a)",
    ),
    "contains": _text_test(
        lambda text, part: text.str.contains(part, literal=True),
        "Whether a text holds another",
        "contains(word, 'gemm')",
    ),
    "startswith": _text_test(
        lambda text, part: text.str.starts_with(part),
        "Whether a text starts with another",
        "startswith(word, 'aten::')",
    ),
    "endswith": _text_test(
        lambda text, part: text.str.ends_with(part),
        "Whether a text ends with another",
        "endswith(word, '_kernel')",
    ),
    "matches": Function(
        (_TEXT, _TEXT),
        _FLAG,
        _matches,
        required=2,
        constant=frozenset({1}),
        doc="Whether a regular expression is found in a text",
        example=r"matches(word, r'_bf16\b')",
    ),
    "lower": _scalar(
        lambda text: text.str.to_lowercase(), _TEXT, _TEXT, "In lower case", "lower(word)"
    ),
    "length": _scalar(
        lambda text: text.str.len_chars().cast(pl.Int64),
        _TEXT,
        _NUMBER,
        "How many characters",
        "length(word)",
    ),
    "when": Function(
        (_FLAG, None, None),
        None,
        _when,
        required=3,
        doc="The second argument where the first holds, else the third; unknown when it is",
        example="when(a > b, 1, 0)",
    ),
    **UNITS,
}
"""Functions of single values."""

TEXT_TESTS = frozenset({"contains", "startswith", "endswith", "matches"})
"""Functions that are evaluated once per distinct text of a column."""
