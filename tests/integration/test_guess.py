"""The installed ``analyze guess`` on a terminal, with a pipe, in scripts; ``analyze --expect``."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import jsonschema
import pytest

from analyze.engine.yaml_file import read_yaml
from analyze.guess.loading import load_guesses
from tests.conftest import RunAnalyze

ANALYZE = str(Path(sys.executable).parent / "analyze")
NAIVE = "synthetic-naive.json.gz"
PROMPT = "   > "

_PATIENCE_SECONDS = 120


def _take_the_terminal() -> None:
    """Let Ctrl-C reach this process, also where the tests were started with it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """The command in a pseudo-terminal of its own, and everything its screen has shown."""

    def __init__(self, *arguments: str | Path, folder: Path) -> None:
        self._screen, inside = pty.openpty()
        self.process = subprocess.Popen(
            [ANALYZE, *map(str, arguments)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"},
            start_new_session=True,
            preexec_fn=_take_the_terminal,  # noqa: PLW1509 - nothing else runs in between
        )
        os.close(inside)
        self.shown = ""
        self._read_up_to = 0

    def wait_for(self, text: str) -> str:
        """Read until the screen shows a text that it did not show before; return what is new."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while text not in self.shown[self._read_up_to :]:
            assert self._read_more(deadline), f"no {text!r} in {self.shown[self._read_up_to :]!r}"
        end = self.shown.index(text, self._read_up_to) + len(text)
        new = self.shown[self._read_up_to : end]
        self._read_up_to = end
        return new

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def finish(self) -> int:
        """Read what is left and return the exit code."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._read_more(deadline):
            pass
        os.close(self._screen)
        return self.process.wait(timeout=_PATIENCE_SECONDS)

    def _read_more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._screen], [], [], max(deadline - time.monotonic(), 0))
        try:
            more = os.read(self._screen, 65536).decode(errors="replace") if ready else ""
        except OSError:  # the other end is closed
            more = ""
        self.shown += more.replace("\r\n", "\n")
        return bool(more)


def answer(terminal: Terminal, *answers: str) -> None:
    for text in answers:
        terminal.wait_for(PROMPT)
        terminal.type(f"{text}\n")


def test_a_dialogue_on_a_terminal(samples: Path, tmp_path: Path) -> None:
    terminal = Terminal("guess", samples / NAIVE, folder=tmp_path)
    intro = terminal.wait_for(PROMPT)
    assert "A forward is the annotation attn_fwd (3 in the trace)" in intro
    assert "1/7  How many GPU ops does a forward launch?" in intro
    assert "observed" not in intro
    assert "6 GPU ops" not in intro
    terminal.type("5\n")
    answer(terminal, "no")
    answer(terminal, "gem")
    again = terminal.wait_for(PROMPT)
    assert "'gem' is no family of GPU work; did you mean 'gemm'?; or press Enter to skip" in again
    terminal.type("gemm or mask\n")
    answer(terminal, "bf16", "", "no", "2 ms")
    assert terminal.finish() == 0
    assert "1. copies: guessed no, observed 1" in terminal.shown
    assert "Memcpy DtoD; aten::masked_fill > aten::clone > aten::copy_" in terminal.shown
    assert "2. GPU ops: guessed 5, observed 6" in terminal.shown
    assert "as guessed  dominant family gemm or mask (mask); precision bf16;" in terminal.shown
    assert "Written to guess.yaml" in terminal.shown
    (guesses,) = load_guesses([tmp_path / "guess.yaml"])
    written = {guess.quantity.key: guess.words for guess in guesses.guesses}
    assert written == {
        "gpu_ops": "5",
        "copies": "none",
        "dominant": "gemm or mask",
        "precision": "bf16",
        "syncs": "none",
        "gpu_time": "2 ms",
    }


