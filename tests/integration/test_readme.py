"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.shown_output import assert_printed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
CONSOLE = [text for language, text in BLOCKS if language == "console"]


def commands() -> list[tuple[str, str]]:
    """The ``$ command`` lines of console blocks with the output shown under them."""
    found = []
    for block in CONSOLE:
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        found += [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts]
    return found


def run_installed(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples and the files that the README shows."""
    made = tmp_path_factory.mktemp("readme")
    (made / "sample_traces").symlink_to(ROOT / "sample_traces")
    for _, text in BLOCKS:
        if found := re.match(r"# (\w+\.(?:py|yaml))\n", text):
            (made / found[1]).write_text(text)
    return made


def test_console_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for command, shown in commands():
        program, *arguments = shlex.split(command)
        assert program in ("analyze", "capture")
        done = run_installed(program, *arguments)
        assert "Traceback" not in done.stderr
        is_measured = program == "capture" or arguments[0] == "first"
        printed = done.stdout + done.stderr  # a terminal shows both
        assert_printed(printed, shown, command, same_numbers=not is_measured)


@pytest.mark.parametrize("text", [text for text in PYTHON if "import record" in text])
def test_the_examples_of_record(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(text.splitlines()) <= 18  # 15 lines of code
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "example.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "captures").iterdir()
    analyzed = run_installed("analyze", str(folder))
    assert "with the profiler off" in analyzed.stdout
    assert re.search(r"the annotation (train-step|infer) \(3 forwards\)", analyzed.stdout)


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
