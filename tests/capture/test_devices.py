"""Devices and what is said of them; the GPUs here are stand-ins."""

import json
import types
from pathlib import Path

import jsonschema
import pytest
import torch

from capture.devices import Device, find_device
from capture.environment import environment
from capture.errors import CaptureError, RequestError
from capture.manifest import Manifest
from capture.measurement import release_memory
from capture.options import Protocol
from capture.schema import schema_text

H200 = types.SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=150_000_000_000,
    gcnArchName="sm_90",
)


def stand_in_gpus(monkeypatch: pytest.MonkeyPatch, count: int, current: int = 0) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _name: H200)


@pytest.mark.parametrize(
    ("text", "name"),
    [("auto", "cuda:1"), ("cpu", "cpu"), ("cuda", "cuda:1"), ("cuda:0", "cuda:0")],
)
def test_devices_with_two_stand_in_gpus(
    monkeypatch: pytest.MonkeyPatch, text: str, name: str
) -> None:
    stand_in_gpus(monkeypatch, 2, current=1)
    assert find_device(text) == Device(name)
    assert find_device(text).is_gpu is (name != "cpu")


def test_an_ordinal_too_large_with_two_stand_in_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_gpus(monkeypatch, 2)
    with pytest.raises(CaptureError, match=r"--device cuda:2: torch finds 2 GPU\(s\), 0 to 1"):
        find_device("cuda:2")


@pytest.mark.parametrize("text", ["auto", "cpu"])
def test_devices_without_a_gpu(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    stand_in_gpus(monkeypatch, 0)
    assert find_device(text) == Device("cpu")


@pytest.mark.parametrize("text", ["cuda", "cuda:0"])
def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    stand_in_gpus(monkeypatch, 0)
    with pytest.raises(CaptureError, match="finds no GPU here") as raised:
        find_device(text)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize("text", ["tpu", "cuda:", "cuda:x", "cuda:-1", "", "cpu:0", "CUDA"])
def test_no_kind_of_device(text: str) -> None:
    with pytest.raises(RequestError, match="write auto, cpu, cuda or cuda:N") as raised:
        find_device(text)
    assert raised.value.exit_code == 2


def test_a_stand_in_gpu_is_selected_and_awaited_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, object]] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda name: calls.append(("wait", name)))
    monkeypatch.setattr(torch.cuda, "set_device", lambda name: calls.append(("select", name)))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(("release", None)))
    for device in (Device("cpu"), Device("cuda:1")):
        device.select()
        device.synchronize()
        release_memory(device)
    assert calls == [("select", "cuda:1"), ("wait", "cuda:1"), ("release", None)]


def nvidia_smi(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str | None) -> None:
    """Put a program of this name first, or none at all."""
    monkeypatch.setenv("PATH", str(folder))
    if body is not None:
        program = folder / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)


@pytest.mark.parametrize(
    ("body", "driver"),
    [("echo 570.86.15; echo 570.86.15", "570.86.15"), ("exit 9", None), (None, None), (":", None)],
    ids=["two GPUs", "fails", "missing", "silent"],
)
def test_facts_of_a_stand_in_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str | None, driver: str | None
) -> None:
    stand_in_gpus(monkeypatch, 1)
    nvidia_smi(monkeypatch, tmp_path, body)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91900)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    facts = environment(Device("cuda:0"))
    assert facts["driver"] == driver
    assert (facts["cuda"], facts["cudnn"]) == ("13.0", 91900)
    assert facts["device"] == {
        "type": "cuda",
        "name": "NVIDIA H200",
        "index": 0,
        "compute_capability": "9.0",
        "architecture": "sm_90",
        "multiprocessors": 132,
        "memory_bytes": 150_000_000_000,
    }
    assert facts["variables"] == {**_variables(facts), "NVIDIA_TF32_OVERRIDE": "0"}


def _variables(facts: dict[str, object]) -> dict[str, str]:
    variables = facts["variables"]
    assert isinstance(variables, dict)
    return variables


def test_a_manifest_of_a_stand_in_gpu_obeys_the_schema(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in_gpus(monkeypatch, 1)
    nvidia_smi(monkeypatch, tmp_path, "echo 570.86.15")
    monkeypatch.setattr(torch.version, "hip", "6.4.1")
    content = Manifest(tmp_path, Device("cuda:0"), Protocol()).as_json()
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(content)
    device = content["environment"]
    assert isinstance(device, dict)
    assert device["device"]["type"] == "hip"