@pytest.mark.parametrize("keys", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_leaving_early_writes_nothing(keys: str, samples: Path, tmp_path: Path) -> None:
    terminal = Terminal("guess", samples / NAIVE, folder=tmp_path)
    answer(terminal, "5", "none")
    terminal.wait_for(PROMPT)
    terminal.type(keys)
    assert terminal.finish() == 130
    assert "Traceback" not in terminal.shown
    assert "analyze: interrupted" in terminal.shown
    assert "observed" not in terminal.shown
    assert list(tmp_path.iterdir()) == []


def test_skipping_everything_writes_nothing(samples: Path, tmp_path: Path) -> None:
    terminal = Terminal("guess", samples / NAIVE, folder=tmp_path)
    answer(terminal, *[""] * 7)
    assert terminal.finish() == 2
    assert "nothing was guessed" in terminal.shown
    assert list(tmp_path.iterdir()) == []


def test_a_trace_without_gpu_work_is_asked_about_its_cpu(samples: Path, tmp_path: Path) -> None:
    terminal = Terminal("guess", samples / "cpu-naive.json.gz", folder=tmp_path)
    intro = terminal.wait_for(PROMPT)
    assert "No GPU work was recorded" in intro
    assert "1/2  How many CPU ops" in intro
    terminal.type("1\n")
    answer(terminal, "")
    assert terminal.finish() == 0
    assert "CPU ops: guessed 1, observed" in terminal.shown


def test_answers_from_a_pipe(run_analyze: RunAnalyze, samples: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    done = run_analyze("guess", samples / NAIVE, "-o", file, stdin=b"5\nnone\n\nbf16\n")
    assert done.returncode == 0
    assert "guessed none, observed 1" in done.stdout
    assert "How many" not in done.stdout
    assert "copies: none" in file.read_text()
    assert "dominant" not in file.read_text()


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"", "nothing was guessed"),
        (b"many\n", "'many' is not a number"),
        (b"5\x1b[31m\n", r"'5\x1b[31m' is not a number"),
    ],
)
def test_a_pipe_that_cannot_be_used(
    stdin: bytes, said: str, run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    done = run_analyze("guess", samples / NAIVE, "-o", file, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "nothing was guessed" in done.stderr.splitlines()[-1]
    assert not file.exists()


def test_an_answer_of_a_pipe_that_cannot_be_read_costs_no_other(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    done = run_analyze("guess", samples / NAIVE, "-o", file, stdin=b"5\nmany\nmask\nbf16\n")
    assert done.returncode == 2
    assert "'many' is not a number" in done.stderr
    assert "guessed 5, observed 6" in done.stdout, "what could be read is compared"
    last = f"analyze: answers that could not be read are not in {file}: copies; write them into it"
    assert done.stderr.splitlines()[-1].startswith(last)
    (guesses,) = load_guesses([file])
    assert [guess.quantity.key for guess in guesses.guesses] == ["gpu_ops", "dominant", "precision"]


def test_a_trace_on_standard_input_leaves_nobody_to_answer(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    content = (samples / NAIVE).read_bytes()
    file = tmp_path / "mine.yaml"
    refused = run_analyze("guess", "-", "-o", file, stdin=content)
    assert refused.returncode == 2
    assert "use --expect" in refused.stderr
    assert run_analyze("guess", "-", "-o", file, "--accept", stdin=content).returncode == 0
    assert run_analyze("guess", "-", "--expect", file, stdin=content).returncode == 0


def test_a_file_that_exists_is_not_overwritten(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine\n")
    for option in ((), ("--accept",)):
        done = run_analyze("guess", samples / NAIVE, "-o", file, *option, stdin=b"5\n")
        assert done.returncode == 2
        assert "exists already; choose another file with -o" in done.stderr
        assert "How many" not in done.stderr
    assert file.read_text() == "mine\n"
    nowhere = run_analyze("guess", samples / NAIVE, "-o", tmp_path / "no" / "g.yaml", "--accept")
    assert (nowhere.returncode, "there is no folder" in nowhere.stderr) == (2, True)


def test_options_that_contradict_each_other(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    trace = samples / NAIVE
    assert run_analyze("guess", trace, "--accept", "--expect", "g.yaml").returncode == 2
    assert run_analyze("guess", trace, "-o", "x.yaml", "--expect", "g.yaml").returncode == 2
    assert run_analyze("guess", tmp_path / "none.json", "--accept").returncode == 3
    folder = run_analyze("guess", samples, "--accept", "-o", tmp_path / "x.yaml")
    assert (folder.returncode, "name one of them" in folder.stderr) == (2, True)


def test_accept_then_expect(run_analyze: RunAnalyze, samples: Path, tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    assert run_analyze("guess", samples / NAIVE, "--accept", "-o", file).returncode == 0
    same = run_analyze(samples / NAIVE, "--expect", file, "--select", "ATTN", "-v")
    assert same.returncode == 0
    assert "GUESS011 guessed-order" in same.stdout.split("Rules that hold:")[1]
    inplace = samples / "synthetic-naive-inplace.json.gz"
    other = run_analyze(inplace, "--expect", file, "--format", "json")
    assert other.returncode == 1
    found = {finding["code"]: finding for finding in json.loads(other.stdout)["findings"]}
    assert found["GUESS003"]["message"] == "0 copies per forward; guessed 1"
    assert found["GUESS003"]["severity"] == "error"
    assert found["GUESS011"]["message"] == "5 GPU ops per forward: 1 missing"
    assert found["GUESS011"]["evidence"][0]["guessed"] == "Memcpy DtoD (Device -> Device)"
    assert found["GUESS011"]["evidence"][0]["change"] == "missing"


def test_guesses_count_for_the_exit_code(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    flash = samples / "synthetic-sdpa-flash.json.gz"
    wrong, right = tmp_path / "wrong.yaml", tmp_path / "right.yaml"
    wrong.write_text("version: 1\nseverity: warning\ngpu_ops: 2\n")
    right.write_text("version: 1\ngpu_ops: 1\n")
    assert run_analyze(flash, "--expect", right).returncode == 0
    assert run_analyze(flash, "--expect", right, "--expect", wrong).returncode == 0
    both = run_analyze(flash, "--expect", right, "--expect", wrong, "--fail-on", "warning")
    assert both.returncode == 1
    assert "GUESS101 guessed-gpu-ops-2" in both.stdout
    ignored = run_analyze(flash, "--expect", wrong, "--fail-on", "warning", "--ignore", "GUESS001")
    assert (ignored.returncode, "GUESS001" in ignored.stdout) == (0, False)


def test_an_invalid_guess_file_leaves_the_rules_their_results(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("version: 1\ngpuops: 5\n")
    done = run_analyze(samples / NAIVE, "--expect", file)
    assert done.returncode == 4
    assert f"{file}:2:1: error: unknown key 'gpuops'" in done.stderr
    assert "did you mean 'gpu_ops'?" in done.stderr
    assert "COPY101" in done.stdout
    alone = run_analyze("guess", samples / NAIVE, "--expect", file)
    assert (alone.returncode, alone.stdout) == (4, "")
    missing = run_analyze(samples / NAIVE, "--expect", tmp_path / "none.yaml")
    assert (missing.returncode, "Traceback" in missing.stderr) == (4, False)


@pytest.mark.parametrize("selected", ["GUESS", "GUESS001", "guess", "guessed-gpu-ops"])
def test_an_invalid_guess_file_is_all_that_is_wrong_where_only_guesses_are_selected(
    selected: str, run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.yaml").write_text("version: 1\ngpu_ops: -5\n")
    expected = ("--expect", tmp_path / "broken.yaml")
    trace = samples / "synthetic-naive.json.gz"
    done = run_analyze(trace, "--select", selected, *expected)
    assert (done.returncode, done.stdout) == (4, "")
    assert "'-5' is not a number" in done.stderr
    assert "selects no rule" not in done.stderr
    both = run_analyze(trace, "--select", f"{selected},COPY101", *expected)
    assert both.returncode == 4
    assert "COPY101 hidden-memcpy" in both.stdout
    assert "selects no rule" not in both.stderr


def test_guesses_that_no_trace_can_answer_are_never_a_pass(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "guess.yaml"
    file.write_text("version: 1\ngpu_ops: 5\n")
    done = run_analyze(samples / "cpu-naive.json.gz", "--expect", file)
    assert done.returncode == 2
    assert f"can answer no guess of {file}: no GPU work was recorded" in done.stderr
    alone = run_analyze("guess", samples / "cpu-naive.json.gz", "--expect", file)
    assert (alone.returncode, "cannot tell" in alone.stdout) == (2, True)


def test_a_rule_with_the_code_of_a_guess_is_refused(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    rule, guess = tmp_path / "rule.yaml", tmp_path / "guess.yaml"
    rule.write_text(
        "version: 1\ncode: GUESS001\nname: mine\ntitle: t\nguess: g\nmessage: m\nfrom: kernels\n"
    )
    guess.write_text("version: 1\ngpu_ops: 5\n")
    done = run_analyze(samples / NAIVE, "--rules", rule, "--expect", guess)
    assert done.returncode == 2
    assert "its code GUESS001 is that of a guess" in done.stderr


def test_the_forward_of_a_guess_file_is_used(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "steps.yaml"
    accepted = run_analyze(
        "guess", samples / NAIVE, "--accept", "--forward", "ProfilerStep#3", "-o", file
    )
    assert accepted.returncode == 0
    assert 'forward: "ProfilerStep#3"' in file.read_text()
    done = run_analyze(samples / NAIVE, "--expect", file)
    assert "the annotation ProfilerStep#3 (1 forward)" in done.stdout
    assert "GUESS" not in done.stdout


def test_the_schema_fits_what_is_written(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "good.yaml"
    run_analyze("guess", samples / NAIVE, "--accept", "-o", file)
    schema = json.loads(run_analyze("guess", "--schema").stdout)
    jsonschema.validate(read_yaml(file).data, schema)


def test_a_pipe_that_is_not_text_is_told(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    for mode in ("0", "1"):  # with and without Python's UTF-8 mode, bad bytes end up differently
        done = run_analyze("guess", samples / NAIVE, "-o", file, stdin=b"\xff\n", PYTHONUTF8=mode)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert not file.exists()
