import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analyze.engine.data import Tables, TraceTables
from analyze.engine.explain import Explanation, Funnel, comment_beside, document, explain
from analyze.engine.loading import load_rules
from analyze.engine.model import Expected, RuleTest
from analyze.engine.rule import Rule
from analyze.engine.run import run_rule
from analyze.engine.wording import in_words
from analyze.engine.written_tables import write_tables
from analyze.engine.yaml_file import parse_yaml
from analyze.errors import AnalyzeError
from analyze.report.explain_text import render_explanation
from analyze.tables.build import load_trace
from tests.conftest import ROOT, TRACES_VARIABLE

LoadText = Callable[[str], Rule]

RULE = """\
from: kernels
where:
  dur_us: {gt: 10, lte: params.longest}
  all:
    - any: [{family: gemm}, {tensor_core: true}]
    - not: {precision: [fp64, fp8]}
  expr: bytes > 0 or is_null(bytes)
params: {longest: us(100)}
measure: {n: count(), us: sum(dur_us), what: first(family)}
expect: n == 0
message: "{n:int} in {us:us}"
benign: [{when: {family: gemm}, because: meant}]
uncertain: [{when: n > 5, because: many}]
"""

ROWS: list[dict[str, Any]] = [
    {"dur_us": 20, "family": "gemm", "precision": "bf16", "forward": 0},
    {"dur_us": 30, "family": "gemm", "precision": "bf16", "forward": 1},
    {"dur_us": 30, "family": "gemm", "precision": "bf16"},
    {"dur_us": 40, "family": "gemm", "precision": "fp64", "forward": 0},
    {"dur_us": 40, "family": "gemm", "forward": 0},
    {"dur_us": 40, "family": "softmax", "precision": "bf16", "forward": 0},
    {"dur_us": 40, "family": "softmax", "tensor_core": False, "forward": 0},
    {"dur_us": 5, "family": "gemm", "precision": "bf16", "forward": 0},
    {"dur_us": 500, "family": "gemm", "precision": "bf16", "forward": 0},
    {"family": "gemm", "precision": "bf16", "forward": 0},
]


@pytest.fixture(scope="module")
def rules() -> list[Rule]:
    return load_rules()


def written(rule: Rule, rows: list[dict[str, Any]], **more: Any) -> Tables:
    test = RuleTest(name="x", rows=rows, expect=Expected(state="pass"), **more)
    return write_tables(rule.compile(), test)


def test_the_way_of_the_rows(load_text: LoadText) -> None:
    rule = load_text(RULE)
    funnel = explain(rule, written(rule, ROWS), "t")
    assert (funnel.rows, funnel.rows_in_units, funnel.units, funnel.unit) == (10, 9, 2, "forward")
    steps = [(step.words, step.alone, step.unknown, step.so_far) for step in funnel.conditions]
    assert steps == [
        ("dur_us > 10", 7, 1, 7),
        ("dur_us <= 100 (params.longest)", 7, 1, 6),
        ("family is gemm or tensor_core is true", 7, 1, 4),
        ("not (precision is fp64 or fp8)", 6, 2, 2),
        ("bytes > 0 or is_null(bytes)", 9, 0, 2),
    ]
    assert funnel.matched == 2


def test_measures_and_verdicts(load_text: LoadText) -> None:
    rule = load_text(RULE)
    funnel = explain(rule, written(rule, ROWS), "t")
    (group,) = funnel.groups
    assert (group.group, group.holds, group.fails, group.unknown) == ({}, 0, 2, 0)
    shown = [(m.name, m.format, m.lowest, m.middle, m.highest) for m in group.measures]
    assert shown == [
        ("n", "int", 1, 1, 1),
        ("us", "us", 20, 25, 30),
        ("what", "", None, "gemm", None),
    ]
    assert [(v.kind, v.when, v.rows, v.of_rows) for v in funnel.verdicts] == [
        ("benign", "family is gemm", 2, 2),
        ("uncertain", "n > 5", None, 2),
    ]
    assert funnel.state == "benign"
    assert funnel.findings[0].because == "meant"


