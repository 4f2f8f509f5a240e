from collections.abc import Callable

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.replay import replay
from analyze.engine.rule import Rule
from analyze.engine.rule_tests import RuleTestOutcome, run_rule_tests

LoadText = Callable[[str], Rule]

RULE = """\
from: copies
where: {copy_kind: DtoD}
params: {most: 0}
measure: {n: count(), us: sum(dur_us)}
expect: n <= params.most
message: "{n:int} copies"
tests:
"""

EVENTS = """
    events:
      - {cat: user_annotation, name: attn_fwd, ts: 0, dur: 50}
      - {cat: cpu_op, name: "aten::copy_", ts: 1, dur: 20, args: {External id: 1}}
      - {cat: cuda_runtime, name: cudaMemcpyAsync, ts: 2, dur: 5, args: {correlation: 7}}
      - cat: gpu_memcpy
        name: Memcpy DtoD (Device -> Device)
        pid: 0
        tid: 7
        ts: 30
        dur: 8
        args: {correlation: 7, bytes: 4096, device: 0, stream: 7}
"""


def outcome(load_text: LoadText, test: str) -> RuleTestOutcome:
    return run_rule_tests([load_text(RULE + test)])[0]


def test_the_tests_of_all_built_in_rules_pass() -> None:
    outcomes = run_rule_tests(load_rules())
    failed = [problem.render() for item in outcomes if item.failed for problem in item.problems]
    assert not failed, "\n".join(failed)
    assert {item.code for item in outcomes} >= {"COPY101", "OCC101"}


def test_a_sample_rows_and_events_are_inputs(load_text: LoadText) -> None:
    test = (
        "  - {name: a, trace: synthetic-naive, expect: {state: mismatch, measures: {n: 1}}}\n"
        "  - {name: b, rows: [{copy_kind: DtoD, forward: 3}], expect: {state: mismatch}}\n"
        "  - {name: c, rows: [], forwards: [{index: 0}], expect: {state: pass}}\n"
        "  - name: d" + EVENTS + "    expect: {state: mismatch, measures: {n: 1, us: 8}}\n"
    )
    outcomes = run_rule_tests([load_text(RULE + test)])
    assert [(item.name, item.status) for item in outcomes] == [
        ("a", "passed"),
        ("b", "passed"),
        ("c", "passed"),
        ("d", "passed"),
    ]


def test_events_are_repeated_as_separate_work(load_text: LoadText) -> None:
    result = outcome(
        load_text,
        "  - name: d" + EVENTS + "    repeat: 5\n    every: us(100)\n"
        "    params: {most: 1}\n    expect: {state: pass}\n",
    )
    assert result.status == "passed"
    events = [
        {"name": "ProfilerStep#3", "ts": 1, "id": 4, "args": {"correlation": 5, "x": 1}},
        {"ph": "M", "name": "process_name", "pid": 9},
    ]
    first, _, second, other = replay(events, 2, 100.0)
    assert first == {"ph": "X", "pid": 1, "tid": 1, **events[0]}
    assert (second["name"], second["ts"], second["id"]) == ("ProfilerStep#4", 101.0, 10)
    assert second["args"] == {"correlation": 11, "x": 1}
    assert other == {"tid": 1, **events[1]}


def test_a_known_gap_is_not_a_failure_until_it_passes(load_text: LoadText) -> None:
    gap = outcome(
        load_text, "  - {name: a, trace: synthetic-naive, todo: true, expect: {state: pass}}\n"
    )
    assert (gap.status, gap.failed) == ("known gap", False)
    closed = outcome(
        load_text, "  - {name: a, trace: synthetic-naive, todo: true, expect: {state: mismatch}}\n"
    )
    assert (closed.status, closed.failed) == ("unexpected pass", True)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("trace: synthetic-naive, expect: {state: pass}", "the state is mismatch, not pass"),
        ("trace: cpu-naive, expect: {state: pass}", "not_applicable, not pass: no GPU work"),
        ("trace: synthetic-naive, expect: {severity: error}", "the severity is warning, not error"),
        ("trace: synthetic-naive, expect: {measures: {n: 2}}", "n is 1, not 2"),
        ("trace: synthetic-naive, expect: {measures: {m: 2}}", "no measure 'm'"),
        ("trace: synthetic-naive, expect: {message_contains: [two]}", "does not contain 'two'"),
        ("trace: synthetic-naive-inplace, expect: {severity: error}", "there is no finding"),
        ("trace: synthetic-naife, expect: {}", "did you mean 'synthetic-naive'?"),
        ("rows: [{copykind: DtoD}], expect: {}", "did you mean 'copy_kind'?"),
        ("rows: [{bytes: many}], expect: {}", "'bytes' cannot hold 'many'"),
        ("rows: [{bytes: true}], expect: {}", "'bytes' cannot hold True"),
        ("rows: [{bytes: 99999999999999999999}], expect: {}", "'bytes' cannot hold 9999"),
        ("rows: [{dur_us: .inf}], expect: {}", "'dur_us' cannot hold inf"),
        ("rows: [{name: 3}], expect: {}", "'name' cannot hold 3"),
        ("rows: [], forwards: [{indx: 0}], expect: {}", "did you mean 'index'?"),
        ("rows: [], facts: {venndor: amd}, expect: {}", "did you mean 'vendor'?"),
        ("rows: [], params: {mst: 1}, expect: {}", "did you mean 'most'?"),
        ("rows: [], trace: synthetic-naive, expect: {}", "exactly one of trace, rows, events"),
        ("expect: {}", "exactly one of trace, rows, events"),
        ("events: [{name: a}], expect: {}", "the events: "),
        ("events: [{name: a}], repeat: 3, expect: {}", "'repeat' needs 'every'"),
        ("events: [{name: a}], every: soon, expect: {}", "must be a time"),
        ("events: [{name: a}], repeat: 9, every: fortnights(1), expect: {}", "unknown unit"),
    ],
)
def test_a_failing_or_wrong_test_says_where_and_why(
    load_text: LoadText, test: str, message: str
) -> None:
    result = outcome(load_text, f"  - {{name: x, {test}}}\n")
    assert result.status == "failed"
    shown = "\n".join(problem.render() for problem in result.problems)
    assert message in shown
    assert ".yaml:13:" in shown
