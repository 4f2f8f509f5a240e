"""The installed command, as a user runs it."""

import gzip
import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import RunAnalyze

LESSONS = {
    "synthetic-naive": (6, {"COPY101": "error", "ATTN103": "warning"}, 1),
    "synthetic-naive-inplace": (5, {"ATTN103": "warning"}, 0),
    "synthetic-sdpa-math": (20, {"ATTN101": "error", "PREC101": "error", "ATTN102": "warning"}, 1),
    "synthetic-sdpa-efficient": (1, {}, 0),
    "synthetic-sdpa-flash": (1, {}, 0),
    "synthetic-sdpa-cudnn": (1, {"LAUNCH101": "warning"}, 0),
}
MARKUP = "[bold]x[/bar] \x1b[2J\x1b]0;t\x07 <b>&amp;</b> :smile: " + "n" * 400


@pytest.mark.parametrize("name", LESSONS)
def test_the_table_of_the_variants(name: str, samples: Path, run_analyze: RunAnalyze) -> None:
    gpu_ops, expected, code = LESSONS[name]
    done = run_analyze(samples / f"{name}.json.gz", "--format", "json")
    report = json.loads(done.stdout)
    found = {f["code"]: f["severity"] for f in report["findings"] if f["state"] == "mismatch"}
    assert found == expected
    assert done.returncode == code
    assert report["unit"] == {"name": report["unit"]["name"], "count": 3}
    summary = json.loads(
        run_analyze("summary", samples / f"{name}.json.gz", "--format", "json").stdout
    )
    assert summary["unit"]["median"]["gpu_ops"] == gpu_ops


