"""``analyze rules`` and ``analyze explain``, as a user runs them."""

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunAnalyze

HEAD = "version: 1\nname: some-copies\ntitle: t\nguess: g\nfrom: copies\n"
BODY = """\
where: {copy_kind: DtoD}
params: {most: 4}
measure: {n: count()}
expect: n <= params.most
message: "{n:int} copies"
"""
FIRES = "  - {name: five, rows: [{forward: 0}], params: {most: -1}, expect: {state: mismatch}}\n"
SILENT = "  - {name: none, rows: [{forward: 0}], expect: {state: pass}}\n"
EVIL = "\x1b[2J[bold]x[/bar]"


def write(folder: Path, tests: str = FIRES + SILENT, code: str = "MY101") -> Path:
    file = folder / f"{code.lower()}.yaml"
    file.write_text(f"{HEAD}code: {code}\n{BODY}" + (f"tests:\n{tests}" if tests else ""))
    return file


def test_the_built_in_rules_pass_their_tests(run_analyze: RunAnalyze) -> None:
    done = run_analyze("rules", "test", "--require-tests")
    assert done.returncode == 0, done.stdout
    assert "COPY101 hidden-memcpy\n  ✓ passed  out-of-place masked_fill" in done.stdout
    closing = done.stdout.splitlines()[-1]
    assert closing.endswith("passed, 0 failed, 0 known gaps, 0 unexpected passes")


