"""``analyze annotate``, as a user runs it."""

import gzip
import json
from pathlib import Path

import pytest

from tests.conftest import RunAnalyze

RULE = """
version: 1
code: MINE101
name: any-kernel
title: A kernel
guess: No kernel runs.
from: kernels
group_by: [name]
measure: {n: count()}
expect: n == 0
message: "{n:int} kernels of {name}"
"""


def test_it_says_what_was_written(samples: Path, run_analyze: RunAnalyze, tmp_path: Path) -> None:
    output = tmp_path / "out.json.gz"
    done = run_analyze("annotate", samples / "synthetic-naive.json.gz", "-o", output)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[0] == str(output)
    assert "events    273 of the trace, unchanged" in done.stderr
    assert "findings  2 findings, 1 benign, 2 not applicable" in done.stderr
    assert "27 slices on 3 threads of the process 'kinetolint findings', 27 arrows" in done.stderr
    again = run_analyze("annotate", output, "-o", tmp_path / "again.json")
    assert "273 of the trace, unchanged; 90 of earlier annotations replaced" in again.stderr
    assert gzip.decompress(output.read_bytes()) == (tmp_path / "again.json").read_bytes()


def test_an_annotated_trace_reads_as_the_trace_does(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path, output = samples / "synthetic-sdpa-math.json.gz", tmp_path / "out.json.gz"
    run_analyze("annotate", path, "-o", output)
    for command in ((), ("summary",), ("gaps",)):
        original, copy = (
            run_analyze(*command, trace, "--format", "json") for trace in (path, output)
        )
        said, again = json.loads(original.stdout), json.loads(copy.stdout)
        assert (original.returncode, copy.stderr) == (copy.returncode, original.stderr)
        assert again["quality"].pop("kinetolint_events") == 92
        assert again["quality"].pop("text_bytes") > said["quality"].pop("text_bytes")
        for key in ("file_bytes", "kinetolint_events"):
            said["quality"].pop(key), again["quality"].pop(key, None)
        said.pop("trace"), again.pop("trace")
        assert again == said
    text = run_analyze("summary", output).stdout
    assert "92 events of `analyze annotate` were passed over" in text
    assert "annotate" not in run_analyze("summary", path).stdout


def test_the_rules_are_those_that_are_chosen(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(RULE)
    output = tmp_path / "out.json"
    path = samples / "synthetic-sdpa-flash.json.gz"
    options = ("--rules", tmp_path / "mine.yaml", "--select", "MINE101", "--isolated")
    assert run_analyze("annotate", path, "-o", output, *options).returncode == 0
    events = json.loads(output.read_bytes())["traceEvents"]
    slices = [e for e in events if e.get("cat") == "kinetolint" and e["ph"] == "X"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert sorted(e["ts"] for e in slices) == [e["ts"] for e in kernels]
    assert {e["name"] for e in slices} == {"MINE101 any-kernel"}


def test_a_damaged_trace_is_mended_in_the_copy(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    op = '{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}'
    path, output = tmp_path / "damaged.json", tmp_path / "out.json"
    bad = op.replace('"op"', '"an "op""')
    path.write_text(f'{{"schemaVersion": 1, "traceEvents": [{op}, {bad}, {op}, {op[:50]}')
    (tmp_path / "mine.yaml").write_text(RULE.replace("kernels", "ops"))
    options = ("--rules", tmp_path / "mine.yaml", "--select", "MINE101", "--isolated")
    done = run_analyze("annotate", path, "-o", output, *options)
    assert "2 of the trace, repaired where it was damaged; 2 too damaged to copy" in done.stderr
    document = json.loads(output.read_bytes())
    assert document["schemaVersion"] == 1
    assert [e for e in document["traceEvents"] if e.get("cat") == "cpu_op"] == [json.loads(op)] * 2


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("-", "-o", "out.json"), 2, "standard input cannot be read twice"),
        (("{naive}",), 2, "Missing option '-o'"),
        (("no.json", "-o", "out.json"), 3, "no.json: no such file"),
        (("{folder}", "-o", "out.json"), 2, "traces; name one of them"),
        (("{naive}", "-o", "no/out.json"), 2, "out.json: cannot be written: No such file"),
        (("{naive}", "-o", "out.json", "--select", "NOPE101"), 2, "NOPE101"),
        (("{naive}", "-o", "out.json", "--rules", "bad.yaml"), 4, "bad.yaml"),
        (("other.json", "-o", "out.json"), 3, "execution trace"),
        (("{naive}", "-o", "out.json", "--forward", "no"), 2, "no"),
    ],
)
def test_what_goes_wrong_is_one_line_and_leaves_nothing(
    arguments: tuple[str, ...],
    code: int,
    line: str,
    samples: Path,
    run_analyze: RunAnalyze,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("version: 1\ncode: X\n")
    Path("other.json").write_text('{"schema": "1.0", "nodes": []}')
    places = {"naive": samples / "synthetic-naive.json.gz", "folder": samples}
    done = run_analyze("annotate", *(argument.format(**places) for argument in arguments))
    assert done.returncode == code
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("out.json").exists()


def test_numbers_of_more_than_64_bits_keep_their_digits(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path, output, large = tmp_path / "large.json", tmp_path / "out.json", str(2**70)
    text = gzip.decompress((samples / "synthetic-naive.json.gz").read_bytes()).decode()
    text = text.replace('"pid":21507,', f'"pid":{large},')
    path.write_text(text)
    assert run_analyze("annotate", path, "-o", output).returncode == 0
    written = output.read_text()
    ends = [line for line in written.splitlines() if '"ph":"f","bp":"e"' in line]
    assert any(f'"pid":{large},' in line for line in ends)
    assert written.count(large) == text.count(large) + sum(large in line for line in ends)


def test_the_trace_itself_is_never_overwritten(
    samples: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes((samples / "synthetic-naive.json.gz").read_bytes())
    (tmp_path / "link.json.gz").symlink_to(path)
    for output in (path, tmp_path / "link.json.gz"):
        done = run_analyze("annotate", path, "-o", output)
        assert done.returncode == 2
        assert "is one of the traces" in done.stderr
    assert path.read_bytes() == (samples / "synthetic-naive.json.gz").read_bytes()
