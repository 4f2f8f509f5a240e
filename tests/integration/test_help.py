"""What ``--help`` says, and that it is so."""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from analyze.cli import analyze
from analyze.cli.help_page import Command, Group
from tests.conftest import RunAnalyze

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

OF_ITS_OWN = {
    "--accept": "of guess, what TRACE holds; of baseline update, what is new",
    "--baseline": "of compare, the variant that times are relative to",
    "--output": "of commands that write a file of their own: which, and what becomes of one there",
    "--expect": "of guess, the one file that TRACE is compared with",
    "--format": "of check, more formats than of the others",
    "--from": "of rules new, a table",
    "--keep": "of open, to go on serving; of trim, a name",
    "--limit": "rows of what the command lists",
    "--schema": "of guess, its file",
    "--sort": "columns differ",
    "--where": "names the table",
}
"""Options that mean something else in one command than in another."""

NOT_RUN = {
    "analyze open trace.json.gz --finding COPY101": "waits for a browser",
    'eval "$(analyze completion zsh)"': "is for another shell; see test_completion",
}


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands with what is typed to run them, groups before their commands."""
    todo: list[tuple[str, click.Command]] = [("analyze", analyze)]
    for name, command in todo:
        yield name, command
        if isinstance(command, click.Group):
            command.list_commands(click.Context(command))
            todo += [(f"{name} {sub}", found) for sub, found in command.commands.items()]


COMMANDS = dict(every_command())
LEAVES = {name: c for name, c in COMMANDS.items() if not isinstance(c, click.Group)}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns_and_is_plain_without_a_terminal(name: str) -> None:
    typed = [*name.split()[1:], "--help"]
    done = CliRunner().invoke(analyze, typed, prog_name="analyze", env={"COLUMNS": "80"})
    assert (done.exit_code, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith(f"Usage: {name} [OPTIONS]")
    assert "\u2026" not in done.stdout  # nothing is cut off


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_examples_exit_codes_and_neighbours(name: str) -> None:
    command = LEAVES[name]
    assert isinstance(command, Command)
    page = command.page
    assert page.examples
    assert page.exit_codes is not None
    assert 0 in page.exit_codes
    assert page.see_also
    assert all(len(example.command) <= 77 for example in page.examples)
    assert command.help is not None
    assert "Exit code" not in command.help  # they are on the page
    for other in page.see_also:
        words = [word for word in other.split() if not word.startswith("-")]
        assert (
            words[0] == "capture"
            or any(" ".join(words[:length]) in LEAVES for length in range(1, len(words) + 1))
            or other in COMMANDS
        ), other


def test_the_commands_are_grouped(run_analyze: RunAnalyze) -> None:
    for name, command in COMMANDS.items():
        if name.count(" ") == 1:
            assert getattr(command, "panel", None), name
    shown = run_analyze("--help", COLUMNS="80").stdout
    headings = re.findall(r"^(\w[\w ]+):\s*$", shown, flags=re.MULTILINE)
    assert headings == [
        "Options", "Find what is wrong", "Look from one side", "Compare", "Share", "Write rules",
        "Set up", "Examples", "Exit codes", "Environment", "See also",
    ]  # fmt: skip


def test_an_option_says_the_same_everywhere() -> None:
    texts = defaultdict(lambda: defaultdict(list))  # type: ignore[var-annotated]
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                texts[parameter.opts[-1]][parameter.help].append(name)
    differing = {option: dict(helps) for option, helps in texts.items() if len(helps) > 1}
    assert {option: helps for option, helps in differing.items() if option not in OF_ITS_OWN} == {}
    assert set(OF_ITS_OWN) <= set(texts)


def test_a_command_that_heeds_the_variable_of_the_cache_has_the_option() -> None:
    for name, command in LEAVES.items():
        assert isinstance(command, Command)
        reads = "ANALYZE_CACHE" in (command.page.environment or {})
        has_option = any("--cache" in parameter.opts for parameter in command.params)
        assert reads == has_option, name


def loaded_of(modules: tuple[str, ...], *words: str | Path) -> str:
    """Run ``analyze`` with these words; return which of the modules it loaded, as a list."""
    script = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print([m for m in {modules!r} if m in sys.modules]))\n"
        "from analyze.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout.splitlines()[-1]


def test_help_loads_no_frames_and_no_models() -> None:
    heavy = ("polars", "pydantic", "ruamel", "orjson", "backports.zstd", "torch")
    assert loaded_of(heavy, "check", "--help") == "[]"


@pytest.mark.parametrize("command", ["check", "summary", "ops"])
def test_a_command_loads_nothing_that_draws_help(command: str, samples: Path) -> None:
    trace = samples / "synthetic-naive.json.gz"
    assert loaded_of(("rich_click",), command, trace) == "[]"


@pytest.mark.parametrize("words", [["--help"], [], ["rules"], ["rules", "list", "-h"]])
def test_help_in_a_pipe_is_coloured_where_that_is_wanted(
    words: list[str], run_analyze: RunAnalyze
) -> None:
    plain, forced = run_analyze(*words), run_analyze(*words, FORCE_COLOR="1")
    assert "\x1b[" not in plain.stdout
    assert "\x1b[" in forced.stdout
    without_colours = re.sub(r"\x1b\[[\d;]*m", "", forced.stdout)
    assert [line.rstrip() for line in without_colours.splitlines()] == plain.stdout.splitlines()


@pytest.mark.parametrize("words", [[], ["rules"]])
def test_a_group_that_is_told_no_command_shows_its_help_and_fails(
    words: list[str], run_analyze: RunAnalyze
) -> None:
    done = run_analyze(*words)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == run_analyze(*words, "--help").stdout


@pytest.mark.parametrize("words", [["--help"], []])
def test_help_that_cannot_be_printed_is_an_error(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [BIN / "analyze", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (
        2, "analyze: the output cannot be written: No space left on device\n"
    )  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    samples = ROOT / "sample_traces"
    for name, sample in (("trace", "naive"), ("before", "naive"), ("after", "naive-inplace")):
        shutil.copy(samples / f"synthetic-{sample}.json.gz", folder / f"{name}.json.gz")
    (folder / "captures").mkdir()
    for sample in ("naive", "sdpa-flash"):
        shutil.copy(samples / f"synthetic-{sample}.json.gz", folder / "captures")
    (folder / "memory.json.gz").write_text(MEMORY_TRACE)
    readme = (ROOT / "README.md").read_text()
    rule = re.search(r"```yaml\n(# softmax\.yaml\n.*?)```", readme, flags=re.DOTALL)
    assert rule is not None
    (folder / "softmax.yaml").write_text(rule[1])
    for made in ("guess trace.json.gz --accept -o good.yaml", "baseline create trace.json.gz"):
        subprocess.run([BIN / "analyze", *made.split()], cwd=folder, check=True)
    return folder


MEMORY_TRACE = """{"schemaVersion": 1, "traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 0, "dur": 10},
 {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "s": "t",
  "args": {"Total Allocated": 512, "Bytes": 512, "Addr": 64, "Device Id": -1, "Device Type": 0}}
]}"""

EXAMPLES = [
    pytest.param(name, example.command, id=example.command)
    for name, command in COMMANDS.items()
    if isinstance(command, Command | Group)
    for example in command.page.examples
    if example.command not in NOT_RUN
]


@pytest.mark.parametrize(("name", "command"), EXAMPLES)
def test_examples_do_what_they_say(name: str, command: str, files: Path, tmp_path: Path) -> None:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    if "baseline create" in command:
        (tmp_path / "baseline.json").unlink()
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=tmp_path,
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path), "ANALYZE_CACHE": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    page = COMMANDS[name].page  # type: ignore[attr-defined]
    assert done.returncode in {0, 1} & set(page.exit_codes or {}), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout or list(tmp_path.rglob("*")) != list(files.rglob("*"))


def test_the_examples_that_are_not_run_exist() -> None:
    every = {
        example.command
        for command in COMMANDS.values()
        if isinstance(command, Command | Group)
        for example in command.page.examples
    }
    assert set(NOT_RUN) <= every


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_help_ends_in_blanks(name: str) -> None:
    done = CliRunner().invoke(analyze, [*name.split()[1:], "--help"], prog_name="analyze")
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


def test_the_help_of_gaps_names_every_cause() -> None:
    from analyze.report.gaps_text import CAUSES  # noqa: PLC0415

    shown = CliRunner().invoke(analyze, ["gaps", "--help"]).stdout
    words = set(re.findall(r"\w+", shown))
    assert {cause for cause in CAUSES if cause} <= words


@pytest.mark.parametrize(
    ("option", "suggested"), [("--by", "--group-by"), ("--limt", "--limit"), ("--nothing", "")]
)
def test_an_unknown_option_is_told_with_those_meant(
    option: str, suggested: str, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("ops", "trace.json", option, "x")
    assert (done.returncode, done.stdout) == (2, "")
    hint = f" Did you mean '{suggested}'?" if suggested else ""
    assert done.stderr == (
        f"analyze: No such option '{option}'.{hint} (see `analyze ops --help`)\n"
    )
