"""``[tool.kinetolint]``: found, read, and refused with a reason."""

from pathlib import Path

import pytest

from analyze.config import find_config, read_config
from analyze.errors import AnalyzeError


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder / "pyproject.toml"


def test_the_nearest_file_with_the_table_holds(tmp_path: Path) -> None:
    outer = write(tmp_path, "[tool.kinetolint]\nrules = ['perf']\nfail-on = 'warning'\n")
    write(tmp_path / "inner", "[tool.other]\nx = 1\n")
    found = find_config(tmp_path / "inner")
    assert found.file == outer
    assert found.rule_paths == [tmp_path / "perf"]
    assert found.config.fail_on == "warning"


def test_without_a_file_nothing_is_configured(tmp_path: Path) -> None:
    found = find_config(tmp_path)
    assert (found.file, found.rule_paths) == (None, [])
    assert found.config.selection.select is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ignore = [{code = 'COPY101'}]", r"ignore\[0\]: missing key 'reason'"),
        ("ignore = ['COPY101']", r"ignore\[0\]: must be a mapping"),
        ("slect = ['COPY']", r"unknown key 'slect' \(did you mean 'select'\?\)"),
        ("select = 'COPY'", "select: must be a list"),
        ("fail-on = 'fatal'", "fail-on: must be 'info', 'warning', 'error' or 'never'"),
        ("params = {copy = {a = 1}}", "params"),
        ("a = = 1", "not TOML"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, f"[tool.kinetolint]\n{text}\n")
    with pytest.raises(AnalyzeError, match=message) as caught:
        find_config(tmp_path)
    assert str(caught.value).startswith(f"{file}: ")
    assert caught.value.exit_code == 2


def test_a_file_that_is_named_must_hold_the_table(tmp_path: Path) -> None:
    with pytest.raises(AnalyzeError, match="cannot be read"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(AnalyzeError, match=r"has no table \[tool.kinetolint\]"):
        read_config(write(tmp_path, "[project]\nname = 'x'\n"))
