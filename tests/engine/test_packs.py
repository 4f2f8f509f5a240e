"""Packs: shared parameters, lists and macros, extending and overriding other packs."""

from pathlib import Path

import pytest

from analyze.engine.loading import configured, load_rules
from analyze.engine.problems import InvalidRulesError
from analyze.engine.rule import Rule
from analyze.errors import AnalyzeError

RULE = """\
version: 1
code: {code}
name: {name}
title: T
guess: it holds
from: kernels
where: {{family: gemm}}
params: {{limit: 3}}
measure: {{n: count()}}
expect: n < params.limit
severity: warning
message: "{{n:int}}"
"""


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def rule(code: str = "MINE101", name: str = "mine") -> str:
    return RULE.format(code=code, name=name)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A pack that others extend."""
    write(
        tmp_path / "base/pack.yaml",
        "version: 1\npack: base\nlists: {wanted: [gemm]}\nmacros: {short: {dur_us: {lt: 9}}}\n",
    )
    write(tmp_path / "base/a/base.yaml", rule("BASE101", "base"))
    return tmp_path / "base"


def load(*paths: Path) -> dict[str, Rule]:
    return {rule.code: rule for rule in load_rules(paths, builtin=False)}


def problems(*paths: Path) -> str:
    with pytest.raises(InvalidRulesError) as caught:
        load(*paths)
    return str(caught.value)


def test_parameters_of_a_pack_come_before_those_of_its_rules(tmp_path: Path) -> None:
    write(tmp_path / "pack.yaml", "version: 1\npack: p\nparams: {limit: MiB(1), other: 2}\n")
    write(tmp_path / "a/r.yaml", rule().replace("params.limit", "params.limit + params.other"))
    loaded = load(tmp_path)["MINE101"]
    assert loaded.params == {"limit": 1 << 20, "other": 2}
    assert loaded.changed == {"limit": "pack p"}


def test_the_configuration_comes_before_the_pack_and_a_setting_before_both(tmp_path: Path) -> None:
    write(tmp_path / "pack.yaml", "version: 1\npack: p\nparams: {limit: 5}\n")
    write(tmp_path / "a/r.yaml", rule())
    rules = load_rules([tmp_path], builtin=False)
    (of_config,) = configured(rules, {"MINE101": {"limit": "pct(700)"}}, "pyproject.toml")
    assert of_config.params["limit"] == 7
    set_too = of_config.with_param("limit", "9", "MINE101.limit=9")
    assert (set_too.params["limit"], set_too.changed["limit"]) == (9, "--set")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"MINE102": {"limit": 1}}, "no rule 'MINE102'; did you mean 'MINE101'"),
        ({"MINE101": {"limi": 1}}, "unknown parameter 'limi'"),
        ({"MINE101": {"limit": "much"}}, "'limit' is a number, but this is text"),
        ({"MINE101": {"limit": [1]}}, "'limit' is a number, but this is a list"),
        ({"MINE101": {"limit": "MB(1)"}}, "unknown unit 'MB'"),
    ],
)
def test_a_wrong_parameter_in_the_configuration(
    tmp_path: Path, params: dict[str, dict[str, object]], message: str
) -> None:
    write(tmp_path / "r.yaml", rule())
    rules = load_rules([tmp_path], builtin=False)
    with pytest.raises(AnalyzeError, match=message) as caught:
        configured(rules, params, "pyproject.toml")  # type: ignore[arg-type]
    assert caught.value.exit_code == 2


def test_a_pack_extends_another_by_path(tmp_path: Path, base: Path) -> None:
    write(tmp_path / "ours/pack.yaml", "version: 1\npack: ours\nextends: [../base]\n")
    wanted = rule().replace("family: gemm", "family: $wanted, use: short")
    write(tmp_path / "ours/a/mine.yaml", wanted)
    loaded = load(tmp_path / "ours")
    assert set(loaded) == {"BASE101", "MINE101"}
    assert loaded["BASE101"].pack == "base"
    # The same folder given as well changes nothing.
    assert set(load(tmp_path / "ours", base)) == {"BASE101", "MINE101"}


def test_a_pack_extends_the_built_in_one_by_name(tmp_path: Path) -> None:
    write(tmp_path / "pack.yaml", "version: 1\npack: ours\nextends: [builtin]\n")
    assert {"COPY101", "OCC101"} <= set(load(tmp_path))


def test_packs_that_cannot_be_extended(tmp_path: Path, base: Path) -> None:
    ours = write(tmp_path / "ours/pack.yaml", "version: 1\npack: ours\nextends: [bultin, ../no]\n")
    shown = problems(ours.parent)
    assert f"{ours}:3:11: error: no pack 'bultin'" in shown
    assert "did you mean 'builtin'" in shown
    assert "no pack '../no'" in shown
    write(base / "pack.yaml", "version: 1\npack: base\nextends: [../ours]\n")
    ours.write_text("version: 1\npack: ours\nextends: [../base]\n")
    assert "extends this one" in problems(ours.parent)


@pytest.mark.usefixtures("base")
def test_overrides_change_keys_of_rules_of_other_packs(tmp_path: Path) -> None:
    write(
        tmp_path / "ours/pack.yaml",
        "version: 1\npack: ours\nextends: [../base]\noverride:\n"
        "- code: BASE101\n"
        "  params: {limit: 7}\n"
        "  set: {quorum: 0.9}\n"
        "  replace: {severity: error}\n"
        "  append:\n"
        "    where: {dur_us: {gt: 5}}\n"
        "    benign: [{when: {family: gemm}, because: ours}]\n"
        "    measure: {us: sum(dur_us)}\n",
    )
    loaded = load(tmp_path / "ours")["BASE101"]
    model = loaded.model
    assert loaded.params == {"limit": 7}
    assert (model.quorum, model.severity) == (0.9, "error")
    assert model.where == {"all": [{"family": "gemm"}, {"dur_us": {"gt": 5}}]}
    assert model.benign[0].because == "ours"
    assert list(model.measure) == ["n", "us"]


@pytest.mark.parametrize(
    ("override", "shown"),
    [
        ("code: BASE102", "pack.yaml:5:9: error: unknown rule 'BASE102'"),
        ("code: BASE101\n  params: {limt: 7}", "pack.yaml:6:12: error: unknown parameter 'limt'"),
        ("code: BASE101\n  params: {limit: x}", "pack.yaml:6:12: error: 'limit' is a number"),
        ("code: BASE101\n  set: {code: X}", "'code' cannot be overridden"),
        ("code: BASE101\n  set: {severty: x}", "pack.yaml:6:9: error: unknown key 'severty'"),
        ("code: BASE101\n  set: {severity: x}", "pack.yaml:6:19: error: must be 'info'"),
        ("code: BASE101\n  replace: {fix: x}", "pack.yaml:6:13: error: the rule has no 'fix'"),
        ("code: BASE101\n  append: {severity: x}", "cannot be appended to like this"),
        (
            "code: BASE101\n  append: {where: {famly: x}}",
            "pack.yaml:6:20: error: unknown column 'famly'",
        ),
        ("code: BASE101\n  set: {expect: m > 1}", "pack.yaml:6:17: error: unknown name 'm'"),
        (
            "code: BASE101\n  append: {measure: {x: sum(nme)}}",
            "pack.yaml:6:29: error: unknown column 'nme'",
        ),
    ],
)
@pytest.mark.usefixtures("base")
def test_mistakes_in_overrides_are_shown_in_the_pack_file(
    tmp_path: Path, override: str, shown: str
) -> None:
    text = f"version: 1\npack: ours\nextends: [../base]\noverride:\n- {override}\n"
    write(tmp_path / "ours/pack.yaml", text)
    assert shown in problems(tmp_path / "ours")


def test_a_macro_that_no_rule_uses_is_checked_too(tmp_path: Path) -> None:
    file = write(tmp_path / "pack.yaml", "version: 1\npack: p\nmacros: {a: {famly: gemm}}\n")
    write(tmp_path / "a/r.yaml", rule())
    assert f"{file}:3:14: error: unknown column 'famly'" in problems(tmp_path)
    file.write_text("version: 1\npack: p\nmacros: {a: {family: gemm}, b: {cpu_us: {gt: ms(1)}}}\n")
    assert set(load(tmp_path)) == {"MINE101"}


def test_installed_packages_bring_packs_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "kinetolint_perf/__init__.py", "raise RuntimeError('must not be run')\n")
    write(tmp_path / "kinetolint_perf/rules/pack.yaml", "version: 1\npack: perf\n")
    write(tmp_path / "kinetolint_perf/rules/a/r.yaml", rule("PERF101", "perf"))
    points = "[kinetolint.rules]\nperf = kinetolint_perf.rules\n"
    metadata = tmp_path / "kinetolint_perf-1.dist-info"
    write(metadata / "METADATA", "Metadata-Version: 2.1\nName: kinetolint-perf\nVersion: 1\n")
    write(metadata / "entry_points.txt", points)
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = {rule.code: rule for rule in load_rules(installed=True)}
    assert loaded["PERF101"].pack == "perf"
    assert "PERF101" not in {rule.code for rule in load_rules()}
    write(metadata / "entry_points.txt", points.replace("perf.rules", "perf.nothing"))
    with pytest.raises(AnalyzeError, match="no installed package has such a folder"):
        load_rules(installed=True)


def test_overrides_of_several_packs_add_up_and_use_what_their_pack_shares(
    tmp_path: Path, base: Path
) -> None:
    for name, macro in (("one", "{dur_us: {gt: 1}}"), ("two", "{famly: x}")):
        write(
            tmp_path / f"{name}/pack.yaml",
            f"version: 1\npack: {name}\nmacros: {{mine_{name}: {macro}}}\noverride:\n"
            f"- code: BASE101\n  append: {{where: {{use: mine_{name}}}}}\n",
        )
    shown = problems(base, tmp_path / "one", tmp_path / "two")
    assert shown.startswith(f"{tmp_path}/two/pack.yaml:3:")
    assert "unknown column 'famly'" in shown
    write(
        tmp_path / "two/pack.yaml",
        "version: 1\npack: two\noverride:\n- {code: BASE101, append: {where: {nope: 1}}}\n"
        "- {code: BASE101, append: {where: {nope2: 1}}}\n",
    )
    shown = problems(base, tmp_path / "one", tmp_path / "two")
    assert "two/pack.yaml:4:36: error: unknown column 'nope'" in shown
    assert "two/pack.yaml:5:36: error: unknown column 'nope2'" in shown


def test_packs_below_a_folder_hold_as_well(tmp_path: Path, base: Path) -> None:
    text = "version: 1\npack: p\noverride: [{code: BASE101, params: {limit: 8}}]\n"
    file = write(tmp_path / "all/below/pack.yaml", text)
    assert load(base, tmp_path / "all")["BASE101"].params == {"limit": 8}
    assert load(base, file)["BASE101"].params == {"limit": 8}
    file.write_text("pack: [")
    assert "below/pack.yaml" in problems(base, tmp_path / "all")


def test_a_pack_lies_any_number_of_folders_up(tmp_path: Path) -> None:
    write(tmp_path / "pack.yaml", "version: 1\npack: p\nlists: {wanted: [gemm]}\n")
    file = write(tmp_path / "a/b/c/d/r.yaml", rule().replace("family: gemm", "family: $wanted"))
    assert load(file)["MINE101"].pack == "p"


def test_names_and_consequences_are_checked_across_rules(tmp_path: Path) -> None:
    write(
        tmp_path / "a.yaml", rule(name="hidden-memcpy") + "explains: [MINE101, NOPE101, OCC101]\n"
    )
    with pytest.raises(InvalidRulesError) as caught:
        load_rules([tmp_path])
    shown = str(caught.value)
    assert "the name hidden-memcpy is already used by" in shown
    assert "a rule does not explain itself" in shown
    assert "unknown rule 'NOPE101'" in shown
    assert "unknown rule 'OCC101'" not in shown


@pytest.mark.parametrize("written", [".*(", "a" * 5 + "["])
def test_a_parameter_that_the_rule_cannot_use_is_refused_at_once(
    tmp_path: Path, written: str
) -> None:
    text = rule().replace("params: {limit: 3}", "params: {limit: 3, p: x}")
    write(tmp_path / "r.yaml", text.replace("{family: gemm}", "{name: {regex: params.p}}"))
    with pytest.raises(AnalyzeError, match="not a regular expression"):
        load_rules([tmp_path], builtin=False, settings=[f"MINE101.p={written}"])


@pytest.mark.parametrize(
    "tests",
    [
        "tests: [\n{name: a, rows: [{name: x, forward: 0}], expect: {state: pass}}\n]\n",
        "tests:\n- name: &m a\n  rows: [{name: x, forward: 0}]\n  expect: {state: pass}\nfix: *m\n",
        'tests:\n- name: "a\u2028b"\n  rows: [{name: x, forward: 0}]\n  expect: {state: pass}\n',
    ],
)
def test_rules_load_alike_with_and_without_their_tests(tmp_path: Path, tests: str) -> None:
    write(tmp_path / "r.yaml", rule() + tests)
    for with_tests in (True, False):
        assert load_rules([tmp_path], builtin=False, tests=with_tests)