def test_the_hidden_copy_names_its_owner(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(samples / "synthetic-naive.json.gz")
    assert "aten::masked_fill > aten::clone > aten::copy_" in done.stdout
    assert "SYNTHETIC" in done.stdout
    assert done.stdout.rstrip().endswith("2 findings, 1 benign, 2 not applicable")


def test_json_keys_are_the_contract(samples: Path, run_analyze: RunAnalyze) -> None:
    report = json.loads(
        run_analyze(samples / "synthetic-sdpa-math.json.gz", "--format", "json").stdout
    )
    assert report["schema_version"] == 1
    assert {"trace", "unit", "coverage", "quality", "findings", "passed"} <= report.keys()
    assert {"not_applicable", "errors"} <= report.keys()
    keys = {
        "code", "name", "severity", "state", "guess", "message", "measures", "savings_us",
        "confidence", "evidence",
    }  # fmt: skip
    for finding in report["findings"]:
        assert keys <= finding.keys()
    causes = {f["fingerprint"]: f["code"] for f in report["findings"]}
    folded = {f["code"]: causes[f["explained_by"]] for f in report["findings"] if f["explained_by"]}
    assert folded == {"PREC101": "ATTN101", "ATTN102": "ATTN101"}


def test_several_traces_give_a_list_and_the_worst_exit_code(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    good, bad = samples / "synthetic-sdpa-flash.json.gz", samples / "synthetic-naive.json.gz"
    done = run_analyze(good, bad, "--format", "json")
    assert [Path(report["trace"]).name for report in json.loads(done.stdout)] == [
        good.name,
        bad.name,
    ]
    assert done.returncode == 1
    other = tmp_path / "notes.json"
    other.write_text('{"schema": "1.0", "nodes": []}')
    mixed = run_analyze(other, good, "--format", "json")
    assert mixed.returncode == 3
    assert json.loads(mixed.stdout)["trace"] == str(good)
    assert "execution trace" in mixed.stderr


def test_a_folder_stands_for_its_traces(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(samples, "--format", "json")
    assert len(json.loads(done.stdout)) == len(list(samples.glob("*.json.gz")))


def test_standard_input(samples: Path, run_analyze: RunAnalyze) -> None:
    data = (samples / "synthetic-sdpa-flash.json.gz").read_bytes()
    for stdin in (data, gzip.decompress(data)):
        done = run_analyze("-", "--format", "json", stdin=stdin)
        assert json.loads(done.stdout)["trace"] == "<stdin>"


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        (b"", "the file is empty", 3),
        (b"hello", "not JSON", 3),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull", 3),
        (b'{"schema": "1.0.2", "nodes": []}', "execution trace", 3),
        (b'[[1, 2, 3, 4]]', "memory timeline", 3),
        (b'{"segments": [], "device_traces": []}', "memory snapshot", 3),
        (b"\x80\x04\x95", "pickle", 3),
        (b"\x0a\x84\x01\x08", "Perfetto protobuf", 3),
        (b'{"traceEvents": [{"ph": "X", "cat": "FEE", "name": "f", "ts": 1, "dur": 1}]}', "VizTracer", 3),
        (b'{"traceEvents": [{"ph": "X", "cat": "devtools.timeline", "name": "f", "ts": 1}]}', "browser", 3),
        (b'{"traceEvents": [{"ph": "X", "name": "k", "args": {"BeginNs": "1"}}]}', "rocprof", 3),
        (b'{"a": 1}', "without a traceEvents list", 3),
        (b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}', "nothing was recorded", 2),
    ],
)  # fmt: skip
def test_other_files_are_named_in_one_line(
    content: bytes, words: str, code: int, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    path = tmp_path / "input.json.gz"
    path.write_bytes(content)
    for command in ([], ["summary"]):
        done = run_analyze(*command, path)
        assert done.returncode == code
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
        assert str(path) in done.stderr


def test_missing_paths_and_wrong_words(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    cases = [
        (["nowhere.json"], 3, "no such file"),
        (["sumary"], 3, "did you mean the command 'summary'?"),
        ([str(tmp_path)], 3, "holds no traces"),
        ([], 2, ""),
        (["columns", "kernles"], 2, "did you mean 'kernels'?"),
        (["check", "--frmat", "json"], 2, "--format"),
    ]
    for arguments, code, words in cases:
        done = run_analyze(*arguments)
        assert (done.returncode, words in done.stderr) == (code, True), (arguments, done)
        assert done.stderr.count("\n") <= 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file(samples: Path, tmp_path: Path, run_analyze: RunAnalyze) -> None:
    path = tmp_path / "secret.json"
    shutil.copy(samples / "synthetic-naive.json.gz", path)
    path.chmod(0)
    done = run_analyze(path)
    assert done.returncode == 3
    assert "Permission denied" in done.stderr


def test_a_cpu_trace_says_what_it_cannot_answer(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(samples / "cpu-naive.json.gz")
    assert done.returncode == 0
    assert "no GPU work was recorded" in " ".join(done.stdout.split())
    assert "not applicable" in done.stdout


def test_a_cut_file_may_have_lost_its_gpu_work(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    text = gzip.decompress((samples / "synthetic-naive.json.gz").read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: text.index(b'"kernel"') - 20])
    (tmp_path / "guess.yaml").write_text("version: 1\ngpu_ops: 5\n")
    for command in (
        ("check", cut),
        ("kernels", cut),
        ("gaps", cut),
        ("diff", cut, cut, "--fail-if", "gpu_ops > 1"),
        ("guess", cut, "--expect", tmp_path / "guess.yaml"),
    ):
        done = run_analyze(*command)
        told = " ".join((done.stdout + done.stderr).split())
        assert "no GPU work is in what the file holds, which is cut short" in told, command
        assert "ProfilerActivity" not in told, command


def test_nothing_could_be_checked(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    events = [
        {
            "ph": "X",
            "cat": "python_function",
            "name": "a.py(1): f",
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "dur": 5,
        }
    ]
    path = tmp_path / "frames.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = run_analyze(path)
    assert done.returncode == 2
    assert "nothing could be checked" in done.stderr
    assert "capture with" in done.stderr


@pytest.mark.parametrize(
    ("fail_on", "code"), [("never", 0), ("error", 0), ("warning", 1), ("info", 1)]
)
def test_fail_on(fail_on: str, code: int, samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze(samples / "synthetic-sdpa-cudnn.json.gz", "--fail-on", fail_on)
    assert done.returncode == code


def test_set_and_forward(samples: Path, run_analyze: RunAnalyze) -> None:
    cudnn = samples / "synthetic-sdpa-cudnn.json.gz"
    done = run_analyze(cudnn, "--fail-on", "warning", "--set", "LAUNCH101.min_launches=100")
    assert done.returncode == 0
    wrong = run_analyze(cudnn, "--set", "LAUNCH101.min_launchs=100")
    assert wrong.returncode == 2
    assert "min_launches" in wrong.stderr
    named = run_analyze(cudnn, "--forward", "sdpa_fwd", "--format", "json")
    assert json.loads(named.stdout)["unit"]["name"] == "sdpa_fwd"
    missing = run_analyze(cudnn, "--forward", "nope")
    assert missing.returncode == 2
    assert "it has sdpa_fwd" in missing.stderr
    close = run_analyze(cudnn, "--forward", "spda_fwd")
    assert "did you mean 'sdpa_fwd'?" in close.stderr


def test_users_rules_and_their_mistakes(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    rule = tmp_path / "mine.yaml"
    rule.write_text(
        "version: 1\ncode: MINE101\nname: any-softmax\ntitle: T\nguess: There is no softmax.\n"
        "from: kernels\nwhere: {family: softmax}\nmeasure: {n: count()}\nexpect: n == 0\n"
        'message: "{n:int} softmax kernels"\n'
    )
    done = run_analyze(samples / "synthetic-naive.json.gz", "--rules", rule)
    assert "MINE101 any-softmax" in done.stdout
    rule.write_text(rule.read_text().replace("family", "famly"))
    wrong = run_analyze(samples / "synthetic-naive.json.gz", "--rules", rule)
    assert wrong.returncode == 4
    assert f"{rule}:7:" in wrong.stderr
    assert "did you mean 'family'?" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_output_is_written_whole_or_not_at_all(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    target, like_any = tmp_path / "report.json", tmp_path / "like-any"
    flash = samples / "synthetic-sdpa-flash.json.gz"
    assert run_analyze(flash, "--format", "json", "-o", target).stdout == ""
    assert json.loads(target.read_text())["schema_version"] == 1
    like_any.touch()
    assert target.stat().st_mode == like_any.stat().st_mode
    before = target.read_bytes()
    (tmp_path / "other.json").write_text("[[1]]")
    assert run_analyze(tmp_path / "other.json", "-o", target).returncode == 3
    assert target.read_bytes() == before
    missing = run_analyze(flash, "-o", tmp_path / "no/such/folder.json")
    assert missing.returncode == 2
    assert "cannot be written" in missing.stderr
    assert list(tmp_path.glob(".*")) == []


def test_names_cannot_do_anything_to_the_terminal(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": MARKUP, "pid": 1, "tid": 1, "ts": 0, "dur": 90},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": 5,
         "dur": 2, "args": {"correlation": 1}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7,
         "ts": 20, "dur": 50, "args": {"device": 0, "stream": 7, "correlation": 1, "bytes": 9e6}},
        {"ph": "X", "cat": "kernel", "name": MARKUP, "pid": 0, "tid": 7, "ts": 90, "dur": 50,
         "args": {"device": 0, "stream": 7}},
    ]  # fmt: skip
    path = tmp_path / "markup.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    for arguments in ([path], [path, "--verbose"], ["summary", path]):
        done = run_analyze(*arguments, FORCE_COLOR="1")
        assert "\x1b[2J" not in done.stdout
        assert "\x1b]0" not in done.stdout
        assert "[bold]" in done.stdout
        assert ":smile:" in run_analyze(path, "--verbose").stdout


def test_color_only_where_it_is_wanted(samples: Path, run_analyze: RunAnalyze) -> None:
    naive = samples / "synthetic-naive.json.gz"
    plain = run_analyze(naive)
    assert "\x1b[" not in plain.stdout
    forced = run_analyze(naive, FORCE_COLOR="1")
    assert "\x1b[" in forced.stdout
    assert "error" in plain.stdout
    assert "\x1b[" not in run_analyze(naive, NO_COLOR="1", FORCE_COLOR="1").stdout
    for off in ("0", "false", ""):
        assert "\x1b[" not in run_analyze("summary", naive, FORCE_COLOR=off).stdout


def test_files_are_written_without_colors(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    output = tmp_path / "report.txt"
    naive = samples / "synthetic-naive.json.gz"
    for command in ("ops", "summary", "compare"):
        assert run_analyze(command, naive, "-o", output, FORCE_COLOR="1").returncode == 0
        assert output.read_text() == run_analyze(command, naive).stdout


def test_columns_prints_the_catalogue(run_analyze: RunAnalyze) -> None:
    text = run_analyze("columns", "kernels").stdout
    assert "occupancy_limiter" in text
    everything = json.loads(run_analyze("columns", "--format", "json").stdout)
    assert everything["copies"]["view_of"] == "gpu_ops"
    assert {
        "gpu_ops",
        "ops",
        "api_calls",
        "regions",
        "forwards",
        "steps",
        "trace",
    } <= everything.keys()


def test_version_and_help(run_analyze: RunAnalyze) -> None:
    assert run_analyze("--version").stdout.startswith("analyze, version 0.")
    for command in ([], ["check"], ["summary"], ["columns"]):
        done = run_analyze(*command, "--help")
        assert done.returncode == 0
        assert "Usage" in done.stdout


def run_slowly(samples: Path, folder: Path, *, terminal: bool) -> bytes:
    """Run ``analyze summary`` on a trace that takes over a second to arrive; return its stderr."""
    pipe = folder / "slow.json"
    os.mkfifo(pipe)
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [Path(sys.executable).parent / "analyze", "summary", pipe],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    data = gzip.decompress((samples / "synthetic-sdpa-math.json.gz").read_bytes())
    with pipe.open("wb", buffering=0) as file:
        for part in (data[:1000], data[1000:2000], data[2000:]):
            file.write(part)
            time.sleep(0.8)
    assert process.wait(timeout=60) == 0
    os.close(theirs)
    return read_all(ours)


def read_all(descriptor: int) -> bytes:
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:  # a closed pseudo-terminal says so with an error
        pass
    os.close(descriptor)
    return b"".join(parts)


def test_progress_is_shown_on_a_terminal_only(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "tty").mkdir()
    (tmp_path / "pipe").mkdir()
    assert b"slow.json" in run_slowly(samples, tmp_path / "tty", terminal=True)
    assert run_slowly(samples, tmp_path / "pipe", terminal=False) == b""


def test_nameless_and_extreme_values_reach_every_report(
    tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    copy = {
        "ph": "X",
        "cat": "gpu_memcpy",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 1,
        "args": {"bytes": 5},
    }
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "ts": 2,
        "dur": 1,
        "args": {"graph id": 2**63, "device": 3},
    }
    document = {
        "deviceProperties": [{"id": 2**64, "name": "x"}],
        "distributedInfo": {"rank": 2**70},
        "traceEvents": [copy, kernel, {"ph": "X", "cat": "cpu_op", "ts": 0, "dur": 9}],
    }
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document))
    for arguments in (["summary", path], ["summary", path, "--format", "json"], [path, "-v"]):
        done = run_analyze(*arguments)
        assert done.returncode == 0, done.stderr
        assert "conversion" not in done.stdout


def test_output_goes_where_it_points(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    flash = samples / "synthetic-sdpa-flash.json.gz"
    assert run_analyze(flash, "-o", link).returncode == 0
    assert link.is_symlink()
    assert "low-occupancy" in target.read_text()
    assert run_analyze(flash, "-o", os.devnull).returncode == 0
    assert Path(os.devnull).is_char_device()
    trace = tmp_path / "trace.json.gz"
    shutil.copy(flash, trace)
    for command in ("check", "summary", "ops", "kernels", "regions", "gaps", "compare"):
        refused = run_analyze(command, flash, trace, "--format", "text", "-o", trace)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), command
        assert "would overwrite it" in refused.stderr
        assert trace.read_bytes() == flash.read_bytes()


def test_an_output_whose_links_lead_to_each_other_is_one_line(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    naive = samples / "synthetic-naive.json.gz"
    for written in (("-o", one, "--format", "text"), ("--also", f"text={one}")):
        done = run_analyze(naive, *written)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"{one}: cannot be written" in done.stderr


@pytest.mark.parametrize("command", ["summary", "ops", "check", "compare"])
def test_closed_standard_input_is_one_line(command: str) -> None:
    done = run_closed("0<&-", command, "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "analyze: -: standard input is closed; name a trace file, or pipe one in"
    ]


@pytest.mark.parametrize("command", ["summary", "ops", "columns", "--help"])
def test_closed_standard_output_is_no_success(command: str, samples: Path, tmp_path: Path) -> None:
    naive = samples / "synthetic-naive.json.gz"
    arguments = [command, str(naive)] if command in ("summary", "ops") else [command]
    done = run_closed(">&-", *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "analyze: the output cannot be written: standard output is closed"
    ]
    if len(arguments) > 1:
        written = tmp_path / "report.txt"
        assert run_closed(">&-", *arguments, "-o", str(written)).returncode == 0
        assert str(naive) in written.read_text()


def run_closed(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``analyze`` with a standard stream closed by the shell."""
    program = Path(sys.executable).parent / "analyze"
    command = f'"$@" {redirection}'
    return subprocess.run(
        ["sh", "-c", command, "sh", program, *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("command", ["check", "ops", "compare", "diff", "explain"])
def test_an_empty_name_of_the_forward_is_a_name(
    command: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    naive = samples / "synthetic-naive.json.gz"
    extra: dict[str, str | Path] = {"diff": naive, "explain": "COPY101"}
    before = [extra[command]] if command in extra else []
    done = run_analyze(command, *before, naive, "--forward", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no annotation of that name in {naive}; it has attn_fwd" in done.stderr


def test_a_missing_trace_does_not_stop_the_others(samples: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("nowhere.json", samples / "synthetic-sdpa-flash.json.gz", "x" * 5000)
    assert done.returncode == 3
    assert "low-occupancy" in done.stdout
    assert done.stderr.count("\n") == 2


def test_errors_show_no_control_characters(tmp_path: Path, run_analyze: RunAnalyze) -> None:
    path = tmp_path / "marked.json"
    events = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "a\x1b[31m\nb",
            "pid": 1,
            "tid": 1,
            "ts": 0,
            "dur": 5,
        }
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    done = run_analyze(path, "--forward", "none")
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in run_analyze("no\x1b[2Jthing").stderr


def test_a_full_disk_is_one_line(samples: Path) -> None:
    analyze = Path(sys.executable).parent / "analyze"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [analyze, samples / "synthetic-naive.json.gz"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("threads", ["0", "", "-1", "many", "100000", "2"])
def test_any_number_of_threads_gives_the_report(
    run_analyze: RunAnalyze, samples: Path, threads: str
) -> None:
    trace = samples / "synthetic-naive.json.gz"
    done = run_analyze(trace, POLARS_MAX_THREADS=threads)
    assert (done.stdout, done.stderr) == (run_analyze(trace).stdout, "")
