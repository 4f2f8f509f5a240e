from collections.abc import Callable
from pathlib import Path

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.mutation import Threshold, nudged, thresholds, unnoticed_thresholds
from analyze.engine.rule import Rule
from analyze.engine.rule_tests import Samples, run_rule_tests
from analyze.tables.build import Trace, load_trace

LoadText = Callable[[str], Rule]

RULE = """\
from: kernels
where:
  dur_us: {gt: params.shortest}
  any: [{bytes: 7}, {not: {bytes: {lte: KiB(2)}}}, {expr: bytes < 3}]
params: {shortest: 10, most: 4, strict: true, names: [a, b], word: x}
measure: {n: count(), far: n + 100}
expect: n <= params.most and n < 50
severity: [{level: error, when: n > 20}, {level: warning}]
tests:
"""


def unnoticed(rule: Rule) -> dict[str, tuple[Threshold, ...]]:
    found = unnoticed_thresholds([rule], Samples())
    return {item.threshold: item.nudges for item in found}


def rows(count: int, dur_us: int = 99) -> str:
    return "rows: [" + ", ".join([f"{{dur_us: {dur_us}, forward: 0}}"] * count) + "]"


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (25, [38, 16]),
        (1, [2, 0]),
        (2, [3, 1]),
        (-4, [-6, -2]),
        (0, [1]),
        (0.0, [1]),
        (0.5, [0.75, 0.5 / 1.5]),
        (1048576.0, [1572864, 699050]),
        (True, [False]),
    ],
)
def test_a_threshold_is_nudged_both_ways(value: Threshold, others: list[Threshold]) -> None:
    assert nudged(value) == others


def test_what_counts_as_a_threshold(load_text: LoadText) -> None:
    assert thresholds(load_text(RULE.removesuffix("tests:\n"))) == [
        "params.shortest",
        "params.most",
        "params.strict",
        "expect",
        "severity.when",
        "where.any.bytes",
        "where.any.not.bytes.lte",
        "where.any.expr",
    ]


def test_a_threshold_that_tests_straddle_is_noticed(load_text: LoadText) -> None:
    rule = "from: kernels\nparams: {most: 4}\nmeasure: {n: count()}\nexpect: n <= params.most\n"
    silent = f"  - {{name: a, {rows(4)}, expect: {{state: pass}}}}\n"
    fires = f"  - {{name: b, {rows(5)}, expect: {{state: mismatch}}}}\n"
    assert unnoticed(load_text(f"{rule}tests:\n{silent}{fires}")) == {}
    assert unnoticed(load_text(f"{rule}tests:\n{fires}")) == {"params.most": (2,)}
    assert unnoticed(load_text(f"{rule}tests:\n{silent}")) == {"params.most": (6,)}
    assert unnoticed(load_text(rule)) == {"params.most": (6, 2)}


def test_only_passing_tests_that_use_the_threshold_notice(load_text: LoadText) -> None:
    rule = "from: kernels\nparams: {most: 4}\nmeasure: {n: count()}\nexpect: n <= params.most\n"
    for test in (
        f"  - {{name: a, {rows(4)}, todo: true, expect: {{state: mismatch}}}}\n",
        f"  - {{name: a, {rows(4)}, expect: {{state: mismatch}}}}\n",
        f"  - {{name: a, {rows(4)}, params: {{most: 4}}, expect: {{state: pass}}}}\n",
    ):
        assert unnoticed(load_text(f"{rule}tests:\n{test}")) == {"params.most": (6, 2)}


def test_numbers_in_expressions_and_matchers(load_text: LoadText) -> None:
    rule = (
        "from: kernels\nwhere: {dur_us: {gt: 10}}\nmeasure: {n: count()}\n"
        "expect: n == 0  or n > 40\nseverity: [{level: error, when: n > 3}, {level: info}]\n"
        "tests:\n"
    )
    few = f"  - {{name: a, {rows(1, 11)}, expect: {{severity: info}}}}\n"
    none = f"  - {{name: b, {rows(1, 5)}, expect: {{state: pass}}}}\n"
    found = unnoticed_thresholds([load_text(rule + few + none)], Samples())
    assert [(item.threshold, item.value, item.nudges) for item in found] == [
        ("expect", 40, (60, 26)),
        ("severity.when", 3, (5, 2)),
        ("where.dur_us.gt", 10, (6,)),
    ]
    expect = found[0].where
    assert expect.source[expect.column - 1 :][: expect.length] == "40"


def test_samples_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(path: Path) -> Trace:
        read.append(path.name)
        return load_trace(path)

    monkeypatch.setattr("analyze.engine.rule_tests.load_trace", counted)
    rules = [rule for rule in load_rules() if rule.code in ("COPY101", "ATTN101")]
    samples = Samples()
    run_rule_tests(rules, samples)
    unnoticed_thresholds(rules, samples)
    assert read
    assert len(read) == len(set(read))
