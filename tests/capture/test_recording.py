"""``record``: a step or a training loop of one's own."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.profiler import profile, record_function

from capture import record
from capture.errors import CaptureError, RequestError
from tests.capture.problems import annotated, file_names, read_manifest, read_trace

STEPS_OF_A_TRACE = 3 + 1 + 1 + 3


class Model(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch).square().mean()


def batches() -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(4, 8)


def test_a_training_loop(tmp_path: Path) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with record(tmp_path / "out", name="train", device="cpu") as recording:
        for batch in recording.over(batches()):
            with record_function("backward"):
                loss = model(batch)
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    [entry] = read_manifest(tmp_path / "out")["captures"]
    assert entry["status"] == "captured"
    assert entry["name"] == "train"
    assert entry["kind"] == "function"
    assert entry["annotations"] == ["train"]
    assert len(losses) == STEPS_OF_A_TRACE + 6 + entry["latency"]["repeats"] + 1
    assert entry["latency"]["tflops"] is None
    assert entry["memory"]["peak_bytes"] > 0
    trace = read_trace(tmp_path / "out" / "train.json.gz")
    steps = annotated(trace, "train")
    assert len(steps) == 3
    assert all("backward" in step.names() for step in steps)
    assert all("aten::addmm" in step.names() for step in steps)
    assert file_names(tmp_path / "out") == {"train.json.gz", "capture.json"}


def test_a_step_function(tmp_path: Path) -> None:
    with record(tmp_path, benchmark=False, active=2, repeat=2) as recording:
        recording.run(lambda: torch.ones(4).mul(2))
    assert file_names(tmp_path) == {"step-1.json.gz", "step-2.json.gz", "capture.json"}
    assert recording.capture.status == "captured"
    assert len(annotated(read_trace(tmp_path / "step-2.json.gz"), "step")) == 2
    assert read_manifest(tmp_path)["protocol"]["active"] == 2


def test_the_loop_takes_no_batch_more_than_it_needs(tmp_path: Path) -> None:
    source = iter(range(100))
    with record(tmp_path, benchmark=False) as recording:
        seen = [int(torch.tensor(number).mul(1)) for number in recording.over(source)]
    assert seen == list(range(STEPS_OF_A_TRACE))
    assert next(source) == STEPS_OF_A_TRACE


def failed(folder: Path) -> str:
    """Return why the only capture failed; nothing but capture.json may be left."""
    assert file_names(folder) == {"capture.json"}
    [entry] = read_manifest(folder)["captures"]
    assert entry["status"] == "failed"
    reason = entry["reason"]
    assert isinstance(reason, str)
    return reason


def assert_profiler_is_off() -> None:
    with profile() as profiler:
        torch.ones(4).mul(2)
    assert any(event.key == "aten::mul" for event in profiler.key_averages())


@pytest.mark.parametrize("count", [0, 2, 4, 7])
def test_too_few_batches(tmp_path: Path, count: int) -> None:
    said = "step: the batches ended early; a trace takes 8 steps"
    with pytest.raises(CaptureError, match=said), record(tmp_path) as recording:
        for _ in recording.over(range(count)):
            pass
    assert said in failed(tmp_path)


def test_batches_that_end_before_the_measurements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with record(tmp_path) as recording:
        for _ in recording.over(range(STEPS_OF_A_TRACE + 2)):
            torch.ones(4).mul(2)
    assert capsys.readouterr().err == (
        "capture: step: captured; latency and memory were not measured, the steps ended before;"
        f" next: analyze {tmp_path}\n"
    )
    [entry] = read_manifest(tmp_path)["captures"]
    assert (entry["status"], entry["latency"], entry["memory"]) == ("captured", None, None)
    assert len(entry["traces"]) == 1


@pytest.mark.parametrize("is_held", [False, True], ids=["", "in a variable"])
@pytest.mark.parametrize("count", [1, 4, 6])
def test_a_loop_that_is_left_early(tmp_path: Path, count: int, is_held: bool) -> None:
    said = "step: stopped early; a trace takes 8 steps"
    held: list[Iterator[int]] = []

    def leave() -> None:
        with record(tmp_path) as recording:
            if is_held:
                held.append(recording.over(range(100)))
            for number in held[0] if is_held else recording.over(range(100)):
                if number == count:
                    break

    with pytest.raises(CaptureError, match=said):
        leave()
    assert said in failed(tmp_path)
    assert_profiler_is_off()


def test_a_loop_that_is_left_after_one_trace_of_two(tmp_path: Path) -> None:
    said = "step: stopped early; a trace takes 8 steps"

    def leave() -> None:
        with record(tmp_path, repeat=2) as recording:
            for number in recording.over(range(100)):
                torch.ones(4).mul(2)
                if number == STEPS_OF_A_TRACE + 2:
                    break

    with pytest.raises(CaptureError, match=said):
        leave()
    assert file_names(tmp_path) == {"step-1.json.gz", "capture.json"}
    [entry] = read_manifest(tmp_path)["captures"]
    assert entry["status"] == "failed"
    assert [trace["file"] for trace in entry["traces"]] == ["step-1.json.gz"]


@pytest.mark.parametrize("count", [0, 4, 6])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_the_loop(tmp_path: Path, count: int, error: type[BaseException]) -> None:
    def train() -> None:
        with record(tmp_path) as recording:
            for number in recording.over(range(100)):
                if number == count:
                    raise error("of the user")

    with pytest.raises(error):
        train()
    assert failed(tmp_path).startswith(f"{error.__name__}: of the user (test_recording.py:")
    assert_profiler_is_off()


def test_an_exception_in_the_step(tmp_path: Path) -> None:
    count: list[int] = []

    def step() -> None:
        count.append(1)
        if len(count) == 7:
            raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError), record(tmp_path) as recording:
        recording.run(step)
    assert failed(tmp_path).startswith("ZeroDivisionError: of the user (test_recording.py:")
    assert_profiler_is_off()


def test_nothing_was_run(tmp_path: Path) -> None:
    with (
        pytest.raises(CaptureError, match="stopped early; a trace takes 8 steps"),
        record(tmp_path),
    ):
        pass


def test_a_recording_serves_once(tmp_path: Path) -> None:
    said = "is recorded already"
    with record(tmp_path, benchmark=False) as recording:
        recording.run(lambda: torch.ones(4).mul(2))
        with pytest.raises(CaptureError, match=said):
            recording.run(lambda: None)
    assert recording.capture.status == "captured"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a/b"}, "use ASCII letters, digits"),
        ({"name": ""}, "use ASCII letters, digits"),
        ({"name": "naïve"}, "use ASCII letters, digits"),
        ({"name": ".hidden"}, "use ASCII letters, digits"),
        ({"active": 0}, "active is 0; it must be at least 1"),
        ({"active": "3"}, "active is '3'; it must be int"),
        ({"warm_up": 1}, "warm_up: no such option; did you mean 'warm_ups'?"),
        ({"warm_ups": -1}, "warm_ups is -1; it must be at least 0"),
        ({"device": "tpu"}, "write auto, cpu, cuda or cuda:N"),
    ],
)
def test_impossible_requests(tmp_path: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(RequestError, match=said), record(tmp_path, **options):  # type: ignore[arg-type]
        pass
    assert file_names(tmp_path) == set()


def test_an_earlier_capture_is_kept_unless_it_is_to_go(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for name in ("old", "new"):
        with record(tmp_path, name=name, benchmark=False, overwrite=name == "new") as recording:
            recording.run(lambda: torch.ones(4).mul(2))
        if name == "old":
            before = json.dumps(read_manifest(tmp_path))
            with pytest.raises(CaptureError, match="an earlier capture"), record(tmp_path):
                pass
            assert json.dumps(read_manifest(tmp_path)) == before
    assert file_names(tmp_path) == {"new.json.gz", "capture.json", "notes.txt"}


RANKS = """
import os, sys
import torch
import torch.distributed as dist
from capture import record

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
dist.init_process_group("gloo", rank=int(sys.argv[1]), world_size=2)
numbers = torch.ones(8)
with record(sys.argv[3], name="reduce", benchmark=False) as recording:
    recording.run(lambda: dist.all_reduce(numbers))
