"""Every line of the rule tutorial is run, in order, as a newcomer would."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from analyze.config import Config
from analyze.engine.loading import load_rules
from analyze.engine.validation import Sound, checked
from tests.conftest import ROOT, RunAnalyze
from tests.integration.shown_output import assert_printed

TEXT = (ROOT / "rules/README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str) -> None:
    """Write or extend the file that the first line of a block names."""
    heading, body = text.split("\n", 1)
    words = heading.removeprefix("# ").split()
    file = Path(words[-1])
    file.parent.mkdir(exist_ok=True)
    with file.open("a" if words[:2] == ["add", "to"] else "w") as stream:
        stream.write(body if words[:2] == ["add", "to"] else text)


@pytest.mark.usefixtures("project")
def test_the_tutorial_is_what_happens(run_analyze: RunAnalyze) -> None:
    commands = 0
    for language, text in BLOCKS:
        if language == "yaml":
            write(text)
        elif language == "console":
            command, shown = text.removeprefix("$ ").split("\n", 1)
            program, *arguments = shlex.split(command)
            assert program == "analyze"
            done = run_analyze(*arguments)
            assert done.returncode == 0, done.stderr
            assert_printed(done.stdout, shown, command)
            commands += 1
    assert commands >= 6


@pytest.mark.usefixtures("project")
def test_the_pack_shown_is_valid() -> None:
    (text,) = [text for language, text in BLOCKS if text.startswith("# our-rules/pack.yaml")]
    write(text)
    loaded = {rule.code: rule for rule in load_rules(["our-rules"], builtin=False)}
    assert loaded["OCC101"].params["min_share"] == 0.1
    assert loaded["OCC101"].model.status == "preview"


def test_the_configuration_shown_is_valid() -> None:
    (text,) = [text for language, text in BLOCKS if language == "toml"]
    assert isinstance(checked(Config, tomllib.loads(text)["tool"]["kinetolint"]), Sound)


def test_every_command_of_the_loop_exists(run_analyze: RunAnalyze) -> None:
    loop = TEXT.split("## The loop")[1].split("\n## ")[0]
    commands = re.findall(r"`analyze ([a-z ]+)", loop)
    assert len(commands) >= 7
    for command in commands:
        assert run_analyze(*command.split(), "--help").returncode == 0, command
