"""The event reader gives back every intact event, whatever surrounds it."""

import json
from pathlib import Path
from typing import Any

import pytest

from capture import trace_events
from capture.trace_events import EventReader

Event = dict[str, Any]

ODD_NAMES = (
    "plain",
    'quoted "name"',
    "{ nested { braces } [ and ] }",
    "back\\slash",
    'a "traceEvents": [ of its own',
    "é 漢 😀",
    "]",
)
EVENTS: list[Event] = [
    {"ph": "X", "cat": "cpu_op", "name": name, "ts": n, "dur": 1, "args": {"Input Dims": [[n], []]}}
    for n, name in enumerate(ODD_NAMES)
]
TEXTS = [json.dumps(event, ensure_ascii=False, indent=2) for event in EVENTS]
DAMAGED = '{\n    "ph": "X", "cat": "cpu_op", "name": "a "broken" name", "args": {"a": {}}\n  }'


def document(*events: str, end: str = '\n  ],\n  "traceName": "t"\n}') -> str:
    head = '{\n  "schemaVersion": 1,\n  "kinetolint_capture": {"a": [1]},\n  "traceEvents": [\n  '
    return head + ",\n  ".join(events) + end


def read(folder: Path, text: str) -> tuple[list[Event], EventReader]:
    path = folder / "trace.json"
    path.write_text(text, encoding="utf-8")
    reader = EventReader(path)
    return list(reader), reader


@pytest.fixture(params=[1, 7, 64, 1 << 20], ids=lambda size: f"chunks of {size}")
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    size: int = request.param
    monkeypatch.setattr(trace_events, "_CHUNK", size)
    return size


@pytest.mark.usefixtures("chunk")
class TestInChunks:
    def test_every_event_comes_back(self, tmp_path: Path) -> None:
        found, reader = read(tmp_path, document(*TEXTS))
        assert found == EVENTS
        assert reader.damaged == 0
        assert reader.complete

    @pytest.mark.parametrize("place", range(len(TEXTS)))
    def test_a_damaged_event_costs_only_itself(self, tmp_path: Path, place: int) -> None:
        found, reader = read(tmp_path, document(*TEXTS[:place], DAMAGED, *TEXTS[place:]))
        assert found == EVENTS
        assert reader.damaged == 1
        assert reader.complete

    def test_a_cut_within_an_event(self, tmp_path: Path) -> None:
        found, reader = read(tmp_path, document(*TEXTS, end="")[:-9])
        assert found == EVENTS[:-1]
        assert reader.damaged == 1
        assert not reader.complete

    def test_a_cut_between_events(self, tmp_path: Path) -> None:
        found, reader = read(tmp_path, document(*TEXTS, end=",\n"))
        assert found == EVENTS
        assert reader.damaged == 0
        assert not reader.complete

    def test_no_events_at_all(self, tmp_path: Path) -> None:
        found, reader = read(tmp_path, document())
        assert found == []
        assert reader.complete

    @pytest.mark.parametrize("text", ["", "{}", '{"traceEvents": ', "no JSON"])
    def test_no_list_of_events(self, tmp_path: Path, text: str) -> None:
        found, reader = read(tmp_path, text)
        assert found == []
        assert not reader.complete


def test_a_damaged_event_does_not_hide_those_far_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_events, "_CHUNK", 64)
    monkeypatch.setattr(trace_events, "_MAX_EVENT", 256)
    found, reader = read(tmp_path, document(DAMAGED, *(TEXTS * 50)))
    assert found == EVENTS * 50
    assert reader.damaged == 1


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(document(*TEXTS).replace("plain", "pl\x00in").encode().replace(b"\0", b"\xff"))
    names = [event["name"] for event in EventReader(path)]
    assert names == ["pl\ufffdin", *ODD_NAMES[1:]]
