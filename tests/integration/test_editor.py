"""An editor with a YAML language server completes, explains and checks rule files."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from analyze.engine.installed import builtin_rules
from analyze.engine.matchers import OPERATORS, TEXT_OPERATORS, WORDS
from analyze.engine.per import Per, UnitWord, can_be_judged
from analyze.tables.catalogue import OPS
from tests.conftest import RunAnalyze
from tests.integration.lsp_client import LanguageServer

SERVER = "yaml-language-server"
VERSION = "1.25.0"
NO_NETWORK = (
    "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND",
    "ETIMEDOUT", "ERR_SOCKET_TIMEOUT",
)  # fmt: skip
SETTINGS = {"yaml": {"validate": True, "hover": True, "schemaStore": {"enable": False}}}

UNITS = {word for word in get_args(UnitWord) if can_be_judged(OPS, Per(word))}

RULE = """\
# yaml-language-server: $schema=rule.schema.json
version: 1
code: TEST101
name: test-rule
title: A test
guess: it holds
message: seen
from: ops
"""


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[LanguageServer]:
    """The language server that editors use, installed once per version."""
    cache = request.config.cache
    assert cache is not None
    program = installed(cache.mkdir(f"{SERVER}-{VERSION}"))
    with LanguageServer(["node", program, "--stdio"], SETTINGS) as running:
        yield running


def installed(folder: Path) -> Path:
    """Install the server unless it is there, whole or not at all; skip where that is impossible."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: no {SERVER} to test with")
    target = folder / "installed"
    if not target.exists():
        fresh = Path(tempfile.mkdtemp(dir=folder))
        install_into(fresh)
        try:
            fresh.rename(target)
        except OSError:  # another worker was faster
            shutil.rmtree(fresh)
    return target / "node_modules" / SERVER / "bin" / SERVER


def install_into(folder: Path) -> None:
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    command = ["npm", "install", "--prefix", str(folder), *options, f"{SERVER}@{VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm could not fetch {SERVER} in five minutes")
    if done.returncode and any(code in done.stderr for code in NO_NETWORK):
        pytest.skip(f"npm has no network to fetch {SERVER} from")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(run_analyze: RunAnalyze, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the schema, as a rule author sets it up."""
    folder = tmp_path_factory.mktemp("pack")
    assert run_analyze("rules", "schema", "-o", folder / "rule.schema.json").returncode == 0
    return folder


def write(folder: Path, name: str, body: str, head: str = RULE) -> tuple[Path, int, int]:
    """Write a rule; ``^`` in its text is the cursor. Return the file, the line and the column."""
    before, _, after = f"{head}{body}".partition("^")
    file = folder / f"{name}.yaml"
    file.write_text(before + after)
    return file, before.count("\n"), len(before.rsplit("\n", 1)[-1])


COMPLETIONS = {
    "columns of the table": ("where:\n  ^", {*WORDS, *OPS.schema}),
    "columns not used yet": (
        "where:\n  depth: 0\n  ^\nfix: x\n",
        {*WORDS, *OPS.schema} - {"depth"},
    ),
    "columns inside a branch": ("where:\n  any:\n    - s^", {*WORDS, *OPS.schema}),
    "words of a column": ("where:\n  phase: ^", {"forward", "backward", "optimizer", "other"}),
    "operators of a number": (
        "where:\n  self_us:\n    ^",
        set(OPERATORS) - set(TEXT_OPERATORS),
    ),
    "units of the table": ("per: ^", UNITS - {"region"}),
    "keys of a part": ("evidence:\n  ^", {"columns", "distinct", "limit", "sort", "where"}),
}


@pytest.mark.parametrize("what", COMPLETIONS)
def test_completion(server: LanguageServer, folder: Path, what: str) -> None:
    body, expected = COMPLETIONS[what]
    file, line, column = write(folder, what.replace(" ", "-"), body)
    server.open(file)
    items = server.ask("completion", file, line, column)["items"]
    labels = [item["label"] for item in items]
    assert sorted(labels) == sorted(expected)
    assert "registers_per_thread" not in labels


MISTAKES = {
    "where:\n  registers_per_thread: 255\n": "Property registers_per_thread is not allowed.",
    "wehre: {}\n": "Property wehre is not allowed.",
    "where:\n  name: {regexx: mm}\n": "Property regexx is not allowed.",
    "where:\n  phase: forwards\n": "Valid values: ",
    "where:\n  self_us: long\n": 'Expected "number',
}


@pytest.mark.parametrize("body", MISTAKES)
def test_mistakes_are_underlined(server: LanguageServer, folder: Path, body: str) -> None:
    file, _, _ = write(folder, f"mistake-{list(MISTAKES).index(body)}", body)
    (diagnostic,) = server.open(file)
    assert MISTAKES[body] in diagnostic["message"]
    assert diagnostic["range"]["start"]["line"] >= RULE.count("\n")


HOVERS = {
    "guess": "The hypothesis in one sentence",
    "self_us": "Duration without the ops and annotations inside it, in us.",
    "gt": "Greater than the value.",
    "phase": "Part of a training step.",
}


@pytest.mark.parametrize("word", HOVERS)
def test_hover_explains_what_is_written(server: LanguageServer, folder: Path, word: str) -> None:
    body = "where: {self_us: {gt: ms(1)}, phase: forward}\n"
    before, _, after = f"{RULE}{body}".partition(word)
    file, line, column = write(folder, f"hover-{word}", f"{before}^{word}{after}", head="")
    assert server.open(file) == []
    shown = server.ask("hover", file, line, column)["contents"]["value"]
    assert shown.startswith(HOVERS[word])


def test_built_in_rules_are_clean(server: LanguageServer, folder: Path) -> None:
    modeline = RULE.splitlines()[0]
    for rule in builtin_rules().glob("*/*.yaml"):
        file = folder / f"{rule.parent.name}-{rule.name}"
        file.write_text(f"{modeline}\n{rule.read_text()}")
        assert server.open(file) == [], rule
