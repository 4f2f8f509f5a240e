"""The formats of the report, from the installed command: what is printed, where, and on what."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.conftest import RunAnalyze, copied_to_a_deep_folder

NAMES = (
    "[bold]x[/bold] \x1b[2J\x1b]0;title\x07",
    "::add-mask::x ##[add-mask]x",
    "\u202eknil \u6f22\u5b57 e\u0301\u0302 | `code` <b>b</b> @someone",
    "n" * 10_000,
    "a\nb\r\nc",
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A trace of copies inside ops of odd names, recorded in a file of an odd name."""
    events = []
    for number, name in enumerate(NAMES):
        start, correlation = 100 * number, number + 1
        events += [
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": 90},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1,
             "ts": start + 5, "dur": 2, "args": {"correlation": correlation}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0,
             "tid": 7, "ts": start + 20, "dur": 50,
             "args": {"device": 0, "stream": 7, "correlation": correlation, "bytes": 9_000_000}},
        ]  # fmt: skip
    path = tmp_path / "::warning [b] `x` |.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def on_a_terminal(columns: int, *arguments: str | Path, **environment: str) -> str:
    """Run ``analyze`` on a pseudo-terminal of that many columns; return what it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    unset = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    inherited = {key: value for key, value in os.environ.items() if key not in unset}
    process = subprocess.Popen(
        [Path(sys.executable).parent / "analyze", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**inherited, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    shown = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # a closed pseudo-terminal says so with an error
            break
        if not part:
            break
        shown.append(part)
    os.close(ours)
    process.wait(timeout=60)
    return b"".join(shown).decode().replace("\r\n", "\n")


def without_color(text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r" +$", "", plain, flags=re.MULTILINE)


@pytest.mark.parametrize("deep", [False, True])
def test_a_terminal_of_80_columns(deep: bool, samples: Path, tmp_path: Path) -> None:
    path = samples / "synthetic-naive.json.gz"
    if deep:
        path = copied_to_a_deep_folder(path, tmp_path)
    shown = on_a_terminal(80, path)
    assert "\x1b[" in shown
    lines = without_color(shown).splitlines()
    assert lines[0] == str(path)
    assert len([line for line in lines[1:] if str(path) in line]) == 1
    assert max(cell_len(line) for line in lines if str(path) not in line) <= 80
    assert len(lines) <= 40


@pytest.mark.parametrize(
    "environment", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
)
def test_the_words_are_the_same_without_color(samples: Path, environment: dict[str, str]) -> None:
    naive = samples / "synthetic-naive.json.gz"
    plain = on_a_terminal(80, naive, **environment)
    assert "\x1b" not in plain
    assert plain == without_color(on_a_terminal(80, naive))
    assert "error  COPY101" in plain


def test_hostile_names_on_a_terminal(hostile: Path) -> None:
    for arguments in ((), ("--verbose",)):
        shown = on_a_terminal(80, hostile, *arguments)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", without_color(shown))
        assert "[bold]x[/bold]" in shown
        assert len(shown) < 30_000


def test_concise_is_for_grep(samples: Path, run_analyze: RunAnalyze) -> None:
    path = samples / "synthetic-naive.json.gz"
    done = run_analyze(path, samples / "synthetic-sdpa-flash.json.gz", "--format", "concise")
    lines = done.stdout.splitlines()
    assert [line.split(": ")[1].split(" ")[:2] for line in lines] == [
        ["note"],
        ["error", "COPY101"],
        ["warning", "ATTN103"],
        ["benign", "OCC102"],
        ["note"],
        ["benign", "OCC101"],
    ]
    assert lines[1].startswith(f"{path}: error COPY101 hidden-memcpy: 1 DtoD copy per forward")
    assert (done.returncode, done.stderr) == (1, "")


def test_concise_of_a_clean_trace_is_nothing(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(samples / "cpu-sdpa-flash.json.gz", "--format", "concise")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_github_names_the_line_of_the_workspace(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    workspace = tmp_path / "checkout"
    frame = f"{workspace}/model.py(12): forward"
    events = [
        {"ph": "X", "cat": "python_function", "name": frame, "pid": 1, "tid": 1, "ts": 0,
         "dur": 100, "args": {"Python id": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 1, "tid": 1, "ts": 1, "dur": 90},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": 5,
         "dur": 2, "args": {"correlation": 1}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0,
         "tid": 7, "ts": 20, "dur": 50,
         "args": {"device": 0, "stream": 7, "correlation": 1, "bytes": 9_000_000}},
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = run_analyze(path, "--format", "github", GITHUB_WORKSPACE=str(workspace))
    assert "file=model.py,line=12,title=COPY101 hidden-memcpy::" in done.stdout


def test_github_lets_no_name_begin_a_command(hostile: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(hostile, "--format", "github")
    lines = done.stdout.splitlines()
    assert [line for line in lines if "COPY101" in line]
    for line in lines:
        assert re.match(r"::(error|warning|notice) [^:]*::", line) or line.startswith("analyze: ")
        assert line.startswith("::") or "##[" not in line


def test_one_analysis_many_files(samples: Path, tmp_path: Path, run_analyze: RunAnalyze) -> None:
    summary, lines = tmp_path / "summary.md", tmp_path / "findings.txt"
    done = run_analyze(
        samples / "synthetic-naive.json.gz", "--format", "github",
        "--also", summary, "--also", f"concise={lines}",
    )  # fmt: skip
    assert done.stdout.startswith("::error title=COPY101 ")
    assert summary.read_text().startswith("## `")
    assert lines.read_text().count("\n") == 4  # a note, and three findings
    alone = run_analyze(samples / "synthetic-naive.json.gz", "--format", "markdown")
    assert alone.stdout == summary.read_text()


def test_a_folder_of_many_traces(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(samples)
    traces = len(list(samples.glob("*.json.gz")))
    assert done.stdout.count("  verdict  ") == traces
    assert "Traces side by side" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{traces} traces: ")
    assert "expected" not in done.stdout
    in_full = run_analyze(samples, "--verbose")
    assert in_full.stdout.count("expected  ") > traces / 2


@pytest.fixture
def cut(samples: Path, tmp_path: Path) -> Path:
    """A trace of which the last part is missing."""
    whole = (samples / "synthetic-sdpa-math.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) * 7 // 10])
    return path


@pytest.mark.parametrize("form", ["text", "concise", "github", "markdown", "json", "sarif", "html"])
def test_every_format_says_that_a_file_is_cut_short(
    form: str, cut: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze(cut, "--select", "COPY101", "--format", form)
    assert done.returncode == 0, done.stderr
    said = '"truncated": true' if form == "json" else "the file is cut short"
    assert said in done.stdout
    assert run_analyze(cut, "--format", form).returncode == 1  # by the rule TRACE105


def test_a_run_that_could_not_read_a_trace_says_so_in_its_files(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    sarif, summary = tmp_path / "x.sarif", tmp_path / "x.md"
    absent = tmp_path / "absent.json"
    flash = samples / "synthetic-sdpa-flash.json.gz"
    done = run_analyze(flash, absent, "--format", "json", "--also", sarif, "--also", summary)
    assert done.returncode == 3
    assert [entry["trace"] for entry in json.loads(done.stdout)["unread"]] == [str(absent)]
    (invocation,) = json.loads(sarif.read_text())["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["level"] == "error"
    assert "no such file" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert "**Not checked: 1 trace**" in summary.read_text()


def test_where_no_trace_could_be_read_no_file_looks_like_a_clean_run(
    tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    sarif = tmp_path / "x.sarif"
    done = run_analyze(tmp_path / "absent.json", "--format", "github", "--also", sarif)
    assert done.returncode == 3
    assert not sarif.exists()
    assert f"{sarif}: not written, since no trace could be checked" in done.stderr
    assert done.stdout.startswith("::error title=kinetolint::")
    assert "Traceback" not in done.stderr


def test_what_a_step_has_in_its_summary_stays(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    summary, other = tmp_path / "summary", tmp_path / "other.md"
    summary.write_text("before")
    other.write_text("before")
    flash = samples / "synthetic-sdpa-flash.json.gz"
    for _ in range(2):
        done = run_analyze(
            *(flash, "--also", f"markdown={summary}", "--also", other),
            GITHUB_STEP_SUMMARY=str(summary),
        )
        assert done.returncode == 0, done.stderr
    assert summary.read_text() == f"before\n{other.read_text() * 2}"


@pytest.mark.parametrize(("name", "code"), [("x.pdf", 2), ("x.txt", 0), ("x.log", 0), ("x", 0)])
def test_a_name_that_ends_in_no_format_is_refused(
    name: str, code: int, samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    output = tmp_path / name
    flash = samples / "synthetic-sdpa-flash.json.gz"
    done = run_analyze(flash, "-o", output)
    assert done.returncode == code
    assert output.exists() == (code == 0)
    if code:
        assert ".sarif" in done.stderr
        assert run_analyze(flash, "-o", output, "--format", "text").returncode == 0


def test_standard_output_by_its_path(samples: Path, run_analyze: RunAnalyze) -> None:
    flash = samples / "synthetic-sdpa-flash.json.gz"
    by_path = run_analyze(flash, "-o", "/dev/stdout")
    assert by_path.returncode == 0, by_path.stderr
    assert by_path.stdout == run_analyze(flash).stdout


@pytest.mark.parametrize("name", ["::error::c.json", "##[error]c.json"])
@pytest.mark.parametrize("options", [(), ("--verbose",), ("--format", "concise")], ids=str)
def test_no_line_for_people_is_a_command_to_a_runner(
    name: str,
    options: tuple[str, ...],
    hostile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_analyze: RunAnalyze,
) -> None:
    """A step of CI prints whatever a file in the repository is called."""
    monkeypatch.chdir(tmp_path)
    hostile.rename(name)
    done = run_analyze(name, "missing##[group].json", *options)
    shown = f"{done.stdout}{done.stderr}"
    assert "c.json" in done.stdout
    assert "missing#" in done.stderr
    assert "##[" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
