"""``analyze trim`` as a user runs it."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import RunAnalyze

NAIVE = "synthetic-naive.json.gz"


def test_a_step_is_written_and_what_was_kept_is_said(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "small.json.gz"
    done = run_analyze("trim", samples / NAIVE, "--steps", "3", "-o", output)
    assert (done.returncode, done.stdout) == (0, "")
    assert "kept      step 3 of steps 2 to 4" in done.stderr
    assert "6 of 18 GPU ops, each with its launch" in done.stderr
    assert output.read_bytes().startswith(b"\x1f\x8b")
    note = json.loads(gzip.decompress(output.read_bytes()))["kinetolint_trim"]
    assert (note["source"], note["kept"], note["gpu_ops"]) == (NAIVE, "step 3", 6)
    again = run_analyze("trim", output, "--steps", "3", "-o", tmp_path / "again.json.gz")
    assert re.search(r"^  kept +step 3$", again.stderr, re.MULTILINE)  # and not "of step 3"
    report = json.loads(run_analyze(output, "--format", "json").stdout)
    assert report["unit"]["count"] == 1
    assert report["coverage"]["linked_share"] == 1
    assert {f["code"]: f["severity"] for f in report["findings"]}["COPY101"] == "error"


@pytest.mark.parametrize(
    ("arguments", "forwards"),
    [
        (["--forwards", "0-1"], 2),
        (["--forwards", "0,2"], 2),
        (["--around", "copy101"], 1),
        (["--around", "1", "--places", "3"], 3),
        (["--around", "ATTN103"], 1),
    ],
)
def test_forwards_and_findings_are_found(
    arguments: list[str], forwards: int, samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "small.json"
    done = run_analyze("trim", samples / NAIVE, *arguments, "-o", output)
    assert done.returncode == 0, done.stderr
    report = json.loads(run_analyze(output, "--format", "json").stdout)
    assert report["unit"] == {"name": "attn_fwd", "count": forwards}
    assert "COPY101" in {finding["code"] for finding in report["findings"]}


def test_a_finding_is_found_by_its_fingerprint_with_context(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "small.json"
    report = json.loads(run_analyze(samples / NAIVE, "--format", "json").stdout)
    copy = next(f for f in report["findings"] if f["code"] == "COPY101")
    done = run_analyze(
        *("trim", samples / NAIVE, "--around", copy["fingerprint"][:8]),
        *("--context", "0.01", "-o", output),
    )
    assert "around 1 of 3 places of COPY101, 10 us before and after" in done.stderr
    names = {event["name"] for event in json.loads(output.read_text())["traceEvents"]}
    assert {"aten::masked_fill", "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"} <= names
    assert "aten::matmul" not in names


def test_one_step_that_is_nearly_everything_is_told_to_be_so(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    one, small = tmp_path / "one.json.gz", tmp_path / "small.json.gz"
    run_analyze("trim", samples / NAIVE, "--steps", "3", "-o", one)
    again = ("trim", one, "--around", "COPY101", "--forward", "ProfilerStep#3", "-o", small)
    done = run_analyze(*again)
    assert "hint      nearly everything lies in the same forward; --context MS keeps" in done.stderr
    assert "nearly everything" not in run_analyze(*again, "--context", "0.01").stderr
    of_three = run_analyze("trim", samples / NAIVE, "--around", "COPY101", "-o", small)
    assert "nearly everything" not in of_three.stderr


def test_a_time_is_kept(samples: Path, run_analyze: RunAnalyze, tmp_path: Path) -> None:
    output = tmp_path / "small.json"
    done = run_analyze("trim", samples / NAIVE, "--between", "0us - 1ms", "-o", output)
    assert "0 us to 1 ms from the trace start" in done.stderr
    steps = {e["name"] for e in json.loads(output.read_text())["traceEvents"]}
    assert "ProfilerStep#2" in steps
    assert "ProfilerStep#4" not in steps


def test_without_a_window_names_are_replaced_and_everything_kept(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "shown.json.gz"
    done = run_analyze("trim", samples / "cpu-decode-cat.json.gz", "--anonymise", "-o", output)
    assert "kept      everything" in done.stderr
    assert "1 annotation" in done.stderr
    text = gzip.decompress(output.read_bytes())
    assert b'"decode"' not in text
    assert b"annotation_1" in text
    kept = tmp_path / "kept.json"
    run_analyze(
        *("trim", samples / "cpu-decode-cat.json.gz", "--anonymise", "--keep", "decode"),
        *("-o", kept),
    )
    assert '"decode"' in kept.read_text()


def test_standard_input_is_read_and_not_called_a_file(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "small.json"
    data = (samples / NAIVE).read_bytes()
    done = run_analyze("trim", "-", "--steps", "2", "-o", output, stdin=data)
    assert done.returncode == 0
    assert json.loads(output.read_text())["kinetolint_trim"]["source"] == "<stdin>"
    broken = run_analyze("trim", "-", "--steps", "2", "-o", output, stdin=b"")
    assert broken.returncode == 3
    assert broken.stderr.startswith("analyze: <stdin>: the file is empty")


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_leaves_nothing_of_standard_input(
    sent: signal.Signals, samples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    analyze = Path(sys.executable).parent / "analyze"
    with subprocess.Popen(
        [analyze, "trim", "-", "--steps", "2", "-o", tmp_path / "small.json"],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as program:
        assert program.stdin is not None
        program.stdin.write((samples / NAIVE).read_bytes())
        program.stdin.flush()
        while not any(folder.iterdir()):
            assert program.poll() is None
        time.sleep(0.5)  # now it waits for the rest of its input
        program.send_signal(sent)
        assert program.wait(timeout=60) == 128 + sent
    assert not any(folder.iterdir())
    assert not (tmp_path / "small.json").exists()


def test_an_end_far_beyond_the_trace_is_its_end(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    done = run_analyze(
        *("trim", samples / NAIVE, "--between", "0s-999999999999s"),
        *("-o", tmp_path / "small.json"),
    )
    assert done.returncode == 0
    assert "kept      0 us to the trace's end of 7." in done.stderr
    assert "18 of 18 GPU ops" in done.stderr


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_is_added_to_where_it_stands(
    name: str, samples: Path, tmp_path: Path
) -> None:
    analyze = Path(sys.executable).parent / "analyze"
    shown = tmp_path / "shown.txt"
    with shown.open("w") as file:
        file.write("before\n")
        file.flush()
        arguments: list[str | Path] = [analyze, "trim", samples / NAIVE, "--steps", "2", "-o", name]
        subprocess.run(arguments, stdout=file, stderr=subprocess.DEVNULL, check=True, timeout=300)
        file.seek(0, os.SEEK_END)
        file.write("\nafter\n")
    first, *trace, last = shown.read_text().splitlines()
    assert (first, last) == ("before", "after")
    assert json.loads("".join(trace))["kinetolint_trim"]["kept"] == "step 2"


def test_a_damaged_file_gives_its_intact_events(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    cut, output = tmp_path / "cut.json", tmp_path / "small.json"
    text = gzip.decompress((samples / NAIVE).read_bytes())
    cut.write_bytes(text[: len(text) * 2 // 3])
    done = run_analyze("trim", cut, "--forwards", "0", "-o", output)
    assert done.returncode == 0
    assert "the file is cut short" in done.stderr
    assert len(json.loads(output.read_text())["traceEvents"]) > 10


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "say what to keep: --steps, --forwards, --between or --around; or --anonymise"),
        (["--steps", "9"], 2, "there is no step 9; the trace has steps 2 to 4"),
        (["--steps", "2-9"], 2, "there is no step 9"),
        (["--steps", "4-2"], 2, "4-2 ends before it begins"),
        (["--steps", "[red]\x1b[2J"], 2, "'[red]\\x1b[2J' is not like 3, 2-4 or 2,4"),
        (["--forwards", "3"], 2, "there is no forward 3; the trace has forwards 0 to 2"),
        (["--between", "3ms-1ms"], 2, "ends before it begins"),
        (["--between", "3-1"], 2, "is not like 10ms-20ms"),
        (["--steps", "2", "--forwards", "0"], 2, "--steps and --forwards: choose one of them"),
        (["--around", "NOPE999"], 2, "no finding NOPE999: it has 3 findings: COPY101"),
        (["--around", "99"], 2, "no finding 99"),
        (["--steps", "2", "--context", "1"], 2, "--context needs --around"),
        (["--steps", "2", "--keep", "x"], 2, "--keep needs --anonymise"),
        (["--steps", "2", "--forward", "nope"], 2, "no annotation of that name"),
        (["--around", "COPY101", "--context", "nan"], 2, "nan is no number of milliseconds"),
        (["--between", "5s-6s"], 2, "in 5 s to 6 s from the trace start (of 7.38 ms); nothing"),
        (["--between", "5s-999999999999s"], 2, "in 5 s to the trace's end (of 7.38 ms); no"),
        (["--between", "99999999998s-99999999999s"], 2, "ends before it begins"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str],
    code: int,
    message: str,
    samples: Path,
    run_analyze: RunAnalyze,
    tmp_path: Path,
) -> None:
    output = tmp_path / "small.json"
    done = run_analyze("trim", samples / NAIVE, *arguments, "-o", output)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize(("others", "words"), [([], "step 3"), ([4], "step 3 (of steps 3 to 4)")])
def test_of_a_step_without_any_time_nothing_is_written(
    others: list[int], words: str, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path, output = tmp_path / "t.json", tmp_path / "small.json"
    steps = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1,
         "ts": 100 * number, "dur": 10 * (number - 3)}
        for number in (3, *others)
    ]  # fmt: skip
    op = {**steps[0], "cat": "cpu_op", "name": "aten::mm", "ts": 1000, "dur": 5}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*steps, op]}))
    done = run_analyze("trim", path, "--steps", "3", "-o", output)
    assert done.returncode == 2
    assert f"nothing was recorded in {words}; nothing was written" in done.stderr
    assert not output.exists()


def test_the_trace_is_never_overwritten(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": []}')
    before = path.read_bytes()
    done = run_analyze("trim", path, "--anonymise", "-o", path)
    assert done.returncode != 0
    assert "would overwrite it" in done.stderr
    assert path.read_bytes() == before


def test_unwritable_outputs_and_absent_inputs(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    nowhere = tmp_path / "no" / "small.json"
    done = run_analyze("trim", samples / NAIVE, "--steps", "2", "-o", nowhere)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    absent = run_analyze("trim", tmp_path / "no.json", "--steps", "2", "-o", tmp_path / "x.json")
    assert absent.returncode == 3
    several = run_analyze("trim", samples, "--steps", "2", "-o", tmp_path / "x.json")
    assert several.returncode == 2
    assert "name one of them" in several.stderr


def test_names_of_a_trace_do_not_reach_the_terminal_raw(
    run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path = tmp_path / "evil \x1b[2J.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    output = tmp_path / "[bold]\x1b[2J.json"
    done = run_analyze("trim", path, "--between", "0us-1us", "-o", output)
    assert done.returncode == 0
    assert "\x1b" not in done.stderr
    assert "[bold]" in done.stderr


def test_a_finding_that_the_trimmed_trace_no_longer_shows_is_said(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "small.json.gz"
    whole = run_analyze("trim", samples / NAIVE, "--around", "COPY101", "-o", output)
    assert "not found" not in whole.stderr
    assert "COPY101" in run_analyze(output).stdout
    part = run_analyze(
        *("trim", samples / NAIVE, "--around", "ATTN103", "--context", "0.001", "-o", output)
    )
    assert part.returncode == 0
    assert f"{output}: ATTN103 is not found in it" in part.stderr
    assert ": warning ATTN103" not in run_analyze(output, "--format", "concise").stdout


def test_an_excerpt_is_not_analyzed_as_if_it_were_whole(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    output = tmp_path / "small.json.gz"
    run_analyze("trim", samples / NAIVE, "--steps", "3", "-o", output)
    said = "step 3 of steps 2 to 4; 80 of 273 events"
    for words in (["check"], ["check", "-v"], ["summary"], ["check", "--format", "markdown"]):
        assert said in " ".join(run_analyze(*words, output).stdout.split()), words
    coverage = json.loads(run_analyze(output, "--format", "json").stdout)["coverage"]
    assert coverage["trimmed"] == [
        {"kept": "step 3", "of": "steps 2 to 4", "events": 80, "all_events": 273}
    ]
    assert coverage["forwards_in_part"] == 0


def test_what_is_beside_the_events_is_left_out_where_nobody_knows_it(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    document = json.loads(gzip.decompress((samples / NAIVE).read_bytes()))
    noted, output = tmp_path / "noted.json", tmp_path / "shown.json"
    noted.write_text(json.dumps({**document, "our_job": {"host": "alice-1"}, "run": "x"}))
    done = run_analyze("trim", noted, "--anonymise", "--around", "COPY101", "-o", output)
    assert "left out  3 members beside the events" in done.stderr
    written = json.loads(output.read_text())
    assert not {"our_job", "run", "synthetic_source"} & written.keys()
    assert written.keys() <= {*document, "kinetolint_trim", "kinetolint_anonymised"}
    assert written["kinetolint_trim"]["kept"] == "around 1 of 3 places of COPY101, whole forwards"