def test_groups_that_fail_come_first(load_text: LoadText) -> None:
    rule = load_text(
        "from: kernels\ngroup_by: [family]\nmeasure: {us: sum(dur_us)}\nexpect: us < 35\n"
    )
    funnel = explain(rule, written(rule, ROWS[:6]), "t")
    assert [(g.group["family"], g.holds, g.fails) for g in funnel.groups] == [
        ("gemm", 1, 1),
        ("softmax", 1, 1),
    ]
    funnel = explain(rule, written(rule, [{**ROWS[0], "family": "norm"}, *ROWS[:6]]), "t")
    assert [g.group["family"] for g in funnel.groups] == ["gemm", "softmax", "norm"]


def conclusion(rule: Rule, tables: Tables) -> str:
    text = render_explanation(Explanation(document(rule), explain(rule, tables, "t")))
    return text.rpartition("\n\n")[2].replace("\n", " ").strip()


def test_the_answer_in_a_sentence(load_text: LoadText) -> None:
    rule = load_text(RULE)
    cases = [
        (ROWS[1:2], "TEST101: benign, info, 1 finding"),
        (ROWS[7:8], "TEST101: pass, because no row matches: nothing is left after 'dur_us > 10'"),
        (ROWS[6:7], "TEST101: pass, because no row matches: nothing is left after 'family is gemm"),
        (
            [{**ROWS[2], "forward": None}],
            "TEST101: pass, because no row matches: none belongs to a forward",
        ),
    ]
    for rows, sentence in cases:
        tables = written(rule, rows, forwards=[{"index": 0}, {"index": 1}])
        assert conclusion(rule, tables).startswith(sentence)
    harmless = load_text("from: kernels\nmeasure: {n: count()}\nexpect: n < 9\n")
    assert conclusion(harmless, written(harmless, ROWS)) == (
        "TEST101: pass, because what it expects holds in every forward"
    )
    needy = load_text(
        "from: kernels\nmeasure: {n: count()}\nexpect: n < 9\n"
        "requires: [{that: trace.vendor == 'amd', else: AMD only}]"
    )
    tables = written(needy, ROWS, facts={"vendor": "nvidia"})
    assert conclusion(needy, tables) == "TEST101: not applicable, because AMD only"


