from collections.abc import Callable

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.replay import replay
from analyze.engine.rule import Rule
from analyze.engine.rule_tests import RuleTestOutcome, missing_tests, run_rule_tests

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
        ("trace: synthetic-naive, expect: {findings: 2}", "there are 1 findings, not 2"),
        ("trace: cpu-naive, expect: {measures: {n: 0}}", "nothing was measured: the state is not_"),
        ("rows: [], forwards: [{index: 0}], expect: {measures: {n: 1}}", "n is 0, not 1"),
        ("rows: [], expect: {}", "the test asserts nothing"),
        ("rows: [], expect: {group: {name: x}}", "the test asserts nothing"),
        ("rows: [], expect: {state: pass, group: {name: x}}", "does not group by 'name'"),
        ("rows: [{forward: 3}], forwards: [{index: 0}], expect: {state: pass}", "forward 3, which"),
        ("trace: synthetic-naive, expect: {message_contains: [two]}", "does not contain 'two'"),
        ("trace: synthetic-naive-inplace, expect: {severity: error}", "there is no finding"),
        ("trace: synthetic-naife, expect: {state: pass}", "did you mean 'synthetic-naive'?"),
        ("rows: [{copykind: DtoD}], expect: {state: pass}", "did you mean 'copy_kind'?"),
        ("rows: [{bytes: many}], expect: {state: pass}", "'bytes' cannot hold 'many'"),
        ("rows: [{bytes: true}], expect: {state: pass}", "'bytes' cannot hold True"),
        (
            "rows: [{bytes: 99999999999999999999}], expect: {state: pass}",
            "'bytes' cannot hold 9999",
        ),
        ("rows: [{dur_us: .inf}], expect: {state: pass}", "'dur_us' cannot hold inf"),
        ("rows: [{name: 3}], expect: {state: pass}", "'name' cannot hold 3"),
        ("rows: [], forwards: [{indx: 0}], expect: {state: pass}", "did you mean 'index'?"),
        ("rows: [], facts: {venndor: amd}, expect: {state: pass}", "did you mean 'vendor'?"),
        ("rows: [], params: {mst: 1}, expect: {state: pass}", "did you mean 'most'?"),
        (
            "rows: [], trace: synthetic-naive, expect: {state: pass}",
            "exactly one of trace, rows, events",
        ),
        ("expect: {state: pass}", "exactly one of trace, rows, events"),
        ("events: [{name: a}], expect: {state: pass}", "the events: "),
        ("events: [{name: a}], repeat: 3, expect: {state: pass}", "'repeat' needs 'every'"),
        ("events: [{name: a}], every: soon, expect: {state: pass}", "must be a time"),
        (
            "events: [{name: a}], repeat: 9, every: fortnights(1), expect: {state: pass}",
            "unknown unit",
        ),
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


GROUPED = """\
from: kernels
group_by: [short_name]
measure: {n: count(), us: sum(dur_us)}
expect: us < 100
severity: [{level: error, when: us > 500}, {level: warning}]
message: "{short_name}: {us:us}"
tests:
"""

KERNELS = """\
    rows:
      - {short_name: slow, dur_us: 200, forward: 0}
      - {short_name: slower, dur_us: 900, forward: 0}
      - {short_name: fast, dur_us: 10, forward: 0}
      - {short_name: fast, dur_us: 30, forward: 1}
      - {short_name: untimed, forward: 1}
"""


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("findings: 3, severity: error, message_contains: slower", None),
        ("group: {short_name: slow}, severity: warning, state: mismatch", None),
        ("group: {short_name: slow}, severity: error", "the severity is warning, not error"),
        ("group: {short_name: fast}, state: pass, measures: {us: 20, n: 1}", None),
        ("group: {short_name: fast}, severity: error", "there is no finding: the state is pass"),
        ("group: {short_name: untimed}, state: pass", "the state is mismatch, not pass"),
        ("group: {short_name: flash}, state: pass", "there is no such group"),
        ("group: {short_nam: slow}, state: pass", "did you mean 'short_name'?"),
    ],
)
def test_a_test_can_look_at_one_group(
    load_text: LoadText, expected: str, message: str | None
) -> None:
    test = f"  - name: x\n{KERNELS}    expect: {{{expected}}}\n".replace(
        "{short_name: untimed,", "{short_name: untimed, dur_us: 100,"
    )
    result = run_rule_tests([load_text(GROUPED + test)])[0]
    shown = "\n".join(problem.render() for problem in result.problems)
    assert (message or "") in shown
    assert result.status == ("failed" if message else "passed"), shown


def test_a_passing_rule_is_measured(load_text: LoadText) -> None:
    rows = "rows: [{copy_kind: DtoD, dur_us: 4, forward: 0}, {forward: 1}], params: {most: 1}"
    expected = "expect: {state: pass, findings: 0, measures: {n: 0.5, us: 2}}"
    assert outcome(load_text, f"  - {{name: x, {rows}, {expected}}}\n").status == "passed"
    grouped = (
        "  - {name: one group, rows: [{short_name: a, dur_us: 7, forward: 0}],"
        " expect: {measures: {us: 7}}}\n"
        "  - {name: two groups, rows: [{short_name: a, forward: 0}, {short_name: b, forward: 0}],"
        " expect: {measures: {n: 1}}}\n"
    )
    one, two = run_rule_tests([load_text(GROUPED + grouped)])
    assert one.status == "passed"
    assert "nothing was measured" in two.problems[0].message


def test_rows_outside_any_unit_stay_outside(load_text: LoadText) -> None:
    rows = "rows: [{copy_kind: DtoD, forward: null}], forwards: [{index: 0}]"
    test = f"  - {{name: x, {rows}, expect: {{state: pass, measures: {{n: 0}}}}}}\n"
    assert outcome(load_text, test).status == "passed"
    # A test whose rows say nothing of units would pass whatever the rule says.
    forgotten = outcome(load_text, test.replace(", forward: null", ""))
    assert forgotten.status == "failed"
    assert "no row says which forward it belongs to" in forgotten.problems[0].message


@pytest.mark.parametrize(
    ("tests", "missing"),
    [
        ([], ["fires", "stays silent (state: pass)"]),
        (["state: mismatch"], ["stays silent (state: pass)"]),
        (["state: pass", "state: not_applicable"], ["fires"]),
        (["findings: 0", "findings: 2"], []),
        (["state: pass", "severity: warning"], []),
        (["state: pass}, todo: true, x: {", "state: mismatch"], ["stays silent (state: pass)"]),
    ],
)
def test_what_the_tests_of_a_rule_do_not_show(
    load_text: LoadText, tests: list[str], missing: list[str]
) -> None:
    written = "".join(
        f"  - {{name: x, rows: [], expect: {{{expected}}}}}\n".replace(", x: {}", "")
        for expected in tests
    )
    rule = load_text(RULE.removesuffix("tests:\n") + (f"tests:\n{written}" if tests else ""))
    assert [problem.message for problem in missing_tests(rule)] == [
        f"TEST101 has no test in which it {what}" for what in missing
    ]
