import dataclasses
from pathlib import Path

import pytest

from analyze.cli.rule_index import index_rules
from analyze.engine.loading import apply_settings, configured, load_rules
from analyze.engine.problems import InvalidRulesError
from analyze.engine.values import Scalar
from analyze.errors import AnalyzeError, RuleError
from tests.engine.loaded import load_rule

GOOD = """\
version: 1
code: MINE101
name: mine
title: Mine
guess: it holds
from: kernels
params: {limit: 3, wanted: [gemm], on: true, word: math, size: MiB(1)}
measure: {n: count()}
expect: n < params.limit
message: "{n:int}"
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def problems(path: Path) -> str:
    with pytest.raises(InvalidRulesError) as caught:
        load_rules([path], builtin=False)
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_the_built_in_rules_load_from_the_checkout() -> None:
    rules = load_rules()
    codes = [rule.code for rule in rules]
    assert {"COPY101", "OCC101"} <= set(codes)
    assert codes == sorted(codes)
    copy = next(rule for rule in rules if rule.code == "COPY101")
    assert (copy.category, copy.pack) == ("copies", "builtin")
    assert copy.params["min_bytes"] == 1 << 20


def test_files_and_folders_are_loaded_beside_the_built_in_rules(tmp_path: Path) -> None:
    file = write(tmp_path, "cat/mine.yaml", GOOD)
    for path in (file, tmp_path, str(tmp_path)):
        codes = [rule.code for rule in load_rules([path])]
        assert {"MINE101", "COPY101"} <= set(codes)
    rule = load_rules([tmp_path, file], builtin=False)[0]
    assert (rule.category, rule.pack, rule.file) == ("cat", tmp_path.name, str(file))


def test_hidden_copies_are_no_rules(tmp_path: Path) -> None:
    write(tmp_path, ".pack/mine.yaml", GOOD)
    write(tmp_path, ".pack/.ipynb_checkpoints/mine-checkpoint.yaml", GOOD)
    write(tmp_path, ".pack/.mine.yaml", GOOD)
    assert [rule.code for rule in load_rules([tmp_path / ".pack"], builtin=False)] == ["MINE101"]
    indexed = index_rules([tmp_path / ".pack"], isolated=True)
    assert [rule.name for rule in indexed if rule.code == "MINE101"] == ["mine"]
    (tmp_path / ".pack/mine.yaml").unlink()
    assert "MINE101" not in {rule.code for rule in index_rules([tmp_path], isolated=True)}


def test_a_pack_shares_lists_and_macros(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pack.yaml",
        "version: 1\npack: ours\nlists: {products: [gemm]}\n"
        "macros: {product: {family: $products}}\n",
    )
    file = write(tmp_path, "a/b.yaml", GOOD + "where: {use: product}\n")
    for path in (file, tmp_path):
        assert load_rules([path], builtin=False)[0].pack == "ours"


def test_a_mistake_in_a_macro_is_shown_in_the_pack_file(tmp_path: Path) -> None:
    write(tmp_path, "pack.yaml", "version: 1\npack: ours\nmacros: {product: {familie: gemm}}\n")
    write(tmp_path, "a/b.yaml", GOOD + "where: {use: product}\n")
    assert "pack.yaml:3:20: error: unknown column 'familie'" in problems(tmp_path)


def test_a_missing_path_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such rule file"):
        load_rules([tmp_path / "none"], builtin=False)
    with pytest.raises(RuleError):
        load_rules([tmp_path / ("x" * 5000)], builtin=False)


def test_a_code_is_used_once(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", GOOD)
    write(tmp_path, "b.yaml", GOOD)
    text = problems(tmp_path)
    assert "b.yaml:2:7: error: the code MINE101 is already used by" in text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("code: MINE101", "code: mine"),
        ("name: mine", "name: Mine"),
        ("from: kernels", "from: kernel"),
        ("message:", "massage:"),
        ("expect: n <", "expect: m <"),
        ("expect: n < params.limit", "expect: n"),
        ('"{n:int}"', '"{m:int}"'),
        ("version: 1", "version: 2"),
        ("version: 1\n", ""),
        ("guess: it holds\n", ""),
        ("guess: it holds", "guess: 3"),
        ("measure: {n: count()}", "measure: {n: [1]}"),
        ("measure: {n: count()}", "measure: {n: count(), params: count()}"),
        ("from: kernels", "from: regions\nper: forward"),
        ("from: kernels", "from: regions\nper: call"),
        ("from: kernels", "from: kernels\nper: forwards"),
        ("from: kernels", "from: kernels\nquorum: 2"),
        ("from: kernels", "from: kernels\nseverity: fatal"),
        ("from: kernels", "from: kernels\nseverity: [{level: error, when: n > 3}]"),
        ("from: kernels", "from: kernels\nseverity: [{level: error}, {level: info}]"),
        ("from: kernels", "from: kernels\ngroup_by: [nam]"),
        ("from: kernels", "from: kernels\nevidence: {columns: [nam]}"),
        ("from: kernels", "from: kernels\nevidence: {sort: -dur}"),
        ("from: kernels", "from: kernels\nbenign: [{when: {family: gemm}}]"),
        ("from: kernels", "from: kernels\nexplains: [copy]"),
        ("from: kernels", "from: kernels\nsavings: {us: n > 1}"),
        ("from: kernels", "from: kernels\nuncertain: [{when: m > 1, because: x}]"),
        ("from: kernels", "from: kernels\nrequires: [{that: n > 1, else: x}]"),
        ("limit: 3", "limit: MB(3)"),
        ("limit: 3", "limit: {a: 1}"),
        ("limit: 3", "limit: 99999999999999999999"),
        ("limit: 3", "limit: .inf"),
        ("from: kernels", "from: kernels\nwhere: {dur_us: 99999999999999999999}"),
        ("from: kernels", "from: kernels\nwhere: {dur_us: {lt: .nan}}"),
    ],
)
def test_mistakes_are_shown_with_line_column_and_caret(
    tmp_path: Path, wrong: str, message: str
) -> None:
    assert wrong in GOOD
    file = write(tmp_path, "mine.yaml", GOOD.replace(wrong, message, 1))
    shown = problems(tmp_path)
    first = shown.splitlines()[0]
    assert first.startswith(f"{file}:")
    assert ": error: " in first
    assert "^" in shown


@pytest.mark.parametrize(
    ("wrong", "right", "shown"),
    [
        ("measure:", "mesure:", "did you mean 'measure'?"),
        ("from: kernels", "from: kernel", "did you mean 'kernels'?"),
        ("code: MINE101", "code: mine", "two to six capitals and three digits"),
        ("version: 1", "version: 2", "needs format 2, but this program reads 1"),
        ("guess: it holds\n", "", "missing key 'guess'"),
        ("guess: it holds", "guess: 3", "must be text"),
        ("from: kernels", "from: regions\nper: call", "rows of 'regions' belong to no call"),
        ("from: kernels", "from: regions\nper: forward", "judge it per trace"),
        ("from: kernels", "from: kernels\nper: month", "must be 'forward', 'step', 'call'"),
        ("from: kernels", "from: kernels\nevidence: {colums: [name]}", "did you mean 'columns'?"),
        ("limit: 3", "limit: MB(3)", "did you mean 'MiB'?"),
        ("version: 1", 'version: "1"', "write it without quotes"),
        ("guess: it holds", "guess: 3", "put it in quotes"),
        ("guess: it holds", "guess: it holds\ntags: [1, 2]\nexplains: [X, [2]]", "must be text"),
        ("from: kernels", "from: kernels\nquorum: 50", "50 % is 0.5"),
        ("from: kernels", "from: kernels\nquorum: 50", "must be at most 1"),
        ("n < params.limit", "n < params.limit && n > 1", "write 'and' for '&&'"),
        ("n < params.limit", "n < params.limit || n > 1", "write 'or' for '||'"),
        ("n < params.limit", "not (n = 3)", "use '==' to compare"),
        ("n < params.limit", '"!(n > 3)"', "write 'not' for '!'"),
        ("n < params.limit", "n < 5ms", "write ms(5)"),
        ("n < params.limit", "n < 5%", "write pct(5)"),
        ("from: kernels", "from: copies\nwhere: {bytes: {gt: 4 MiB}}", "write MiB(4)"),
        ("measure: {n: count()}", "measure: {a: n + 1, n: count()}", "write it above"),
        ("from: kernels", "from: kernels\n\tper: step", "indent with spaces"),
        ("from: kernels", "from kernels", "a key is followed by a colon"),
        ("from: kernels", "from: kernels\n---\na: 1", "one file holds one rule"),
        ("from: kernels", "from: kernels\nfix: a: b", "quote a text that holds ': '"),
        ('"{n:int}"', '"{m:int}"', "known: n, unit"),
        ("measure:", "tests: [{name: a, trace: /x/y, expect: {}}]\nmeasure:", "not a file"),
        ("measure:", "tests: [{name: a, expect: pass}]\nmeasure:", "write {state: pass}"),
    ],
)
def test_mistakes_come_with_help(tmp_path: Path, wrong: str, right: str, shown: str) -> None:
    write(tmp_path, "mine.yaml", GOOD.replace(wrong, right, 1))
    assert shown in problems(tmp_path)


def test_all_problems_of_all_files_are_shown_at_once(tmp_path: Path) -> None:
    wrong = GOOD.replace("count()", "summ(x)").replace("{n:int}", "{zz}")
    write(tmp_path, "a.yaml", wrong)
    write(tmp_path, "b.yaml", "version: 1\n")
    shown = problems(tmp_path)
    assert "unknown function 'summ'" in shown
    assert "unknown name 'zz'" in shown
    assert "missing key 'code'" in shown
    # The measure is broken; that what uses it is broken too says nothing new.
    assert "expect" not in shown


def test_wrong_keys_do_not_hide_what_else_is_wrong(tmp_path: Path) -> None:
    wrong = (
        GOOD.replace("from: kernels", "from: kernels\nwehre: {famly: gemm}\nquorum: 7")
        .replace("n < params.limit", "m < params.limit")
        .replace("code: MINE101", "code: mine")
    )
    write(tmp_path, "a.yaml", f"{wrong}benign: [{{when: {{nme: x}}}}]\n")
    shown = problems(tmp_path)
    for message in (
        "a.yaml:2:7: error: must be two to six capitals",
        "a.yaml:7:1: error: unknown key 'wehre'",
        "a.yaml:7:9: error: unknown column 'famly'",
        "a.yaml:8:9: error: must be at most 1",
        "a.yaml:11:9: error: unknown name 'm'",
        "a.yaml:13:10: error: missing key 'because'",
        "a.yaml:13:18: error: unknown column 'nme'",
    ):
        assert message in shown
    assert shown.count(": error: ") == 7


def test_what_is_left_out_as_wrong_is_not_wrong_again(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", GOOD.replace("limit: 3", "limit: {a: 1}"))
    assert problems(tmp_path).count(": error: ") == 1
    write(tmp_path, "a.yaml", GOOD.replace("n: count()", "n: [1]"))
    assert problems(tmp_path).count(": error: ") == 1
    write(tmp_path, "a.yaml", GOOD.replace("guess: it", "gues: it"))
    assert problems(tmp_path).count(": error: ") == 1


def test_a_file_full_of_problems_shows_the_first_of_them(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", GOOD + "".join(f"k{number}: 1\n" for number in range(200)))
    shown = problems(tmp_path)
    assert shown.count(": error: ") == 50
    assert shown.endswith("... and 150 more problems")


def test_positions_inside_expressions_and_templates(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", GOOD.replace("count()", "count() + nn"))
    assert "a.yaml:8:24: error: unknown name 'nn'" in problems(tmp_path)
    write(tmp_path, "a.yaml", GOOD.replace("{n:int}", "ab {n:foo}"))
    assert "a.yaml:10:15: error: unknown format 'foo'" in problems(tmp_path)


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("MINE101.limit=5", "limit", 5),
        ("MINE101.limit=0.5", "limit", 0.5),
        ("MINE101.size = KiB(2)", "size", 2048.0),
        ("MINE101.on=false", "on", False),
        ("MINE101.word=flash", "word", "flash"),
        ("MINE101.wanted=gemm, conv", "wanted", ["gemm", "conv"]),
    ],
)
def test_settings_override_parameters(
    tmp_path: Path, setting: str, name: str, value: object
) -> None:
    file = write(tmp_path, "mine.yaml", GOOD)
    rule = load_rules([file], builtin=False, settings=[setting])[0]
    assert rule.params[name] == value


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("MINE101.limit", "write CODE.name=value"),
        ("limit=3", "write CODE.name=value"),
        ("MINE110.limit=3", "did you mean 'MINE101'"),
        ("MINE101.limitt=3", "did you mean 'limit'"),
        ("MINE101.limit=many", "must be a number"),
        ("MINE101.limit=1e999", "must be a number"),
        ("MINE101.limit=MB(1)", "must be a number"),
        ("MINE101.on=1", "must be true or false"),
        ("MINE101.size=MiB(1)/0", "must be a number"),
    ],
)
def test_a_wrong_setting_is_a_usage_error(tmp_path: Path, setting: str, message: str) -> None:
    rule = load_rule(write(tmp_path, "mine.yaml", GOOD))
    with pytest.raises(AnalyzeError, match=message) as caught:
        apply_settings([rule], [setting])
    assert caught.value.exit_code == 2


def test_without_tests_a_rule_is_the_same_but_for_its_tests() -> None:
    whole, quick = load_rules(), load_rules(tests=False)
    assert all(rule.model.tests for rule in whole)
    for one, other in zip(whole, quick, strict=True):
        assert other.model == dataclasses.replace(one.model, tests=[])


@pytest.mark.parametrize(
    ("value", "message"),
    [([1, 2], "a list of texts, but this is a list of numbers"), ([], "this is an empty list")],
)
def test_a_list_of_another_kind_is_told_apart(
    tmp_path: Path, value: list[Scalar], message: str
) -> None:
    rule = load_rule(write(tmp_path, "mine.yaml", GOOD))
    with pytest.raises(AnalyzeError, match=f"'wanted' is .*{message}"):
        configured([rule], {"MINE101": {"wanted": value}}, "pyproject.toml")


def test_a_setting_that_leaves_a_condition_without_a_value_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("measure:", "where: {dur_us: {gt: MiB(1) / params.limit}}\nmeasure:", 1)
    rule = load_rule(write(tmp_path, "mine.yaml", text))
    with pytest.raises(AnalyzeError, match="does not fit MINE101: the value is unknown"):
        apply_settings([rule], ["MINE101.limit=0"])


def test_a_quantity_without_a_value_is_no_text(tmp_path: Path) -> None:
    write(tmp_path, "mine.yaml", GOOD.replace("MiB(1)", "MiB(1) / 0"))
    assert "the value is unknown" in problems(tmp_path)


def test_a_given_rule_with_a_broken_test_is_refused_whoever_loads_it(tmp_path: Path) -> None:
    file = write(tmp_path, "mine.yaml", f"{GOOD}tests: [{{name: a, expect: pass}}]\n")
    for tests in (True, False):
        with pytest.raises(InvalidRulesError, match=r"write {state: pass}"):
            load_rules([file], tests=tests)


def test_problems_behind_the_tests_keep_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(
        "version: 1\ncode: MINE101\nname: n\ntitle: T\nguess: G\nfrom: kernels\n"
        "tests:\n- name: a\n  rows: []\n  expect: {state: pass}\n# a comment\n"
        'measure: {n: count()}\nexpect: m == 0\nmessage: "m"\n'
    )
    for tests in (True, False):
        with pytest.raises(RuleError, match=r"r\.yaml:13:9"):
            load_rules([file], builtin=False, tests=tests)
