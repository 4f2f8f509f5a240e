"""``analyze compare`` and ``analyze diff`` as they are installed."""

import json
import shutil
from pathlib import Path

import pytest

from analyze.diff.quantities import QUANTITIES
from tests.conftest import RunAnalyze


def test_compare_takes_a_folder_of_captures(
    tmp_path: Path, samples: Path, run_analyze: RunAnalyze
) -> None:
    for name in ("naive", "sdpa-flash"):
        shutil.copy(samples / f"cpu-{name}.json.gz", tmp_path)
    captures = [
        {"name": "flash-attn", "status": "skipped", "reason": "is not installed", "traces": []},
        {
            "name": "naive", "status": "captured", "reason": None,
            "traces": [{"file": "cpu-naive.json.gz"}], "latency": {"median_us": 571.0},
        },
    ]  # fmt: skip
    text = json.dumps({"schema_version": 1, "captures": captures})
    (tmp_path / "capture.json").write_text(text)
    done = run_analyze("compare", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "571 us" in done.stdout
    assert "flash-attn: skipped: is not installed" in done.stdout
    data = json.loads(run_analyze("compare", tmp_path, "--format", "json").stdout)
    assert data["schema_version"] == 1
    assert [row["name"] for row in data["traces"]] == ["naive", "sdpa-flash"]
    assert data["absent"][0]["name"] == "flash-attn"
    assert data["relative_to"]["time"] == "cpu_us"


def test_compare_goes_on_past_an_unreadable_trace(
    tmp_path: Path, samples: Path, run_analyze: RunAnalyze
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("no trace")
    done = run_analyze("compare", samples / "synthetic-naive.json.gz", bad)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "synthetic-naive" in done.stdout


def test_compare_writes_markdown(samples: Path, tmp_path: Path, run_analyze: RunAnalyze) -> None:
    table = tmp_path / "table.md"
    sample = samples / "synthetic-sdpa-flash.json.gz"
    done = run_analyze("compare", sample, "--format", "markdown", "-o", table)
    assert (done.returncode, done.stdout) == (0, "")
    assert table.read_text().startswith("| variant | GPU ops |")


def test_compare_refuses_a_baseline_that_is_not_there(
    samples: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("compare", samples / "synthetic-naive.json.gz", "--baseline", "flash")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--baseline flash: no such trace; there are synthetic-naive" in done.stderr


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        ([], 0),
        (["gpu_time > 1.05 * before"], 0),
        (["copies < before"], 1),
        (["latency > before"], 2),
        (["latency > before", "copies < before"], 1),
        (["nonsense > 3"], 2),
    ],
)
def test_gates_decide_the_exit_code(
    samples: Path, run_analyze: RunAnalyze, gates: list[str], code: int
) -> None:
    options = [word for gate in gates for word in ("--fail-if", gate)]
    before, after = (samples / f"synthetic-{name}.json.gz" for name in ("naive", "naive-inplace"))
    done = run_analyze("diff", before, after, *options)
    assert done.returncode == code, done.stderr
    if "copies < before" in gates:
        assert "failed" in done.stdout
        assert "copies 1 -> 0" in done.stdout


def test_json_to_a_file_says_a_failed_gate_on_standard_error(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    path = tmp_path / "diff.json"
    before, after = (samples / f"synthetic-{name}.json.gz" for name in ("naive", "naive-inplace"))
    done = run_analyze(
        "diff", before, after, "--format", "json", "-o", path, "--fail-if", "copies == 0"
    )
    assert done.returncode == 1
    assert done.stderr == "analyze: --fail-if failed: copies == 0: copies 1 -> 0\n"
    data = json.loads(path.read_text())
    assert data["schema_version"] == 1
    assert data["copies"][0]["state"] == "gone"
    assert data["gates"] == [
        {"condition": "copies == 0", "state": "failed", "amounts": ["copies"], "unknown": []}
    ]


def test_diff_of_what_is_no_trace_is_one_line(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    sample = samples / "synthetic-naive.json.gz"
    missing = run_analyze("diff", sample, tmp_path / "gone.json")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert missing.stderr.count("\n") == 1
    overwritten = run_analyze("diff", sample, sample, "-o", sample)
    assert overwritten.returncode == 2
    assert "--output would overwrite it" in overwritten.stderr
    twice = run_analyze("diff", "-", "-", stdin=b"")
    assert twice.returncode == 2
    assert "only one of the traces can be standard input" in twice.stderr
    piped = run_analyze("diff", "-", sample, stdin=sample.read_bytes())
    assert piped.returncode == 0, piped.stderr
    assert "Nothing changed" in piped.stdout


def test_diff_takes_a_folder_with_one_trace(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    sample = samples / "synthetic-naive.json.gz"
    shutil.copy(sample, tmp_path / "run.pt.trace.json.gz")
    done = run_analyze("diff", sample, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Nothing changed" in done.stdout
    shutil.copy(sample, tmp_path / "second.pt.trace.json.gz")
    several = run_analyze("diff", tmp_path, sample)
    assert (several.returncode, several.stdout) == (2, "")
    assert f"{tmp_path}: holds 2 traces; name one of them" in several.stderr


def test_help_lists_every_amount_that_a_gate_may_name(run_analyze: RunAnalyze) -> None:
    words = set(run_analyze("diff", "--help").stdout.replace(",", " ").split())
    assert {quantity.name for quantity in QUANTITIES} <= words


def test_a_forward_without_a_gpu_may_not_grow_either(
    samples: Path, run_analyze: RunAnalyze
) -> None:
    more, fewer = samples / "cpu-naive.json.gz", samples / "cpu-decode-cat.json.gz"
    gate = ("--fail-if", "cpu_ops > before")
    shrunk, grown = run_analyze("diff", more, fewer, *gate), run_analyze("diff", fewer, more, *gate)
    assert (shrunk.returncode, grown.returncode) == (0, 1)
    assert "cpu_ops 21 -> 45" in " ".join(grown.stdout.split())
