"""What the README shows is what happens."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import torch

from tests.conftest import RunAnalyze
from tests.integration.shown_output import assert_printed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
CONSOLE = [text for language, text in BLOCKS if language == "console"]


def commands() -> list[tuple[str, str]]:
    """The ``$ command`` lines of console blocks with the output shown under them."""
    found = []
    for block in CONSOLE:
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        found += [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts]
    return found


def resolve(argument: str, folder: Path) -> str:
    """Turn a path of the README into one that exists; files it shows are written to ``folder``."""
    for language, text in BLOCKS:
        if language == "yaml" and text.startswith(f"# {argument}\n"):
            (folder / argument).write_text(text)
            return str(folder / argument)
    return str(ROOT / argument) if (ROOT / argument).exists() else argument


@pytest.mark.parametrize(("command", "shown"), commands())
def test_console_blocks(command: str, shown: str, run_analyze: RunAnalyze, tmp_path: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "analyze"
    resolved = [resolve(argument, tmp_path) for argument in arguments]
    done = run_analyze(*resolved)
    assert "Traceback" not in done.stderr
    printed = (done.stdout + done.stderr).replace(f"{ROOT}/", "")
    assert_printed(printed, shown, command)


def test_the_capture_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_analyze: RunAnalyze
) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    monkeypatch.chdir(tmp_path)
    exec(code, {"model": torch.nn.Linear(8, 8), "inputs": torch.randn(4, 8)})  # noqa: S102
    done = run_analyze(tmp_path / "trace.json.gz")
    assert "the annotation attn_fwd (3 forwards)" in done.stdout


def test_two_commands_set_up_a_fresh_machine() -> None:
    setup = [text.strip() for language, text in BLOCKS if language == "sh"][:1]
    assert len(setup[0].splitlines()) == 2
    run_line, test_line = setup[0].splitlines()
    assert "analyze sample_traces" in run_line
    assert "pytest" in test_line


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert "install --quiet --disable-pip-version-check -e '.[test]'" in script
    assert 'python" -m pytest' in script


def test_links_to_files_exist() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "sample_traces/README.md"):
        text = (ROOT / name).read_text()
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert ((ROOT / name).parent / target).exists(), f"{name}: {target}"


def test_no_path_of_a_machine_is_in_the_project() -> None:
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if files.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"/(?:home|root|work|Users)/\w")
    for name in filter(None, files.stdout.split("\0")):
        path = ROOT / name
        if path.suffix in (".gz", ".png") or not path.is_file() or path == Path(__file__):
            continue
        assert not pattern.search(path.read_text()), name
