"""The protocol: which steps run, when work is awaited, and what happens to a bad file."""

import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity

from capture.devices import Device
from capture.options import Protocol
from capture.profiling import METADATA_KEY, Profiling, activities
from capture.steps import drive
from capture.verification import Expectation, Verification, verify
from tests.capture.conftest import Command
from tests.capture.problems import annotated, file_names, read_manifest, read_trace

DEFAULT = Protocol()


def profiling(folder: Path, **changes: Any) -> tuple[Profiling, list[str]]:
    """Make a recording with default settings, and the list of what it tells the user."""
    notices: list[str] = []
    fields: dict[str, Any] = {
        "folder": folder,
        "name": "thing",
        "device": Device("cpu"),
        "protocol": DEFAULT,
        "annotations": (),
        "annotation": "thing",
        "metadata": {},
        "notify": notices.append,
    }
    return Profiling(**(fields | changes)), notices


def multiply() -> None:
    torch.ones(4).mul(2)


def counting(count: list[int]) -> Callable[[], None]:
    def step() -> None:
        count.append(1)
        multiply()

    return step


def losing(monkeypatch: pytest.MonkeyPatch, *, files: int) -> None:
    """Let the first files seem to have lost their kernels."""
    seen: list[Path] = []

    def losing_verify(path: Path, expected: Expectation) -> Verification:
        seen.append(path)
        found = verify(path, expected)
        if len(seen) > files:
            return found
        return replace(found, problems=("no GPU kernel is in the file",))

    monkeypatch.setattr("capture.profiling.verify", losing_verify)


def test_only_active_steps_are_in_the_file(tmp_path: Path) -> None:
    numbers: list[int] = []

    def numbered() -> None:
        numbers.append(len(numbers))
        with torch.profiler.record_function(f"call {numbers[-1]}"):
            multiply()

    recording, notices = profiling(tmp_path)
    drive(recording.steps(), numbered)
    trace = read_trace(tmp_path / "thing.json.gz")
    assert len(numbers) == 3 + 1 + 1 + 3
    assert [node.names()[0] for node in annotated(trace, "thing")] == ["call 5", "call 6", "call 7"]
    assert notices == []
    assert file_names(tmp_path) == {"thing.json.gz"}


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    protocol = Protocol(warm_ups=0, wait=0, warmup=2, active=1, repeat=2, record_shapes=False)
    recording, _ = profiling(tmp_path, protocol=protocol)
    count: list[int] = []
    drive(recording.steps(), counting(count))
    assert len(count) == 2 * 3
    assert file_names(tmp_path) == {"thing-1.json.gz", "thing-2.json.gz"}
    for trace in map(read_trace, tmp_path.iterdir()):
        names = [event["name"] for event in trace["traceEvents"]]
        assert [name for name in names if "Step#" in name] == ["ProfilerStep#2"]


def test_work_is_awaited_before_the_active_steps_and_before_the_profiler_stops(
    tmp_path: Path,
) -> None:
    happened: list[str] = []

    class Watched(Device):
        def synchronize(self) -> None:
            happened.append("wait")

    recording, _ = profiling(tmp_path, device=Watched("cpu"))
    steps = recording.steps()
    next(steps)
    happened.clear()  # the first profiler of the process waits too
    for _ in steps:
        happened.append("step")
        multiply()
    assert happened == [*["step"] * 2, "wait", *["step"] * 2, "wait", *["step"] * 3, "wait"]


def test_metadata_survives_the_profiler(tmp_path: Path) -> None:
    letters = "".join(map(chr, range(0x250))) + string.printable + "\u2028 漢 😀 \U0010fffd"
    odd = {
        "letters": letters,
        'a "key" \\ here': ['a\\"b', "C:\\new\\table", 1.5, None, True],
        "nested": {"deep": {"quote": '"}], "traceEvents": ['}},
    }
    recording, _ = profiling(tmp_path, metadata=odd)
    drive(recording.steps(), multiply)
    written = read_trace(tmp_path / "thing.json.gz")[METADATA_KEY]
    unwritable = {*map(chr, range(0x20)), '"', "\\"}
    assert written == {
        "letters": "".join("_" if letter in unwritable else letter for letter in letters),
        "a _key_ _ here": ["a__b", "C:_new_table", 1.5, None, True],
        "nested": {"deep": {"quote": "_}], _traceEvents_: ["}},
    }


