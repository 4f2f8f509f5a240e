"""``--where`` means and says the same in every command that has it."""

import json
from pathlib import Path

import pytest

from tests.conftest import RunAnalyze

COMMANDS = {
    "ops": ("self_us > 1e9", "op", "groups"),
    "kernels": ("dur_us > 1e9", "kernel", "names"),
    "gaps": ("dur_us > 1e9", "gap", "longest"),
    "regions": ("dur_us > 1e9", "annotation", "names"),
}
"""A condition that holds for no row, what a row is, and where the rows stand in the JSON."""


@pytest.mark.parametrize("command", COMMANDS)
def test_where_without_a_match_is_a_result(
    command: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    expression, noun, rows = COMMANDS[command]
    sample = samples / "synthetic-naive.json.gz"
    done = run_analyze(command, sample, "--where", expression)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if expression in line]
    assert line.split()[0] == "where"
    assert f"{expression}: none of " in line
    assert line.endswith(f" {noun}s")
    data = json.loads(run_analyze(command, sample, "--where", expression, "--format=json").stdout)
    assert data[rows] == []
    assert data["where"].keys() == {"expression", "rows", "matched", "undecided"}
    assert data["where"]["expression"] == expression
    assert (data["where"]["matched"], data["where"]["undecided"]) == (0, 0)
    assert data["where"]["rows"] > 0


@pytest.mark.parametrize("command", COMMANDS)
def test_without_where_the_key_is_null(
    command: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze(command, samples / "synthetic-naive.json.gz", "--format", "json")
    assert json.loads(done.stdout)["where"] is None


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("expression", "help_text"),
    [
        ("nothing.like_it > 1", "write a column of `{command}`, or trace.NAME"),
        ("forward.gpu_ops > 1", "write a column of `{command}`, or trace.NAME"),
        ("params.share > 1", "write a column of `{command}`, or trace.NAME"),
        ("trace.cpu_su > 1", "did you mean 'cpu_us'?"),
    ],
)
def test_a_wrong_name_with_a_dot_says_what_can_have_one(
    command: str, expression: str, help_text: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze(command, samples / "synthetic-naive.json.gz", "--where", expression)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert help_text.format(command=command) in done.stderr
    assert "None" not in done.stderr
    assert "rule is judged" not in done.stderr


def test_where_on_a_table_that_was_not_recorded_cannot_be_answered(
    tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    path = tmp_path / "gpu-only.json"
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel]}))
    for command, (expression, _, _) in COMMANDS.items():
        if command in ("ops", "regions"):
            done = run_analyze(command, path, "--where", expression)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), command
