from typing import Any

import polars as pl
import pytest

from analyze.engine.document import Document
from analyze.engine.matchers import Macro, Shared, compile_matcher
from analyze.engine.reporting import Reporter
from analyze.engine.scope import Scope, Uses
from analyze.engine.values import Kind, Scalar
from analyze.engine.yaml_file import parse_yaml

COLUMNS = {
    "name": Kind.TEXT,
    "family": Kind.TEXT,
    "dur_us": Kind.NUMBER,
    "tensor_core": Kind.FLAG,
}
ROWS = pl.DataFrame(
    {
        "name": ["sgemm", "softmax", "flash", None],
        "family": ["gemm", "softmax", "attn.fwd", None],
        "dur_us": [10.0, 20.0, 30.0, None],
        "tensor_core": [False, None, True, None],
    }
)
LISTS: dict[str, list[Scalar]] = {"products": ["gemm", "attn.fwd"]}
MACROS = {
    "short": {"dur_us": {"lt": 25}},
    "short_product": {"use": "short", "family": "$products"},
    "ring": {"use": "ring"},
}


def compiled(text: str) -> tuple[list[bool], list[str], Uses]:
    """Return the matching rows, the problems and the uses of a matcher written in YAML."""
    reporter = Reporter(parse_yaml(f"where: {text}", "rule.yaml"))
    params: dict[str, Any] = {"limit": 15, "wanted": ["gemm", "softmax"]}
    scope = Scope("kernels", COLUMNS, "forward", {}, {}, params)
    pack = Reporter(Document("pack.yaml"))
    shared = Shared(LISTS, {name: Macro(tree, pack) for name, tree in MACROS.items()})
    matcher = compile_matcher(reporter.document.data["where"], ("where",), scope, reporter, shared)
    problems = [problem.render() for problem in [*reporter.problems, *pack.problems]]
    tests = [
        ROWS[column].to_frame().select(test.alias(hidden))[hidden]
        for hidden, (column, test) in scope.text_tests.items()
    ]
    kept = ROWS.with_columns(tests).select(matcher.expr.fill_null(value=False).alias("kept"))
    matches = kept["kept"].to_list()
    return (matches if kept.height > 1 else matches * ROWS.height), problems, matcher.uses


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("{}", [0, 1, 2, 3]),
        ("{family: gemm}", [0]),
        ("{family: [gemm, softmax]}", [0, 1]),
        ("{family: $products}", [0, 2]),
        ("{family: params.wanted}", [0, 1]),
        ("{family: {in: [gemm]}}", [0]),
        ("{family: {ne: gemm}}", [1, 2]),
        ("{family: {not_in: [gemm, softmax]}}", [2]),
        ("{dur_us: [10, 30]}", [0, 2]),
        ("{dur_us: {not_in: [10]}}", [1, 2]),
        ("{dur_us: {gt: params.limit, lte: 30}}", [1, 2]),
        ("{dur_us: {gte: ns(20000)}}", [1, 2]),
        ("{dur_us: {lt: params.limit * 2}}", [0, 1]),
        ("{tensor_core: false}", [0]),
        ("{tensor_core: {ne: true}}", [0]),
        ("{not: {tensor_core: true}}", [0]),
        ("{tensor_core: {exists: false}}", [1, 3]),
        ("{name: {exists: true}}", [0, 1, 2]),
        ("{name: {regex: '^s'}}", [0, 1]),
        ("{name: {contains: '.'}}", []),
        ("{name: {startswith: so}}", [1]),
        ("{name: {endswith: sh}}", [2]),
        ("{not: {name: {regex: '^s'}}}", [2]),
        ("{any: [{family: gemm}, {dur_us: 30}]}", [0, 2]),
        ("{all: [{family: gemm}, {dur_us: 30}]}", []),
        ("{any: [{tensor_core: true}, {name: softmax}]}", [1, 2]),
        ("{use: short}", [0, 1]),
        ("{use: short_product}", [0]),
        ("{use: [short, short_product]}", [0]),
        ("{expr: dur_us > 15 and name != 'flash'}", [1]),
        ("{family: gemm, expr: dur_us > 15}", []),
    ],
)
def test_what_is_known_to_be_true_matches(text: str, rows: list[int]) -> None:
    matches, problems, _ = compiled(text)
    assert problems == []
    assert [index for index, match in enumerate(matches) if match] == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gemm", "1:8: error: a matcher maps"),
        ("{familie: gemm}", "1:9: error: unknown column 'familie' in table 'kernels'"),
        ("{dur_us: {gtt: 3}}", "1:18: error: unknown operator 'gtt'"),
        ("{dur_us: {}}", "1:17: error: no operator"),
        ("{dur_us: gemm}", "1:17: error: unknown name 'gemm'"),
        ("{dur_us: {gt: MB(1)}}", "1:22: error: unknown function 'MB'"),
        ("{dur_us: {gt: params.limitt}}", "1:22: error: unknown parameter 'limitt'"),
        ("{family: 3}", "1:17: error: 'family' holds text, but this is a number"),
        ("{family: true}", "holds text, but this is true or false"),
        ("{family: null}", "1:17: error: not a value to compare with"),
        ("{family: []}", "the list is empty"),
        ("{family: {gt: x}}", "needs a number"),
        ("{dur_us: {regex: x}}", "unknown name 'x'"),
        ("{tensor_core: {contains: x}}", "'tensor_core' holds true or false, but this is text"),
        ("{name: {regex: '(('}}", "1:23: error: not a regular expression: unclosed group"),
        ("{name: {exists: 1}}", "'exists' takes true or false"),
        ("{family: $productz}", "unknown list '$productz'"),
        ("{use: shortt}", "1:14: error: unknown macro 'shortt'"),
        ("{use: ring}", "the macro 'ring' uses itself"),
        ("{any: {family: gemm}}", "'any' takes a list"),
        ("{not: [1]}", "a matcher maps"),
        ("{expr: dur_us}", "1:15: error: must be true or false"),
        ("{expr: count() > 1}", "cannot stand"),
        ("{family: {eq: [a]}}", "'eq' takes one value"),
        ("{dur_us: {gt: params.limit / 0}}", "1:22: error: the value is unknown"),
        ("{dur_us: {gt: log(0)}}", "1:22: error: the value is unknown"),
        ("{dur_us: {in: [1/0]}}", "1:23: error: the value is unknown"),
    ],
)
def test_mistakes_have_a_position(text: str, message: str) -> None:
    _, problems, _ = compiled(text)
    assert len(problems) == 1
    assert message in problems[0]


def test_a_column_that_is_asked_whether_it_is_known_is_no_need() -> None:
    uses = compiled("{any: [{family: {exists: false}}, {name: x}]}")[2]
    assert (uses.columns, uses.handled) == ({"name"}, {"family"})
    uses = compiled("{expr: 'coalesce(dur_us, 0) > 1 or is_null(name)'}")[2]
    assert (uses.columns, uses.handled) == (set(), {"dur_us", "name"})
