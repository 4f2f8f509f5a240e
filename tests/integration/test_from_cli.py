"""The installed command: store once, show in any format; ``analyze schema``."""

import json
from pathlib import Path

import jsonschema
import pytest

from analyze.report.formats import FORMATS
from tests.conftest import RunAnalyze

ERRORS, NONE, USAGE, UNREADABLE = 1, 0, 2, 3
"""Exit codes."""


@pytest.fixture(scope="module")
def two(samples: Path) -> list[str]:
    names = ("synthetic-naive", "synthetic-sdpa-flash")
    return [str(samples / f"{name}.json.gz") for name in names]


@pytest.fixture(scope="module")
def stored(
    run_analyze: RunAnalyze, two: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("stored") / "result.json"
    assert run_analyze(*two, "--isolated", "-o", path).returncode == ERRORS
    return path


def every_format(folder: Path) -> list[str]:
    """Options that write a file of each format."""
    return [part for name in FORMATS for part in ("--also", f"{name}={folder / name}")]


def test_shown_again_as_it_was(
    stored: Path, two: list[str], run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    direct, again = tmp_path / "direct", tmp_path / "again"
    direct.mkdir()
    again.mkdir()
    of_traces = run_analyze(*two, "--isolated", *every_format(direct))
    of_results = run_analyze("--from", stored, "--isolated", *every_format(again))
    assert (of_results.returncode, of_results.stdout) == (of_traces.returncode, of_traces.stdout)
    assert not of_results.stderr
    for name in FORMATS:
        assert (again / name).read_bytes() == (direct / name).read_bytes(), name


def test_one_reading_many_files(
    stored: Path, two: list[str], run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    lines, log, json_log = (tmp_path / name for name in ("r.jsonl", "r.sarif", "r.sarif.json"))
    also = [part for path in (lines, log, json_log) for part in ("--also", path)]
    run_analyze("--from", stored, *also)
    assert log.read_text() == json_log.read_text()
    assert json.loads(log.read_text())["version"] == "2.1.0"
    assert [json.loads(line)["trace"] for line in lines.read_text().splitlines()] == two


def test_several_files_and_standard_input(stored: Path, run_analyze: RunAnalyze) -> None:
    twice = run_analyze(
        "--from", stored, "--from", "-", "--format", "jsonl", stdin=stored.read_bytes()
    )
    assert len(twice.stdout.splitlines()) == 4


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], ERRORS),
        (["--fail-on", "error"], ERRORS),
        (["--fail-on", "never"], NONE),
    ],
)
def test_exit_codes(options: list[str], code: int, stored: Path, run_analyze: RunAnalyze) -> None:
    assert run_analyze("--from", stored, "--isolated", *options).returncode == code


