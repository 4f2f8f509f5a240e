"""``analyze`` takes a folder that ``capture`` wrote as one thing."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from analyze.cli.traces import find_traces, worst_exit_code
from analyze.report.markdown_words import code
from tests.conftest import RunAnalyze

SKIPPED = "torch has no such backend for this"


def entry(name: str, files: list[str], **more: Any) -> dict[str, Any]:
    return {
        "name": name, "kind": "variant", "status": "captured", "reason": None, "workload": None,
        "annotations": ["attn_fwd"], "traces": [{"file": file} for file in files],
        "latency": None, "memory": None, "numerics": None, **more,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    """Three captures in an order of their own, one of them wrong, and one that was skipped."""
    captured = tmp_path / "captured"
    captured.mkdir()
    for name in ("sdpa-math", "naive", "sdpa-flash"):
        shutil.copy(samples / f"cpu-{name}.json.gz", captured / f"{name}.json.gz")
    captures = [
        entry("sdpa-math", ["sdpa-math.json.gz"], latency={"median_us": 571.0}),
        entry("sdpa-flash", ["sdpa-flash.json.gz"], memory={"peak_bytes": 1 << 20}),
        entry("naive", ["naive.json.gz"], status="wrong", numerics={"ok": False}),
        entry("sdpa-cudnn", [], status="skipped", reason=SKIPPED),
    ]
    text = json.dumps({"schema_version": 1, "captures": captures})
    (captured / "capture.json").write_text(text)
    return captured


def test_reports_come_in_the_order_of_capture_and_side_by_side(
    folder: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze(folder, "--select", "ATTN101,TRACE104")
    assert done.returncode == 1
    assert "TRACE104 wrong-numerics" in done.stdout
    table = done.stdout[done.stdout.index("Captures side by side") :].splitlines()
    assert [line.split()[0] for line in table[2:5]] == ["sdpa-math", "sdpa-flash", "naive"]
    assert "571 us" in table[2]
    assert "1 MiB" in table[3]
    assert "WRONG" in table[4]
    assert table[4].endswith("TRACE104")
    assert table[5] == f"sdpa-cudnn: skipped: {SKIPPED}"
    assert done.stderr == ""


def test_the_capture_json_stands_for_its_folder(folder: Path, run_analyze: RunAnalyze) -> None:
    by_folder = run_analyze(folder)
    by_file = run_analyze(folder / "capture.json")
    assert by_file.stdout == by_folder.stdout
    reports = json.loads(run_analyze(folder, "--format", "json").stdout)
    notes = [report["coverage"]["capture"] for report in reports]
    assert [note["latency_us"] for note in notes] == [571.0, None, None]
    assert [note["capture_status"] for note in notes] == ["captured", "captured", "wrong"]


def test_a_trace_that_is_gone_is_missed(folder: Path, run_analyze: RunAnalyze) -> None:
    (folder / "naive.json.gz").unlink()
    done = run_analyze(folder)
    assert done.returncode == 3
    assert "capture.json: names the trace naive.json.gz, which is not there" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "sdpa-flash" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "COPY101"),
        ("trim", "--steps", "1", "-o", "out.json"),
        ("annotate", "-o", "out.json"),
        ("open", "--no-browser"),
        ("guess", "--accept", "-o", "out.yaml"),
        ("diff", "whole.json.gz"),
    ],
)
def test_which_trace_was_meant_is_not_guessed_where_one_is_gone(
    command: tuple[str, ...], folder: Path, run_analyze: RunAnalyze, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    shutil.copy(folder / "naive.json.gz", "whole.json.gz")
    for gone in ("naive", "sdpa-math"):
        (folder / f"{gone}.json.gz").unlink()
    done = run_analyze(*command, folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert "capture.json: names the trace naive.json.gz, which is not there" in done.stderr
    assert not list(Path().glob("out.*"))
    assert run_analyze("summary", folder).returncode == 3


def test_an_unusable_capture_json_does_not_hide_the_traces(
    folder: Path, run_analyze: RunAnalyze
) -> None:
    (folder / "capture.json").write_text("{")
    done = run_analyze(folder)
    assert done.returncode == 3
    assert "capture.json: is not JSON" in done.stderr
    assert done.stdout.count("the annotation attn_fwd") == 3
    assert "what was measured beside it is not known" in done.stdout


def test_folders_of_captures_are_read_one_after_the_other(
    folder: Path, run_analyze: RunAnalyze
) -> None:
    shutil.copytree(folder, folder.parent / "again")
    (folder / ".recording-x").mkdir()
    (folder / ".recording-x/trace.json").write_text("half done")
    done = run_analyze("summary", folder.parent, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 6


def test_what_could_not_be_captured_stays_in_stored_results(
    folder: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    direct = run_analyze(folder, "--also", result, "--isolated")
    again = run_analyze("--from", result, "--isolated")
    assert again.stdout == direct.stdout
    assert f"sdpa-cudnn: skipped: {SKIPPED}" in again.stdout


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_capture_that_was_no_plain_success_is_said_wherever_its_trace_is_shown(
    status: str, folder: Path, run_analyze: RunAnalyze
) -> None:
    manifest = json.loads((folder / "capture.json").read_text())
    manifest["captures"][0] |= {"status": status, "reason": "2 of 3 steps `lack` their GPU work"}
    (folder / "capture.json").write_text(json.dumps(manifest))
    said = f"{status}: 2 of 3 steps `lack` their GPU work"
    trace = folder / "sdpa-math.json.gz"
    for done in (run_analyze(trace), run_analyze("summary", trace), run_analyze(folder)):
        assert done.stdout.count(f"capture noted this trace as {said}") == 1
    compared = run_analyze("compare", folder).stdout
    assert f"careful: capture noted sdpa-math as {said}" in " ".join(compared.split())
    assert "capture noted sdpa-flash" not in compared
    markdown = run_analyze("compare", folder, "--format", "markdown").stdout
    assert f"`sdpa-math` as `{status}`: {code('2 of 3 steps `lack` their GPU work')}" in markdown
    rows = json.loads(run_analyze("compare", folder, "--format", "json").stdout)["traces"]
    assert [row["capture_status"] for row in rows] == [status, "captured", "wrong"]


def test_a_trace_of_another_capture_under_the_same_name_is_compared_without_measurements(
    folder: Path, run_analyze: RunAnalyze
) -> None:
    shutil.copy(folder / "sdpa-flash.json.gz", folder / "sdpa-math.json.gz")
    done = run_analyze("compare", folder)
    words = " ".join(done.stdout.split())
    assert "571 us" not in words
    assert "capture.json is of another trace (name here sdpa-flash, there sdpa-math)" in words
    assert "note not used: capture.json is of another trace" in " ".join(
        run_analyze(folder / "sdpa-math.json.gz").stdout.split()
    )


def test_a_name_that_no_file_can_have_is_a_trace_that_is_not_there(
    folder: Path, run_analyze: RunAnalyze
) -> None:
    manifest = json.loads((folder / "capture.json").read_text())
    manifest["captures"][0]["traces"] = [{"file": f"{'long' * 65}.json.gz"}]
    (folder / "capture.json").write_text(json.dumps(manifest))
    done = run_analyze("compare", folder)
    assert done.returncode == 3
    assert "longlong.json.gz, which is not there" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "sdpa-flash" in done.stdout


def test_links_to_folders_are_followed_and_no_folder_is_read_twice(
    folder: Path, run_analyze: RunAnalyze
) -> None:
    logs = folder.parent / "logs"
    (logs / "inside").mkdir(parents=True)
    shutil.copy(folder / "naive.json.gz", logs / "inside/mine.json.gz")
    (logs / "captured").symlink_to(folder)
    (logs / "latest").symlink_to("inside")
    (logs / "inside/again").symlink_to(logs)
    (logs / "inside/up").symlink_to(folder.parent)
    (logs / "self").symlink_to("self")
    done = run_analyze("summary", logs, "--format", "json")
    assert done.returncode == 0, done.stderr
    traces = [summary["trace"] for summary in json.loads(done.stdout)]
    names = ("sdpa-math", "sdpa-flash", "naive")
    captured = [str(logs / f"captured/{name}.json.gz") for name in names]
    assert traces == [*captured, str(logs / "inside/mine.json.gz")]


@pytest.fixture
def locked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of traces in which one that lies deeper is not to be read, whoever asks."""
    (folder / "locked").mkdir()
    scan = os.scandir

    def refuse(path: str | Path) -> Any:
        if Path(path).name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return folder


def test_a_folder_that_cannot_be_read_is_missed(
    locked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [0]
    assert len(list(find_traces([str(locked)], [], codes))) == 3
    assert worst_exit_code(codes) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{locked}/locked: the folder cannot be read: Permission denied" in said


def test_why_a_folder_without_traces_has_none(
    locked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [0]
    assert list(find_traces([str(locked / "locked")], [], codes)) == []
    assert worst_exit_code(codes) == 3
    assert f"{locked}/locked cannot be read: Permission denied" in capsys.readouterr().err
