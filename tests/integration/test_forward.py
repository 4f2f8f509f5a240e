"""Which annotation is a forward: the option, the guess file, the project, in every command."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunAnalyze

Event = dict[str, Any]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three ProfilerSteps of two ``my_fwd`` each, in a project whose forward is ``my_fwd``."""
    (tmp_path / "pyproject.toml").write_text('[tool.kinetolint]\nforward = "my_fwd"\n')
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events()}))
    monkeypatch.chdir(tmp_path)
    return path


def events() -> list[Event]:
    made: list[Event] = []
    for step in range(3):
        made.append(annotation(f"ProfilerStep#{step}", 1000 * step, 900))
        for number in (2 * step + 1, 2 * step + 2):
            start = 1000 * step + 300 * (2 - number % 2) - 200
            made.append(annotation("my_fwd", start, 200))
            launch = event("cuda_runtime", "cudaLaunchKernel", start + 10, 5)
            kernel = event("kernel", "gemm_k", start + 40, 50) | {"pid": 0, "tid": 7}
            made.append(launch | {"args": {"correlation": number}})
            made.append(kernel | {"args": {"correlation": number, "device": 0, "stream": 7}})
    return made


def annotation(name: str, start: int, duration: int) -> Event:
    return event("user_annotation", name, start, duration)


def event(category: str, name: str, start: int, duration: int) -> Event:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration,
    }  # fmt: skip


def test_guesses_that_were_accepted_hold_on_their_own_trace(
    trace: Path, run_analyze: RunAnalyze
) -> None:
    accepted = run_analyze("guess", trace, "--accept", "-o", "good.yaml")
    assert accepted.returncode == 0, accepted.stderr
    assert "gpu_ops: 1  # kernels, copies and sets per forward" in Path("good.yaml").read_text()
    for extra in ((), ("--isolated",)):  # the guess file itself names the forward
        done = run_analyze(trace, "--expect", "good.yaml", "--select", "GUESS", *extra)
        assert done.returncode == 0, done.stdout
        assert "8 guesses hold" in " ".join(done.stdout.split())
    assert run_analyze("guess", trace, "--expect", "good.yaml").returncode == 0


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("check",), "the annotation my_fwd (6 forwards)"),
        (("summary",), "the annotation my_fwd (6 forwards)"),
        (("kernels",), "my_fwd"),
        (("gaps",), "my_fwd"),
        (("ops",), "my_fwd"),
        (("regions",), "my_fwd"),
    ],
)
def test_every_view_takes_the_forward_of_the_project(
    command: tuple[str, ...], shown: str, trace: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze(*command, trace)
    assert shown in done.stdout
    named = run_analyze(*command, trace, "--format", "json")
    assert '"my_fwd"' in named.stdout


def test_trim_counts_the_forwards_of_the_project(trace: Path, run_analyze: RunAnalyze) -> None:
    done = run_analyze("trim", trace, "--forwards", "5", "-o", "small.json")
    assert "forward 5 of forwards 0 to 5" in done.stderr
    isolated = run_analyze("trim", trace, "--forwards", "5", "-o", "small.json", "--isolated")
    assert "there is no forward 5; the trace has forwards 0 to 2" in isolated.stderr


@pytest.mark.parametrize("command", [("check",), ("guess",)])
def test_the_guess_file_comes_before_the_project_and_the_option_before_both(
    command: tuple[str, ...], trace: Path, run_analyze: RunAnalyze
) -> None:
    Path("guess.yaml").write_text('version: 1\nforward: "ProfilerStep#1"\ngpu_ops: 2\n')
    expect = ("--expect", "guess.yaml", "--format", "json")
    of_file = json.loads(run_analyze(*command, trace, *expect).stdout)
    of_option = json.loads(run_analyze(*command, trace, *expect, "--forward", "my_fwd").stdout)
    assert [forward_is(of_file), forward_is(of_option)] == ["ProfilerStep#1", "my_fwd"]


def forward_is(result: Event) -> str:
    return str(result["coverage"]["forward_is"])


@pytest.mark.parametrize(
    "command",
    [
        ("check", "made.json"),
        ("summary", "made.json"),
        ("gaps", "made.json"),
        ("compare", "made.json"),
        ("explain", "IDLE101", "made.json"),
        ("guess", "made.json", "--accept", "-o", "good.yaml"),
        ("trim", "made.json", "--steps", "1", "-o", "small.json"),
        ("annotate", "made.json", "-o", "annotated.json"),
        ("baseline", "create", "made.json", "-o", "known.json"),
    ],
)
def test_a_name_that_is_not_in_the_trace_is_told_with_the_place_that_gives_it(
    command: tuple[str, ...], trace: Path, run_analyze: RunAnalyze
) -> None:
    config = trace.parent / "pyproject.toml"
    config.write_text('[tool.kinetolint]\nforward = "gone_fwd"\n')
    done = run_analyze(*command)
    assert done.returncode == 2
    assert f"{config}: forward gone_fwd: no annotation of that name in " in done.stderr
    assert "--forward" not in done.stderr
    assert "made.json; it has " in done.stderr
    asked = run_analyze(*command, "--forward", "nope")
    assert "analyze: --forward nope: no annotation of that name in " in asked.stderr


def test_a_name_that_a_guess_file_gives_is_told_with_the_file(
    trace: Path, run_analyze: RunAnalyze
) -> None:
    Path("guess.yaml").write_text("version: 1\nforward: mine\ngpu_ops: 2\n")
    for command in ("check", "guess"):
        done = run_analyze(command, trace, "--expect", "guess.yaml")
        assert done.returncode == 2
        assert "analyze: guess.yaml: forward mine: no annotation of that name" in done.stderr