def test_the_configuration_says_what_fails(
    stored: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    config = tmp_path / "pyproject.toml"
    config.write_text('[tool.kinetolint]\nfail-on = "never"\n')
    assert run_analyze("--from", stored, "--config", config).returncode == NONE
    assert (
        run_analyze("--from", stored, "--config", config, "--fail-on", "error").returncode == ERRORS
    )


def test_a_baseline_is_compared_with_what_was_stored(
    stored: Path, two: list[str], run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    baseline = tmp_path / "known.json"
    made = run_analyze("baseline", "create", *two, "-o", baseline, "--reason", "for now")
    assert made.returncode == NONE, made.stderr
    again = run_analyze("--from", stored, "--isolated", "--baseline", baseline)
    direct = run_analyze(*two, "--isolated", "--baseline", baseline)
    assert (again.returncode, again.stdout) == (direct.returncode, direct.stdout)
    assert again.returncode == NONE


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["trace.json"], "TRACE and --from exclude each other"),
        (["--select", "COPY"], "--select is about reading a trace"),
        (["--rules", "x.yaml"], "--rules is about reading a trace"),
        (["--set", "COPY101.min_bytes=1"], "--set is about reading a trace"),
        (["--forward", "x"], "--forward is about reading a trace"),
        (["--expect", "guess.yaml"], "--expect is about reading a trace"),
        (["--cache", "off"], "--cache is about reading a trace"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_does_not_fit_is_refused(
    options: list[str], words: str, stored: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("--from", stored, *options)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith(f"analyze: {words}")
    assert done.stderr.count("\n") == 1


def test_neither_trace_nor_result(run_analyze: RunAnalyze) -> None:
    done = run_analyze("check")
    assert done.returncode == USAGE
    assert done.stderr.startswith("analyze: Missing argument 'TRACE...'.")


def test_a_file_that_cannot_be_used_costs_only_itself(
    stored: Path, two: list[str], run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    done = run_analyze("--from", tmp_path / "none.json", "--from", two[0], "--from", stored)
    assert done.returncode == UNREADABLE
    assert done.stdout == run_analyze("--from", stored).stdout
    missing, compressed = done.stderr.splitlines()
    assert (
        missing == f"analyze: {tmp_path / 'none.json'}: cannot be read: No such file or directory"
    )
    assert "is compressed" in compressed


def test_a_result_given_as_a_trace_is_named(
    stored: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    lines = tmp_path / "result.jsonl"
    run_analyze("--from", stored, "-o", lines)
    for path in (stored, lines):
        done = run_analyze(path)
        assert done.returncode == UNREADABLE
        assert (
            f"{path}: this is a result of analyze, not a trace; show it with --from" in done.stderr
        )


def test_a_result_is_not_overwritten(stored: Path, run_analyze: RunAnalyze) -> None:
    before = stored.read_bytes()
    done = run_analyze("--from", stored, "-o", stored, "--format", "text")
    assert done.returncode == USAGE
    assert "would overwrite it" in done.stderr
    assert stored.read_bytes() == before


def test_a_trace_whose_name_is_not_utf8(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    name = tmp_path / "\udcff.json.gz"
    try:
        name.write_bytes((samples / "cpu-naive.json.gz").read_bytes())
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    done = run_analyze(name, *every_format(tmp_path))
    assert not done.stderr
    again = tmp_path / "again"
    again.mkdir()
    shown = run_analyze("--from", tmp_path / "json", *every_format(again))
    assert shown.stdout == done.stdout
    for form in FORMATS:
        assert (again / form).read_bytes() == (tmp_path / form).read_bytes(), form


def test_the_schema_is_printed_and_holds(
    stored: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    printed = run_analyze("schema")
    schema = json.loads(printed.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(stored.read_text()), schema)
    path = tmp_path / "result.schema.json"
    assert run_analyze("schema", "-o", path).returncode == NONE
    assert path.read_text() == printed.stdout


def test_what_could_not_be_used_is_said_in_every_format(
    stored: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    missing = tmp_path / "none.json"
    options = ("--from", missing, "--from", stored)
    lines = run_analyze(*options, "--format", "concise").stdout.splitlines()
    assert lines[0] == f"{missing}: failed: cannot be read: No such file or directory"
    annotations = run_analyze(*options, "--format", "github").stdout
    assert annotations.startswith("::error title=kinetolint::")
    [run] = json.loads(run_analyze(*options, "--format", "sarif").stdout)["runs"]
    assert not run["invocations"][0]["executionSuccessful"]
    first, *others = json.loads(run_analyze(*options, "--format", "json").stdout)
    assert [entry["trace"] for entry in first["unread"]] == [str(missing)]
    assert not any(other["unread"] for other in others)


def test_nothing_is_written_where_no_result_could_be_used(
    run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "r.sarif"
    done = run_analyze("--from", tmp_path / "none.json", "--also", output, "--format", "github")
    assert done.returncode == UNREADABLE
    assert not output.exists()
    assert f"{output}: not written" in done.stderr
    assert done.stdout.count("::error title=kinetolint::") == 1
