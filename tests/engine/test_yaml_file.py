from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from analyze.engine import yaml_file
from analyze.engine.installed import builtin_rules
from analyze.engine.problems import InvalidRulesError
from analyze.engine.yaml_file import MAX_BYTES, parse_yaml, read_yaml

BOMB = "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}' if before else 'x'] * 9)}]"
    for before, name in zip([None, *"abcdef"], "abcdefg", strict=True)
)


def problem(text: str) -> str:
    """Return what is wrong with a text, whether it is all of it or single values."""
    try:
        problems = parse_yaml(text, "rule.yaml").problems
    except InvalidRulesError as error:
        return str(error)
    return "\n".join(problem.render() for problem in problems)


def test_plain_data_without_the_traps_of_older_yaml() -> None:
    data = parse_yaml("a: no\nb: 1e6\nc: 010\nd: 12:30\ne: 2024-01-01\nf: true\ng: -x", "f").data
    assert data == {
        "a": "no",
        "b": 1e6,
        "c": 10,
        "d": "12:30",
        "e": "2024-01-01",
        "f": True,
        "g": "-x",
    }


def test_positions_of_keys_values_and_parts_of_texts() -> None:
    document = parse_yaml("a:\n  - {b: 'one two', c: 3}\n", "f")
    value = document.locate(("a", 0, "c"))
    assert (value.line, value.column, value.length) == (2, 23, 1)
    key = document.locate(("a", 0, "c"), key=True)
    assert (key.line, key.column) == (2, 20)
    part = document.locate_in(("a", 0, "b"), 4, 3)
    assert (part.line, part.column, part.length) == (2, 14, 3)
    assert document.locate(("a", 0, "missing")).column == 5


def test_a_duplicate_key_is_a_problem_that_names_both_lines() -> None:
    text = problem("a: 1\nb: 2\na: 3\n")
    assert "rule.yaml:3:1: error: duplicate key 'a', first used in line 1" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "more than 20000 values"),
        ("a: &a [*a]", "nested more than 40 levels"),
        ("[" * 4000, "nested too deeply"),
        ("<<: {a: 1}", "merge keys"),
        ("1: a", "a key must be text"),
        ("a: !!binary aGk=", "tags are not supported"),
        ("a: !x y", "tags are not supported"),
        ("a: 1\n---\nb: 2", "YAML"),
        ("a: [1", "YAML"),
        ("a: \x00", "not YAML"),
        ("a: " + "9" * 5000, "not a number"),
    ],
)
def test_hostile_documents_are_problems(text: str, message: str) -> None:
    assert message in problem(text)


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(InvalidRulesError, match="larger than 1 MB"):
        read_yaml(file)


def test_unreadable_and_foreign_files_are_problems(tmp_path: Path) -> None:
    with pytest.raises(InvalidRulesError, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidRulesError, match="UTF-8"):
        read_yaml(binary)


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("ab:{}[]&*!|>-?,'\"#%@ \n\t1.<=~"), max_size=40))
def test_any_text_is_data_or_a_problem(text: str) -> None:
    shown = ["rule.yaml"]
    try:
        parse_yaml(text, "rule.yaml")
    except InvalidRulesError as error:
        shown = [problem.render() for problem in error.problems]
    assert all(text.startswith("rule.yaml") for text in shown)
    assert shown


def read(text: str) -> tuple[object, object]:
    """Return the data and the positions of a text."""
    document = parse_yaml(text, "f")
    places = [document.locate(path) for path in document.values]
    return document.data, places


def test_libyaml_and_the_python_parser_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(builtin_rules().rglob("*.yaml"))
    texts = [file.read_text() for file in files]
    fast = [read(text) for text in texts]
    monkeypatch.setattr(yaml_file, "YAML", lambda **_: YAML(typ="safe", pure=True))
    assert [read(text) for text in texts] == fast
    assert len(files) > 8


def test_what_libyaml_cannot_read_is_read_all_the_same() -> None:
    assert parse_yaml("a: {b: aten::mm, c: [x::y]}", "f").data == {
        "a": {"b": "aten::mm", "c": ["x::y"]}
    }