def test_a_file_that_lost_events_is_recorded_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing(monkeypatch, files=1)
    recording, notices = profiling(tmp_path)
    count: list[int] = []
    drive(recording.steps(), counting(count))
    assert len(count) == 3 + 2 * 5
    assert [(trace.file, trace.attempts) for trace in recording.traces] == [("thing.json.gz", 2)]
    assert recording.traces[0].verification.problems == ()
    assert notices == ["thing.json.gz: no GPU kernel is in the file; recording it once more"]
    assert file_names(tmp_path) == {"thing.json.gz"}


def test_a_second_bad_file_is_kept_and_the_notice_is_loud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing(monkeypatch, files=99)
    recording, notices = profiling(tmp_path)
    count: list[int] = []
    drive(recording.steps(), counting(count))
    assert len(count) == 3 + 2 * 5
    assert recording.traces[0].verification.problems == ("no GPU kernel is in the file",)
    assert notices[1:] == ["thing.json.gz: STILL INCOMPLETE: no GPU kernel is in the file"]
    assert file_names(tmp_path) == {"thing.json.gz"}


def test_an_incomplete_trace_is_exit_code_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    losing(monkeypatch, files=99)
    done = command("-o", tmp_path / "x", "--variant", "naive", "--no-benchmark", "--no-check")
    assert done.code == 1
    assert "STILL INCOMPLETE: no GPU kernel is in the file" in done.err
    assert "naive: no GPU kernel is in the file" in done.out
    [entry] = read_manifest(tmp_path / "x")["captures"]
    assert entry["status"] == "incomplete"
    assert entry["reason"] == "no GPU kernel is in the file"
    [trace] = entry["traces"]
    assert trace["attempts"] == 2
    assert (tmp_path / "x" / trace["file"]).is_file()


def test_a_trace_recorded_twice_is_still_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    losing(monkeypatch, files=1)
    done = command("-o", tmp_path / "x", "--variant", "naive", "--no-benchmark", "--no-check")
    assert done.code == 0
    [entry] = read_manifest(tmp_path / "x")["captures"]
    assert (entry["status"], entry["traces"][0]["attempts"]) == ("captured", 2)


@pytest.mark.parametrize("options", [{"with_stack": True}, {"profile_memory": True}])
def test_what_else_can_be_recorded(tmp_path: Path, options: dict[str, bool]) -> None:
    recording, _ = profiling(tmp_path, protocol=Protocol(**options))
    drive(recording.steps(), multiply)
    events = read_trace(tmp_path / "thing.json.gz")["traceEvents"]
    has = {
        "with_stack": any(event.get("cat") == "python_function" for event in events),
        "profile_memory": any(event["name"] == "[memory]" for event in events),
    }
    assert has == {"with_stack": False, "profile_memory": False} | options


def test_a_stand_in_gpu_without_kernels_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: None)
    monkeypatch.setattr("capture.profiling.activities", lambda _device: [ProfilerActivity.CPU])
    recording, notices = profiling(tmp_path, device=Device("cuda:0"))
    drive(recording.steps(), multiply)
    assert recording.traces[0].verification.problems == ("no GPU kernel is in the file",)
    assert len(notices) == 2


def test_gpu_activity_is_recorded_on_a_gpu_alone() -> None:
    assert activities(Device("cpu")) == [ProfilerActivity.CPU]
    assert activities(Device("cuda:0")) == [ProfilerActivity.CPU, ProfilerActivity.CUDA]