dist.destroy_process_group()
"""


def test_every_rank_writes_into_a_folder_of_its_own(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "job.py").write_text(RANKS)
    ranks = [
        subprocess.Popen([sys.executable, "job.py", str(rank), str(port), "out"], cwd=tmp_path)
        for rank in range(2)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    assert sorted(path.parent.name for path in tmp_path.rglob("reduce.json.gz")) == [
        "rank-0",
        "rank-1",
    ]


def test_an_impossible_request_keeps_the_earlier_capture(tmp_path: Path) -> None:
    with record(tmp_path, benchmark=False) as recording:
        recording.run(lambda: torch.ones(4).mul(2))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RequestError), record(tmp_path, overwrite=True, active=0):
        pass
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_profiler_is_not_ended(tmp_path: Path) -> None:
    with profile() as theirs:
        torch.ones(4).mul(2)
        with pytest.raises(CaptureError, match="another profiler is running"), record(tmp_path):
            pass
    assert any(event.key == "aten::mul" for event in theirs.key_averages())


def test_an_error_after_the_end_does_not_undo_the_recording(tmp_path: Path) -> None:
    def record_and_fail() -> None:
        with record(tmp_path, benchmark=False) as recording:
            recording.run(lambda: torch.ones(4).mul(2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        record_and_fail()
    [entry] = read_manifest(tmp_path)["captures"]
    assert entry["status"] == "captured"