def test_a_rule_that_fails_is_explained_as_far_as_it_goes(
    load_text: LoadText, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = load_text("from: kernels\nmeasure: {n: count()}\nexpect: n < 9\n")
    tables = written(rule, ROWS)

    def fail(*_: Any) -> None:
        message = "boom"
        raise ZeroDivisionError(message)

    monkeypatch.setattr("analyze.engine.run.evaluate", fail)
    funnel = explain(rule, tables, "t")
    assert (funnel.state, funnel.reason) == ("error", "ZeroDivisionError: boom")
    assert "could not be evaluated: ZeroDivisionError: boom" in conclusion(rule, tables)


def test_matchers_in_words(load_text: LoadText, tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_text(
        "version: 1\npack: p\nlists: {some: [gemm, norm, conv]}\n"
        "macros: {big: {dur_us: {gte: 1000}}}\n"
    )
    rule = load_text("from: kernels\nwhere: {family: $some}\nparams: {most: MiB(8)}\n")
    for matcher, words in (
        ({}, "every row"),
        ({"name": {"contains": "x", "exists": True}}, "name contains 'x' and name is known"),
        ({"family": "$some"}, "family is gemm, norm or conv ($some)"),
        ({"bytes": {"gt": "params.most"}}, "bytes > 8388608 (params.most)"),
        ({"use": "big"}, "big (dur_us >= 1000)"),
        ({"not": {"any": [{"family": "norm"}, {"op": {"exists": False}}]}},
         "not (family is norm or op is unknown)"),
        ({"any": [{"family": "norm", "precision": "fp32"}, {"expr": "dur_us > 1"}]},
         "(family is norm and precision is fp32) or dur_us > 1"),
        ({"family": "norm", "any": [{"op": "x"}, {"op": {"exists": False}}]},
         "family is norm and (op is x or op is unknown)"),
        ({"expr": "dur_us > 1 or is_null(dur_us)", "op": "x"},
         "(dur_us > 1 or is_null(dur_us)) and op is x"),
        ({"device": {"not_in": list(range(12))}},
         "device is not 0, 1, 2, 3, 4, 5, 6, 7 or 4 more"),
    ):  # fmt: skip
        assert in_words(matcher, rule.params, rule.shared) == words


COMMENTED = """\
params:
  # Above the first,
  # in two lines.
  one: 1
  two: MiB(2)  # behind
               # and below
  three: 3
# of another key
  # not of four

  four: "x # y"  # why
flow: {five: 5}  # of the flow
six:
  - 6 # an item
"""


@pytest.mark.parametrize(
    ("path", "comment"),
    [
        (("params", "one"), "Above the first, in two lines."),
        (("params", "two"), "behind and below"),
        (("params", "three"), ""),
        (("params", "four"), "why"),
        (("flow", "five"), "of the flow"),
        (("params", "absent"), ""),
    ],
)
def test_the_comment_beside_a_threshold(path: tuple[str, ...], comment: str) -> None:
    assert comment_beside(parse_yaml(COMMENTED, "x.yaml"), path) == comment


def test_the_documentation_names_everything(rules: list[Rule]) -> None:
    (rule,) = (rule for rule in rules if rule.code == "COPY101")
    documented = document(rule.with_param("min_bytes", "MiB(8)", "--set"))
    first, second = documented.thresholds
    assert (first.value, first.written, first.changed_by) == (8 << 20, "MiB(1)", "--set")
    assert "1024 x 512" in first.comment
    assert second.changed_by is None
    assert documented.where == ("copy_kind is DtoD",)
    assert documented.severity == (
        "error when share >= pct(15)",
        "info when share < params.min_share",
        "warning",
    )
    assert {test.state for test in documented.tests} >= {"mismatch", "pass", "not_applicable"}
    text = render_explanation(Explanation(documented))
    assert (
        text.index("\n  rule ") < text.index("\nTests, which") < text.index("50 bytes stay quiet")
    )
    assert "\n  not applicable  a CPU trace cannot answer\n" in text
    assert "min_bytes = 8388608, set by --set (the rule has MiB(1)); one copied" in text


def test_with_a_trace_the_answer_comes_last(rules: list[Rule], samples: Path) -> None:
    """Names of tests answer nothing: with a trace they are counted, not listed."""
    rule = next(rule for rule in rules if rule.code == "COPY101")
    path = samples / "synthetic-naive.json.gz"
    funnel = explain(rule, TraceTables(load_trace(path)), "t.json")
    text = render_explanation(Explanation(document(rule), funnel))
    places = [text.index(words) for words in (
        "\n  expected ", "\n  measures ", "\n  rule ", "\nIn t.json: mismatch\n", "\n  rows ",
        "\n  per forward ", "\n  found ", "\nCOPY101: mismatch, error, 1 finding",
    )]  # fmt: skip
    assert places == sorted(places)
    assert f"hidden-memcpy.yaml, {len(rule.model.tests)} tests In t.json" in " ".join(text.split())
    assert "50 bytes stay quiet" not in text


FIX = """\
from: kernels
group_by: [family]
measure:
  n: count()
  us: sum(dur_us)
  spread: max(dur_us) - min(dur_us)
  longer: when(us > 1e3, us, null)
  most: max(bytes)
  share: us / forward.gpu_busy_us
  twice: us * 2
  squared: us * us
  per_byte: us / most
  same: most / most
  parallel: forward.gpu_busy_us if us > 0 else 0
  what: first(op_chain)
expect: n == 0
message: "seen"
fix: "[?First {what}. ?]Do it, {{so}}.[? {longer:us} {n:goes|go} there.?]"
"""


def test_advice_is_told_without_the_marks_of_templates(load_text: LoadText) -> None:
    text = render_explanation(Explanation(document(load_text(FIX))))
    assert "\n  do        Do it, {so}.\n  where so  First <what>.\n" in text
    assert "\n  where so  <longer> go there.\n" in text


def test_measures_have_the_units_of_what_they_are_made_of(load_text: LoadText) -> None:
    rule = load_text(FIX)
    funnel = explain(rule, written(rule, ROWS), "t")
    formats = {measure.name: measure.format for measure in funnel.groups[0].measures}
    assert formats == {
        "n": "int", "us": "us", "spread": "us", "longer": "us", "most": "bytes", "share": "pct",
        "twice": "us", "squared": "", "per_byte": "", "same": "", "parallel": "us", "what": "",
    }  # fmt: skip


def test_a_long_text_does_not_stretch_the_numbers(load_text: LoadText) -> None:
    rule = load_text(FIX)
    chain = " > ".join(["aten::to"] * 30)
    rows = [{**ROWS[0], "op_chain": chain}, {**ROWS[1]}]
    text = render_explanation(Explanation(document(rule), explain(rule, written(rule, rows), "t")))
    lines = text.splitlines()
    heading = next(line for line in lines if "lowest" in line)
    assert len(heading.rstrip()) < 50
    start = next(number for number, line in enumerate(lines) if line.startswith("  what "))
    told = " ".join(" ".join(lines[start:]).partition("  expects")[0].split())
    assert told == f"what {chain} (unknown in 1)"


EVIL = "\x1b[2J[bold]x[/bar]"


def test_names_are_printed_as_they_are(load_text: LoadText) -> None:
    rule = load_text(
        "from: kernels\ngroup_by: [name]\nmeasure: {n: count(), who: first(name)}\n"
        "expect: n == 0\nmessage: 'seen {name}'\n"
    )
    tables = written(rule, [{"name": EVIL, "forward": 0}])
    text = render_explanation(Explanation(document(rule), explain(rule, tables, EVIL)), color=True)
    assert "\x1b[2J" not in text
    assert text.count("\\x1b[2J[bold]x[/bar]") >= 3


def traces() -> Iterator[Path]:
    yield from sorted((ROOT / "sample_traces").glob("*.json.gz"))
    folder = os.environ.get(TRACES_VARIABLE)
    if folder:
        files = (path for path in Path(folder).glob("*/*.json*") if path.stat().st_size < 5 << 20)
        yield from sorted(files)


@pytest.mark.parametrize("path", list(traces()), ids=lambda path: path.name)
def test_the_funnel_agrees_with_the_verdict(path: Path, rules: list[Rule]) -> None:
    try:
        trace = load_trace(path)
    except AnalyzeError:
        pytest.skip("not a trace")
    if trace.is_empty:
        pytest.skip("an empty trace")
    tables = TraceTables(trace)
    for rule in rules:
        funnel = explain(rule, tables, path.name)
        check_funnel(rule, tables, funnel)
        explanation = Explanation(document(rule), funnel)
        assert json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        assert f"\n{rule.code}: " in render_explanation(explanation)


def check_funnel(rule: Rule, tables: Tables, funnel: Funnel) -> None:
    result = run_rule(rule, tables)
    assert (funnel.state, funnel.findings) == (
        result.state,
        (*result.findings, *result.ignored),
    )
    left = [funnel.rows, funnel.rows_in_units, *(step.so_far for step in funnel.conditions)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == funnel.matched
    for step in funnel.conditions:
        assert step.so_far <= step.alone
        assert step.alone + step.unknown <= funnel.rows_in_units
    if rule.model.expect is not None and funnel.group_count <= len(funnel.groups):
        if funnel.state in ("mismatch", "benign", "intermittent"):
            assert sum(group.fails > 0 for group in funnel.groups) == len(funnel.findings)
        for group in funnel.groups:
            assert group.holds + group.fails + group.unknown == funnel.units


def test_more_groups_than_may_be_reported_are_explained_where_most_hold(
    load_text: LoadText,
) -> None:
    rule = load_text(
        "from: kernels\ngroup_by: [start_us]\nmeasure: {us: sum(dur_us)}\nexpect: us < 9\n"
    )
    rows: list[dict[str, Any]] = [
        {"start_us": start, "dur_us": 1, "forward": 0} for start in range(600)
    ]
    rows[7]["dur_us"] = 10
    funnel = explain(rule, written(rule, rows), "t")
    assert (funnel.state, funnel.group_count) == ("mismatch", 600)
    assert funnel.groups[0].group == {"start_us": 7}
