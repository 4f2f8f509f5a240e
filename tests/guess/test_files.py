"""Guess files: what they may hold, what is told of mistakes, schema and documentation."""

import re
from pathlib import Path

import jsonschema
import pytest

from analyze.engine.problems import InvalidRulesError
from analyze.engine.yaml_file import read_yaml
from analyze.errors import AnalyzeError
from analyze.guess.loading import forward_of, load_guesses
from analyze.guess.quantities import QUANTITIES
from analyze.guess.rules import MAX_FILES
from analyze.guess.schema import guess_schema

DOCUMENTATION = (Path(__file__).parents[2] / "rules" / "GUESS.md").read_text()


def problems_of(text: str, folder: Path) -> list[tuple[int, str, str | None]]:
    file = folder / "guess.yaml"
    file.write_text(text)
    with pytest.raises(InvalidRulesError) as caught:
        load_guesses([file])
    return [(p.where.line, p.message, p.help) for p in caught.value.problems]


def test_mistakes_are_told_all_at_once_with_their_lines(tmp_path: Path) -> None:
    text = "version: 1\ngpu_ops: five\nidle: 0.3\ndominant: gem\nprecision: [bf61]\ngpu_time: 2\n"
    assert problems_of(text, tmp_path) == [
        (2, "'five' is not a number: 5, ~5, 3-6, at most 4, none", None),
        (3, "'0.3' could be 0.3 % or 30 %: write it with the % sign", None),
        (4, "'gem' is no family of GPU work", "did you mean 'gemm'?"),
        (5, "'bf61' is no precision", "did you mean 'bf16'?"),
        (6, "'2' has no unit of time: write us, ms or s behind it", None),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("version: 1\ngpuops: 5\n", 2, "unknown key 'gpuops'"),
        ("gpu_ops: 5\n", 1, "missing key 'version'"),
        ("version: 1\n", 1, "the file holds no guess"),
        ("version: 1\nforward: attn_fwd\n", 1, "the file holds no guess"),
        ("version: 2\ngpu_ops: 5\n", 1, "the file needs format 2, but this program reads 1"),
        ("version: 1\ncopies: [1]\n", 2, "must be text or a whole number"),
        ("version: 1\norder: gemm\n", 2, "must be a list"),
        ("version: 1\norder: []\n", 2, "must not be empty"),
        ("version: 1\ndominant: []\n", 2, "must not be empty"),
        ("version: 1\nseverity: bad\ncopies: 0\n", 2, "must be 'info', 'warning' or 'error'"),
        ("version: 1\ncopies: 0\ncopies: 1\n", 3, "duplicate key 'copies'"),
        ("- 1\n", 1, "the file is not a mapping"),
        ("", 0, "the file is not a mapping"),
        ("version: 1\ncopies: {{\n", 3, "YAML: "),
    ],
)
def test_each_mistake_is_found(text: str, line: int, message: str, tmp_path: Path) -> None:
    found = problems_of(text, tmp_path)
    assert found[0][0] == line
    assert found[0][1].startswith(message)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRulesError, match="cannot be read: No such file"):
        load_guesses([tmp_path / "none.yaml"])


def test_the_problems_of_all_files_are_told(tmp_path: Path) -> None:
    files = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    for file in files:
        file.write_text("version: 1\ncopies: many\n")
    with pytest.raises(InvalidRulesError) as caught:
        load_guesses(files)
    assert [p.where.file for p in caught.value.problems] == [str(file) for file in files]


def test_a_quantity_has_the_same_last_digits_in_every_file(tmp_path: Path) -> None:
    files = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    files[0].write_text("version: 1\ngpu_ops: 1\ncopies: 0\n")
    files[1].write_text("version: 1\ncopies: 0\n")
    codes = [[rule.code for rule in file.rules] for file in load_guesses(files)]
    assert codes == [["GUESS001", "GUESS003"], ["GUESS103"]]
    with pytest.raises(AnalyzeError, match="11 guess files"):
        load_guesses([files[0]] * (MAX_FILES + 1))


def test_files_about_different_forwards_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "one.yaml", tmp_path / "two.yaml", tmp_path / "three.yaml"]
    for file, line in zip(files, ("", "forward: a", "forward: b"), strict=True):
        file.write_text(f"version: 1\ncopies: 0\n{line}\n")
    assert forward_of(load_guesses(files[:1])) is None
    assert forward_of(load_guesses(files[:2])) == "a"
    with pytest.raises(AnalyzeError, match="about the forward 'a'"):
        forward_of(load_guesses(files))


def test_what_other_tools_read_as_false_is_none(tmp_path: Path) -> None:
    file = tmp_path / "guess.yaml"
    for written, high in (("no", 0), ("false", 0), ("none", 0), ("yes", 1e15), ("true", 1e15)):
        file.write_text(f"version: 1\nsyncs: {written}\n")
        (guesses,) = load_guesses([file])
        assert guesses.rules[0].params["high"] == high


def test_the_documentation_has_every_key_and_its_example_is_valid(tmp_path: Path) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `(GUESS\d+)` \|", DOCUMENTATION, re.MULTILINE))
    assert rows == {quantity.key: quantity.code for quantity in QUANTITIES.values()}
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCUMENTATION, re.DOTALL)
    file = tmp_path / "guess.yaml"
    file.write_text(example)
    assert len(load_guesses([file])[0].guesses) == 9
    jsonschema.validate(read_yaml(file).data, guess_schema())


def test_the_schema_knows_the_keys_and_what_they_mean() -> None:
    schema = guess_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    assert set(schema["properties"]) == {"version", "forward", "severity", *QUANTITIES}
    assert all(key["description"] for key in schema["properties"].values())
    for wrong in ({"version": 1, "gpuops": 1}, {"gpu_ops": 1}, {"version": 1, "order": []}):
        assert not jsonschema.Draft7Validator(schema).is_valid(wrong)
