"""Completion, as shells do it: bash and zsh in a terminal, fish by its own engine."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
WAIT_SECONDS = 120

ENVIRONMENT = {"PATH": f"{BIN}:/usr/bin:/bin", "TERM": "dumb", "LC_ALL": "C.UTF-8"}

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ['eval "$({} completion bash)"']),
    "zsh": (
        ["zsh", "-f", "-i"],
        ["autoload -U compinit; compinit -u -D", 'eval "$({} completion zsh)"'],
    ),
}

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(tmp_path: Path) -> Complete:
    """Complete the last of some words by click's protocol; returns what would be offered."""

    def run(*words: str, program: str = "analyze") -> list[str]:
        typed = {"COMP_WORDS": " ".join([program, *words]), "COMP_CWORD": str(len(words))}
        done = subprocess.run(
            [BIN / program],
            env={**ENVIRONMENT, **typed, f"_{program.upper()}_COMPLETE": "bash_complete"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]

    return run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["che"], ["file,che", "check"]),
        (["trace"], ["file,trace"]),
        (["--fail"], ["--fail-on"]),
        (["x.json", "--fail-on", ""], ["info", "warning", "error", "never"]),
        (["x.json", "--select", "COP"], ["COPY", "COPY101", "COPY102"]),
        (["x.json", "--select", "COPY101,SYN"], ["COPY101,SYNC", "COPY101,SYNC101"]),
        (["x.json", "--ignore", "hidden"], ["hidden-memcpy"]),
        (["x.json", "--set", "COPY101."], ["COPY101.min_bytes=", "COPY101.min_share="]),
        (["explain", "copy"], ["COPY101", "COPY102"]),
        (["rules", "show", "math"], ["math-backend"]),
        (["rules", "sh"], ["show"]),
        (["kernels", "x.json", "--where", "fam"], ["family"]),
        (["columns", "kern"], ["kernels"]),
        (["ops", "--group-by", "name,sh"], ["name,shapes"]),
        (["x.json", "--also", "sa"], ["sarif="]),
        (["diff", "a", "b", "--fail-if", "cpu_"], ["cpu_time", "cpu_ops"]),
        (["ops", "--sort", "self_device_u"], ["self_device_us"]),
        (["diff", "a", ""], ["file,"]),
        (["baseline", "up"], ["update"]),
        (["no-such-command", "x", "--select", "no-such"], []),
    ],
)
def test_words_are_completed(words: list[str], expected: list[str], complete: Complete) -> None:
    assert complete(*words) == expected


MINE = """\
version: 1
code: MINE101
name: mine-own
title: x
params:
  # why
  least: 3  # us
from: ops
"""


def test_rules_of_ones_own_are_completed(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.yaml").write_text(MINE)
    assert complete("explain", "MINE") == []
    (tmp_path / "pyproject.toml").write_text('[tool.kinetolint]\nrules = ["rules"]\n')
    assert complete("explain", "MINE") == ["MINE101"]
    assert complete("x.json", "--set", "MINE") == ["MINE101.least="]
    assert complete("x.json", "--isolated", "--set", "MINE") == []
    (tmp_path / "pyproject.toml").write_text("not toml [")
    assert complete("x.json", "--rules", "rules", "--set", "MINE") == ["MINE101.least="]


def test_every_built_in_rule_is_completed(complete: Complete) -> None:
    from analyze.engine.loading import load_rules  # noqa: PLC0415

    rules = load_rules(())
    assert complete("explain", "''") == [rule.code for rule in rules]
    settings = {f"{rule.code}.{name}=" for rule in rules for name in rule.params}
    assert set(complete("x.json", "--set", "''")) == settings


def test_completing_a_code_loads_no_rules() -> None:
    script = (
        "import sys, atexit\n"
        "heavy = ('polars', 'pydantic', 'ruamel', 'orjson')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules]))\n"
        "sys.argv = ['analyze']\n"
        "from analyze.cli import main\n"
        "main()\n"
    )
    asked = {"COMP_WORDS": "analyze explain COPY102", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**ENVIRONMENT, **asked, "_ANALYZE_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["plain,COPY102", "[]"]


def test_variants_are_completed(complete: Complete) -> None:
    from capture.variants import VARIANTS  # noqa: PLC0415

    offered = complete("--variant", "''", program="capture")
    assert offered == ["file,", *(variant.name for variant in VARIANTS)]
    assert complete("--phase", "b", program="capture") == ["backward"]


def press_tab(shell: str, program: str, typed: str, until: str) -> str:
    """Type into a shell in a terminal, press TAB, and return what the terminal shows."""
    command, setup = SHELLS[shell]
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    try:
        for line in setup:
            os.write(terminal, f"{line.format(program)}\n".encode())
        os.write(terminal, b"echo rea''dy\n")
        assert "ready\r\n" in _read(terminal, "ready\r\n")
        os.write(terminal, f"{typed}\t".encode())
        return _read(terminal, until)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _read(terminal: int, until: str) -> str:
    shown, deadline = b"", time.monotonic() + WAIT_SECONDS
    while until.encode() not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("program", "typed", "until"),
    [
        ("analyze", "analyze rules show SYNC", "SYNC101"),
        ("analyze", "analyze x.json --select COPY101,SYNC1", "COPY101,SYNC101"),
        ("analyze", "analyze kernels x.json --where fami", "family"),
        ("capture", "capture --variant sdpa-cud", "sdpa-cudnn"),
    ],
)
def test_in_a_terminal(shell: str, program: str, typed: str, until: str) -> None:
    if shutil.which(shell, path=ENVIRONMENT["PATH"]) is None:
        pytest.skip(f"{shell} is not installed")
    assert until in press_tab(shell, program, typed, until)


def test_bash_leaves_no_space_where_a_value_follows() -> None:
    shown = press_tab("bash", "analyze", "analyze x --set COPY101.min_b", "bytes=")
    assert shown.endswith("COPY101.min_bytes=")


def test_in_fish() -> None:
    if shutil.which("fish", path=ENVIRONMENT["PATH"]) is None:
        pytest.skip("fish is not installed")
    script = "source (analyze completion fish | psub); complete -C 'analyze {}'"

    def offered(typed: str) -> list[str]:
        run = ["fish", "--no-config", "-c", script.format(typed)]
        done = subprocess.run(run, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert [line.split("\t")[0] for line in offered("explain COPY")] == ["COPY101", "COPY102"]
    assert offered("ops --group-by name,sh") == ["name,shapes"]
    assert offered("summ") == ["summary\tPrint coverage, GPU busy and idle time,..."]
