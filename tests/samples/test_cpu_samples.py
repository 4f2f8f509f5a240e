"""The CPU samples: recording again finds the same operators, and nothing names the machine."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).parents[2] / "sample_traces"
QUERY = {
    "cpu-naive": [2, 4, 128, 32],
    "cpu-naive-inplace": [2, 4, 128, 32],
    "cpu-sdpa-math": [2, 4, 128, 32],
    "cpu-sdpa-flash": [2, 4, 128, 32],
    "cpu-sdpa-auto": [2, 4, 128, 32],
    "cpu-decode-cat": [2, 4, 1, 32],
    "cpu-decode-preallocated": [2, 4, 1, 32],
}
NAMES = tuple(QUERY)


def annotation(name: str) -> str:
    return "decode" if "decode" in name else "attn_fwd"


every_file = pytest.mark.parametrize("name", NAMES)

Event = dict[str, Any]
OperatorPath = tuple[str, ...]


def decode(path: Path) -> dict[str, Any]:
    trace: dict[str, Any] = orjson.loads(gzip.decompress(path.read_bytes()))
    return trace


@cache
def load(name: str) -> dict[str, Any]:
    """Decode a committed file."""
    return decode(SAMPLES / f"{name}.json.gz")


def host_events(trace: dict[str, Any]) -> list[Event]:
    kept = ("cpu_op", "user_annotation")
    found = [item for item in trace["traceEvents"] if item.get("cat") in kept]
    return sorted(found, key=lambda item: int(item["args"]["Ev Idx"]))


def span(item: Event) -> tuple[int, int]:
    start = round(item["ts"] * 1000)
    return start, start + round(item["dur"] * 1000)


def forwards(trace: dict[str, Any]) -> list[Counter[OperatorPath]]:
    """Count, for each annotated forward, the paths from the annotation to every operator.

    Which library routine multiplies matrices, and which scratch buffers it takes, depends on the
    processor: operators below `aten::bmm` and bare allocations are left out.
    """
    trees: list[Counter[OperatorPath]] = []
    stack: list[tuple[str, int]] = []
    for item in host_events(trace):
        start, end = span(item)
        while stack and stack[-1][1] <= start:
            stack.pop()
        stack.append((item["name"], end))
        path = tuple(name for name, _ in stack)[1:]
        if len(path) == 1:
            trees.append(Counter())
        if path and "aten::bmm" not in path[:-1] and path[-1] != "aten::empty":
            trees[-1][path] += 1
    return trees


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cpu")
    script = SAMPLES / "record_cpu.py"
    subprocess.run([sys.executable, str(script), "--out", str(out)], check=True)
    return out


@every_file
def test_recording_again_finds_the_same_operators(name: str, recorded: Path) -> None:
    again = decode(recorded / f"{name}.json.gz")
    assert forwards(again) == forwards(load(name))


@every_file
def test_three_equal_forwards_in_three_steps(name: str) -> None:
    names = [item["name"] for item in host_events(load(name))]
    assert [item for item in names if "#" in item] == [f"ProfilerStep#{n}" for n in (2, 3, 4)]
    assert names.count(annotation(name)) == 3
    first, second, third = forwards(load(name))
    assert first == second == third
    assert first[annotation(name),] == 1
    assert first.total() > 3


@every_file
def test_each_file_says_what_captured_it(name: str) -> None:
    noted = load(name)["kinetolint_capture"]
    assert noted["name"] == name.removeprefix("cpu-") or noted["kind"] == "function"
    assert noted["environment"]["torch"].startswith("2.13.0")
    assert noted["annotations"] == [annotation(name)]


@every_file
def test_shapes_are_recorded(name: str) -> None:
    trace = load(name)
    assert trace["record_shapes"] == 1
    operators = [item for item in host_events(trace) if item["cat"] == "cpu_op"]
    assert all("Input Dims" in item["args"] for item in operators)
    assert any(QUERY[name] in item["args"]["Input Dims"] for item in operators)


@every_file
def test_nothing_names_the_machine(name: str) -> None:
    trace = load(name)
    assert trace["host_name"] == "sample"
    assert trace["traceName"] == f"{name}.json.gz"
    absolute = re.compile(r"^(/|[A-Za-z]:[\\/])|/(home|root|tmp|Users|work)/")
    assert [text for text in strings(trace) if absolute.search(text)] == []
    rows = [item for item in trace["traceEvents"] if item["ph"] == "M"]
    assert {item["pid"] for item in rows} == {4242, "Spans"}
    labels = {item["args"]["name"] for item in rows if "name" in item["args"]}
    assert labels == {"python", "thread 4242 (python)"}
    assert {item["pid"] for item in host_events(trace)} == {4242}


@every_file
def test_files_stay_small(name: str) -> None:
    assert (SAMPLES / f"{name}.json.gz").stat().st_size < 60_000


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("cpu-naive", "aten::masked_fill", "aten::scaled_dot_product_attention"),
        ("cpu-naive-inplace", "aten::masked_fill_", "aten::clone"),
        ("cpu-sdpa-math", "aten::_safe_softmax", "aten::masked_fill"),
        (
            "cpu-sdpa-flash",
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_attention_math",
        ),
        ("cpu-decode-cat", "aten::cat", "aten::copy_"),
        ("cpu-decode-preallocated", "aten::copy_", "aten::cat"),
    ],
)
def test_each_file_shows_its_variant(name: str, present: str, absent: str) -> None:
    names = {item["name"] for item in host_events(load(name))}
    assert present in names
    assert absent not in names
