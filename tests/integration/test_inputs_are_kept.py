"""No output takes the place of a file that the run reads, or of another output."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import RunAnalyze

RULE = (
    "version: 1\ncode: MINE101\nname: mine\ntitle: t\nguess: g\nfrom: kernels\n"
    "measure: {n: count()}\nexpect: n == 0\nmessage: m\n"
)
CONFIG = '[tool.kinetolint]\nbaseline = "known.json"\nrules = ["more.yaml"]\n'
TRACE = "trace.json.gz"


@pytest.fixture(scope="module")
def made(samples: Path, tmp_path_factory: pytest.TempPathFactory, run_analyze: RunAnalyze) -> Path:
    """A folder with one file of each kind that a run can read."""
    folder = tmp_path_factory.mktemp("project")
    trace = shutil.copy(samples / "synthetic-naive.json.gz", folder / TRACE)
    (folder / "rules").mkdir()
    (folder / "rules/mine.yaml").write_text(RULE)
    more = RULE.replace("MINE101", "MINE102").replace("mine", "more")
    (folder / "more.yaml").write_text(more)
    (folder / "guess.yaml").write_text("version: 1\ngpu_ops: 5\n")
    known = folder / "known.json"
    assert run_analyze("baseline", "create", trace, "--isolated", "-o", known).returncode == 0
    shutil.copy(known, folder / "other.json")
    (folder / "link.json").symlink_to("known.json")
    for name in ("pyproject.toml", "own.toml"):
        (folder / name).write_text(CONFIG)
    (folder / "captured").mkdir()
    shutil.copy(trace, folder / "captured")
    manifest = {"schema_version": 1, "captures": []}
    (folder / "captured/capture.json").write_text(json.dumps(manifest))
    assert run_analyze(trace, "--isolated", "-o", folder / "result.json").returncode == 1
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, the current one."""
    folder = shutil.copytree(made, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ([TRACE], "known.json"),
        ([TRACE], "link.json"),
        ([TRACE], "pyproject.toml"),
        ([TRACE], "more.yaml"),
        ([TRACE, "--baseline", "other.json"], "other.json"),
        ([TRACE, "--config", "own.toml"], "own.toml"),
        ([TRACE, "--rules", "rules"], "rules/mine.yaml"),
        ([TRACE, "--rules", "rules/mine.yaml"], "rules/mine.yaml"),
        ([TRACE, "--expect", "guess.yaml"], "guess.yaml"),
        (["captured"], "captured/capture.json"),
        (["--from", "result.json"], "known.json"),
        (["--from", "result.json"], "pyproject.toml"),
        (["--from", "result.json", "--baseline", "other.json"], "other.json"),
        (["compare", TRACE, "--rules", "rules"], "rules/mine.yaml"),
        (["compare", "captured"], "captured/capture.json"),
        (["summary", "captured"], "captured/capture.json"),
        (["diff", TRACE, TRACE], "pyproject.toml"),
        (["annotate", TRACE], "more.yaml"),
        (["trim", TRACE, "--around", "1"], "more.yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_no_input_is_overwritten(command: list[str], file: str, run_analyze: RunAnalyze) -> None:
    before = Path(file).read_bytes()
    is_check = command[0] in (TRACE, "captured", "--from")
    outputs = [("-o", file, "--format", "json"), ("--also", f"json={file}")]
    for options in outputs if is_check else [("-o", file)]:
        done = run_analyze(*command, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"analyze: {file}: is one of the inputs" in done.stderr
        assert done.stderr.count("\n") == 1
        assert Path(file).read_bytes() == before


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "report.txt", "--also", "text=report.txt"),
        ("-o", "report.json", "--also", "./report.json"),
        ("--also", "report.json", "--also", "html=link"),
        ("--also", "report.json", "--also", "json=captured/../report.json"),
    ],
    ids=str,
)
def test_no_file_is_written_twice(
    options: tuple[str, ...], project: Path, run_analyze: RunAnalyze
) -> None:
    Path("link").symlink_to("report.json")
    done = run_analyze(TRACE, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is written twice" in done.stderr
    assert not list(project.glob("report.*"))


def test_what_is_added_to_may_be_named_twice(project: Path, run_analyze: RunAnalyze) -> None:
    summary = project / "summary.md"
    for file, environment in (
        (Path("/dev/null"), {}),
        (summary, {"GITHUB_STEP_SUMMARY": str(summary)}),
    ):
        also = ("--also", f"markdown={file}", "--also", f"text={file}")
        assert run_analyze(TRACE, *also, "--fail-on", "never", **environment).returncode == 0
    assert summary.read_text().count("COPY101") > 1