def test_every_way_a_test_can_end(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    tests = (
        FIRES
        + "  - {name: wrong, rows: [{forward: 0}], expect: {measures: {n: 7}}}\n"
        + "  - {name: gap, rows: [{forward: 0}], todo: true, expect: {state: mismatch}}\n"
        + "  - {name: closed, rows: [{forward: 0}], todo: true, expect: {state: pass}}\n"
    )
    file = write(tmp_path, tests)
    done = run_analyze("rules", "test", file)
    assert done.returncode == 4
    place = f"{file}:14:64: error: n is 0, not 7"
    assert f"  ✗ failed  wrong\n    {place}\n" in done.stdout
    lines = done.stdout.splitlines()
    caret = next(line for line in lines if line.strip(" |") == "^")
    source = lines[lines.index(caret) - 1]
    assert source[caret.index("^")] == "7"
    assert "  i known gap  gap\n" in done.stdout
    assert "  ✗ unexpected pass  closed\n" in done.stdout
    assert lines[-1] == "1 rule: 1 passed, 1 failed, 1 known gap, 1 unexpected pass"
    report = json.loads(run_analyze("rules", "test", file, "--format", "json").stdout)
    assert report["tally"] == {
        "passed": 1, "failed": 1, "known_gap": 1, "unexpected_pass": 1,
    }  # fmt: skip
    assert report["tests"][1]["problems"] == [
        {"file": str(file), "line": 14, "column": 64, "message": "n is 0, not 7", "help": None}
    ]


def test_a_known_gap_is_no_failure(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    gap = "  - {name: gap, rows: [{forward: 0}], todo: true, expect: {state: mismatch}}\n"
    assert run_analyze("rules", "test", write(tmp_path, gap)).returncode == 0


def test_rules_without_tests_are_named_on_request(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    write(tmp_path, FIRES)
    other = write(tmp_path, "", "MY102")
    other.write_text(other.read_text().replace("some-copies", "other-copies"))
    assert run_analyze("rules", "test", tmp_path).returncode == 0
    done = run_analyze("rules", "test", tmp_path, "--require-tests")
    assert done.returncode == 4
    assert "MY101 has no test in which it stays silent (state: pass)" in done.stdout
    assert "MY102 has no test in which it fires" in done.stdout
    assert done.stdout.endswith("0 unexpected passes, 3 missing tests\n")


def test_thresholds_that_no_test_notices(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    file = write(tmp_path)
    done = run_analyze("rules", "test", "--mutate", file)
    assert done.returncode == 0
    assert f"{file}:8:16: MY101 params.most: 4 could be 6 or 2" in done.stdout
    assert run_analyze("rules", "test", "--mutate", "--require-tests", file).returncode == 4
    report = json.loads(run_analyze("rules", "test", "--mutate", "--format", "json", file).stdout)
    assert [entry["unnoticed"] for entry in report["unnoticed"]] == [[6, 2]]


def test_nothing_to_test(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    assert run_analyze("rules", "test", tmp_path).returncode == 2
    assert run_analyze("rules", "test", tmp_path / "none.yaml").returncode == 4


def test_a_pack_file_names_the_rules_of_its_folder(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    write(tmp_path)
    pack = tmp_path / "pack.yaml"
    pack.write_text("version: 1\npack: mine\n")
    done = run_analyze("rules", "test", pack)
    assert (done.returncode, done.stdout.splitlines()[-1][:16]) == (0, "1 rule: 2 passed")
    assert run_analyze("rules", "check", pack).stdout == "1 rule checked, no problems\n"


def test_a_broken_test_is_told_by_every_command(
    run_analyze: RunAnalyze, tmp_path: Path, samples: Path
) -> None:
    file = write(tmp_path, "  - {name: a, trace: /somewhere/a.json, expect: pass}\n")
    trace = samples / "synthetic-naive.json.gz"
    for command in (
        ["rules", "check", file], ["rules", "test", file], ["explain", "MY101", "--rules", file],
        [trace, "--rules", file],
    ):  # fmt: skip
        done = run_analyze(*command)
        assert done.returncode == 4
        assert "must be the name of a sample trace" in done.stderr
        assert "write {state: pass}" in done.stderr


def test_names_in_rules_never_reach_the_terminal_as_escapes(
    run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    name = json.dumps(EVIL)
    rows = f"rows: [{{name: {name}, forward: 0}}]"
    file = write(tmp_path, f"  - {{name: {name}, {rows}, expect: {{state: mismatch}}}}\n")
    for command in (["test", file], ["show", "MY101", "--rules", file]):
        done = run_analyze("rules", *command)
        assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b[2J[bold]x[/bar]" in run_analyze("rules", "test", file).stdout


def test_the_list_of_rules(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    file = write(tmp_path)
    done = run_analyze("rules", "list", "--rules", file)
    first = done.stdout.splitlines()[0].split()
    assert first == ["code", "name", "category", "status", "title"]
    assert "MY101" in done.stdout
    listed = json.loads(run_analyze("rules", "list", "--format", "json").stdout)["rules"]
    assert listed == sorted(listed, key=lambda rule: rule["code"])
    copies = next(rule for rule in listed if rule["code"] == "COPY101")
    assert (copies["name"], copies["category"], copies["status"], copies["pack"]) == (
        "hidden-memcpy",
        "copies",
        "stable",
        "builtin",
    )


def test_a_rule_is_shown_as_it_is_written(run_analyze: RunAnalyze) -> None:
    file = ROOT / "rules/copies/hidden-memcpy.yaml"
    for word in ("COPY101", "copy101", "hidden-memcpy"):
        done = run_analyze("rules", "show", word)
        path, _, text = done.stdout.partition("\n")
        assert Path(path.removeprefix("# ")) == file
        assert text == file.read_text()
    done = run_analyze("rules", "show", "hidden-memcopy")
    assert done.returncode == 2
    assert "did you mean 'hidden-memcpy'?" in done.stderr


def test_a_new_rule_is_valid_and_passes_its_tests(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    done = run_analyze("rules", "new", "my-rule", "--from", "ops", "-o", tmp_path / "mine")
    file = tmp_path / "mine/my-rule.yaml"
    assert done.returncode == 0
    assert f"analyze rules test {file}" in done.stdout
    assert run_analyze("rules", "check", file).returncode == 0
    tested = run_analyze("rules", "test", "--require-tests", "--mutate", file)
    assert tested.returncode == 0, tested.stdout
    assert tested.stdout.splitlines()[-1].startswith("1 rule: 2 passed, 0 failed")
    assert "yaml-language-server: $schema=" in file.read_text()
    assert "analyze rules schema" in file.read_text()


def test_new_rules_beside_each_other(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    for name in ("one", "null", "3-4"):
        assert run_analyze("rules", "new", name, "-o", tmp_path).returncode == 0
    assert run_analyze("rules", "test", tmp_path).returncode == 0
    before = (tmp_path / "one.yaml").read_text()
    done = run_analyze("rules", "new", "one", "--from", "ops", "-o", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "exists already" in done.stderr
    assert (tmp_path / "one.yaml").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Slow Softmax"], "lower-case words joined by hyphens"),
        (["../x"], "lower-case words joined by hyphens"),
        (["x" * 61], "60 characters at most"),
        (["x", "--from", "kernles"], "did you mean 'kernels'?"),
        (["x", "-o", "/dev/null/x"], "cannot be written"),
    ],
)
def test_a_new_rule_that_cannot_be(
    arguments: list[str], words: str, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("rules", "new", *arguments)
    assert (done.returncode, words in done.stderr) == (2, True), done


WHY_IT_FIRES = """\
  rows                  alone  unknown  so far
  copies                                     3
  in any of 3 forwards                       3
  copy_kind is DtoD         3        0       3

  per forward   lowest   median  highest  unknown
  n                  1        1        1        0
  us            363 us   365 us   370 us        0
  largest      256 MiB  256 MiB  256 MiB        0
  share           16 %     16 %     16 %        0
"""

WHY_NOT = """\
  rows                  alone  unknown  so far
  copies                                     0  <- nothing left
  in any of 3 forwards                       0
  copy_kind is DtoD         0        0       0
"""


def test_why_a_rule_fires(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("explain", "COPY101", samples / "synthetic-naive.json.gz")
    assert done.returncode == 0
    assert WHY_IT_FIRES in done.stdout
    assert done.stdout.endswith("\nCOPY101: mismatch, error, 1 finding\n")


def test_why_a_rule_does_not_fire(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("explain", "hidden-memcpy", samples / "synthetic-naive-inplace.json.gz")
    assert done.returncode == 0
    assert WHY_NOT in done.stdout
    assert done.stdout.endswith("COPY101: pass, because no row matches: the table has no rows\n")


def test_why_a_rule_cannot_answer(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("explain", "OCC101", samples / "cpu-naive.json.gz")
    assert done.returncode == 0
    assert "OCC101: not applicable, because no GPU work was recorded" in done.stdout


def test_a_setting_changes_the_answer(samples: Path, run_analyze: RunAnalyze) -> None:
    settings = ("--set", "COPY101.min_bytes=GiB(1)", "--set", "COPY101.min_share=pct(50)")
    done = run_analyze("explain", "COPY101", samples / "synthetic-naive.json.gz", *settings)
    assert "COPY101: pass, because what it expects holds in every forward" in done.stdout
    assert "min_bytes = 1073741824, set by --set (the rule has MiB(1))" in done.stdout


def test_a_rule_is_documented_without_a_trace(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    file = write(tmp_path)
    done = run_analyze("explain", "my101", "--rules", file)
    assert done.returncode == 0
    for words in ("MY101 some-copies", "most = 4", "n <= params.most", "mismatch  five\n"):
        assert words in done.stdout
    assert "In " not in done.stdout
    data = json.loads(run_analyze("explain", "COPY101", "--format", "json").stdout)
    assert data["schema_version"] == 1
    assert data["funnel"] is None
    assert data["rule"]["thresholds"][0]["name"] == "min_bytes"


def test_the_funnel_as_json(samples: Path, run_analyze: RunAnalyze) -> None:
    trace = samples / "synthetic-naive.json.gz"
    funnel = json.loads(run_analyze("explain", "COPY101", trace, "--format", "json").stdout)[
        "funnel"
    ]
    assert funnel["conditions"] == [
        {"words": "copy_kind is DtoD", "alone": 3, "unknown": 0, "so_far": 3}
    ]
    assert (funnel["state"], funnel["units"], funnel["groups"][0]["fails"]) == ("mismatch", 3, 3)


def test_another_forward_is_another_unit(samples: Path, run_analyze: RunAnalyze) -> None:
    trace = samples / "synthetic-naive.json.gz"
    named = run_analyze("explain", "COPY101", trace, "--forward", "attn_fwd")
    assert WHY_IT_FIRES in named.stdout
    wrong = run_analyze("explain", "COPY101", trace, "--forward", "atn_fwd")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["COPY10"], 2, "did you mean 'COPY10"),
        (["hiden-memcpy"], 2, "did you mean 'hidden-memcpy'?"),
        (["COPY101", "nowhere.json"], 3, "no such file"),
        (["COPY101", "sample_traces"], 2, "name one of them"),
        (["COPY101", "--set", "COPY101.min_bites=3"], 2, "did you mean 'min_bytes'?"),
        (["COPY101", "--rules", "nowhere.yaml"], 4, "no such rule file"),
        ([], 2, "CODE"),
    ],
)
def test_what_cannot_be_explained(
    arguments: list[str],
    code: int,
    words: str,
    run_analyze: RunAnalyze,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    done = run_analyze("explain", *arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done


def test_why_a_fused_kernel_is_benign_on_a_real_trace(
    real_traces: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("explain", "OCC101", real_traces / "tl-h100-qwen")
    assert done.returncode == 0
    assert "group 1 of 8: short_name pytorch_flash::flash_fwd_kernel" in done.stdout
    assert "family is attn.fwd or attn.bwd: holds for 24 of 129 matching rows" in done.stdout
    assert done.stdout.endswith("OCC101: benign, info, 1 finding\n")
