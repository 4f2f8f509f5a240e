"""A trace in any wrapping gives the same events, exactly."""

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyze.errors import TraceError
from analyze.trace import split, zstd
from analyze.trace.numbers import exact_ns, to_ns
from analyze.trace.reader import TraceEvents, read_events

KERNEL: dict[str, Any] = {
    "ph": "X",
    "cat": "kernel",
    "name": "ampere_sgemm_128x64_nn",
    "pid": 0,
    "tid": 7,
    "ts": 1000.125,
    "dur": 2.5,
    "args": {"device": 0, "stream": 7, "correlation": 11, "grid": [8, 1, 1], "block": [128, 1, 1]},
}
OP: dict[str, Any] = {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::mm",
    "pid": 42,
    "tid": 42,
    "ts": 990.0,
    "dur": 6.75,
    "args": {"External id": 3, "Input Dims": [[8, 4], [4, 8]], "Input type": ["float", "float"]},
}
DOCUMENT = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [OP, KERNEL] * 3}


def read(tmp_path: Path, data: bytes, name: str = "t.json") -> TraceEvents:
    path = tmp_path / name
    path.write_bytes(data)
    return read_events(path)


def plain(document: object = DOCUMENT, **dump: Any) -> bytes:
    return json.dumps(document, **dump).encode()


def same_events(one: TraceEvents, other: TraceEvents) -> bool:
    return all(
        one.frames[name].sort(pl.all()).equals(other.frames[name].sort(pl.all()))
        for name in one.frames
    )


SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0free"
"""A zstd frame that holds no data, as some tools write."""

WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip twice": lambda data: gzip.compress(gzip.compress(data)),
    "gzip members": lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]),
    "zstd": zstd.compress,
    "zstd frames": lambda data: zstd.compress(data[:100]) + SKIPPED + zstd.compress(data[100:]),
    "zstd in gzip": lambda data: gzip.compress(zstd.compress(data)),
    "UTF-8 with BOM": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16 with BOM": lambda data: data.decode().encode("utf-16"),
    "leading blank lines": lambda data: b"\r\n \n" + data,
    "trailing bytes after gzip": lambda data: gzip.compress(data) + b"\0\0\0",
    "zstd after a skipped frame": lambda data: SKIPPED + zstd.compress(data),
    "zstd before a skipped frame": lambda data: zstd.compress(data) + SKIPPED,
    "trailing bytes after zstd": lambda data: zstd.compress(data) + b"\0" * 10,
    "one trailing byte after zstd": lambda data: zstd.compress(data) + b"\0",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t"])
def test_content_decides_not_the_file_name(tmp_path: Path, wrapping: str, name: str) -> None:
    expected = read(tmp_path, plain(), "reference.json")
    found = read(tmp_path, WRAPPINGS[wrapping](plain()), name)
    assert found.counts.events == 6
    assert same_events(found, expected)
    assert found.metadata == {"schemaVersion": 1, "deviceProperties": []}
    assert not found.source.cut_short
    assert ("were ignored" in " ".join(found.source.notes)) == ("trailing" in wrapping)


@pytest.mark.parametrize("rest", [zstd.compress(b"rest")[:-3], b"\x28\xb5"])
def test_a_zstd_frame_that_is_cut_is_told(tmp_path: Path, rest: bytes) -> None:
    assert read(tmp_path, zstd.compress(plain()) + rest).source.cut_short


@pytest.mark.parametrize(
    "data",
    [
        plain(indent=1),
        plain(indent=4),
        plain(separators=(",", ":")),
        plain(dict(reversed(DOCUMENT.items()))),
        plain().replace(b", ", b",\r\n"),
        plain(DOCUMENT["traceEvents"]),
        plain({"a": {"b": [{"x": 1}, {"y": 2}]}, **DOCUMENT, "z": [{"pg": 1}, {"pg": 2}]}),
    ],
    ids=["indent 1", "indent 4", "compact", "events last", "CRLF", "bare array", "nested metadata"],
)
def test_layout_and_key_order_do_not_matter(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, data)
    assert same_events(found, read(tmp_path, plain(), "reference.json"))
    assert not found.repairs.any


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 9) | st.text('ab"}{[],:\\', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["ph", "name", "id", "args", "traceEvents", "nodes"]), inner, max_size=3
        )
    ),
)
_MEMBERS = st.dictionaries(st.sampled_from(["ph", "schema", "nodes", "device_traces"]), _JSON)


@given(_MEMBERS, _MEMBERS, st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=200)
@example({"schema": "v1", "nodes": ["a"]}, {}, None, False)
@example({"cluster": {"schema": "v1", "nodes": ["a"]}}, {}, None, False)
@example({"device_traces": []}, {}, None, False)
@example({"sample": {"ph": "7.0", "x": 1}}, {}, None, False)
@example({"samples": [{"ph": "7.0"}, {"name": "a", "ph": "8.0"}]}, {}, None, False)
@example({"cfg": {"traceEvents": [{"ph": 1}]}}, {}, None, False)
@example({}, {"sample": {"ph": "7.0", "x": 1}, "z": 3}, 1, False)
@example({}, {"samples": [{"ph": "7.0"}, {"name": "a", "ph": "8.0"}]}, None, True)
@example({}, {"cfg": {"traceEvents": [{"ph": 1}]}}, None, True)
@example({"long": "x" * 300_000}, {"long": ["x" * 300_000, {"ph": "y" * 300_000}]}, None, True)
def test_metadata_may_look_like_anything(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, Any],
    after: dict[str, Any],
    indent: int | None,
    sorted_keys: bool,
) -> None:
    first, last = (
        {f"{place} {k}": v for k, v in m.items()} for place, m in (("a", before), ("z", after))
    )
    events = [dict(sorted(event.items())) if sorted_keys else event for event in [OP, KERNEL] * 3]
    document = {"schemaVersion": 1, **first, "traceEvents": events, **last}
    found = read(tmp_path_factory.mktemp("metadata"), plain(document, indent=indent))
    assert found.counts.events == 6
    assert not found.repairs.any
    assert found.metadata == {"schemaVersion": 1, **first, **last}


def test_metadata_after_the_events_is_read(tmp_path: Path) -> None:
    document = {**DOCUMENT, "traceName": "x.json", "displayTimeUnit": "ms"}
    assert read(tmp_path, plain(document)).metadata["traceName"] == "x.json"


@pytest.mark.parametrize("chunk_bytes", [1, 64, 300, 1000])
def test_chunk_borders_do_not_matter(
    tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tricky = {**OP, "name": 'a "}, {" b', "args": {"list": [{"x": [{"y": 1}, {"z": 2}]}] * 3}}
    like_events = {**OP, "args": {"list": [{"id": 1}, {"name": 2}] * 20}}
    document = {"traceEvents": [OP, tricky, KERNEL, tricky, like_events] * 20}
    expected = read(tmp_path, plain(document), "reference.json")
    monkeypatch.setattr(split, "CHUNK_BYTES", chunk_bytes)
    found = read(tmp_path, plain(document))
    assert found.counts.events == 100
    assert not found.repairs.any
    assert same_events(found, expected)


def test_one_event_may_be_megabytes_long(tmp_path: Path) -> None:
    huge = {**OP, "args": {"text": "x" * 3_000_000, "list": [{"a": 1}, {"b": 2}] * 1000}}
    found = read(tmp_path, plain({"traceEvents": [KERNEL, huge, KERNEL]}))
    assert found.counts.events == 3
    assert not found.repairs.any


def test_unknown_events_and_arguments_are_carried(tmp_path: Path) -> None:
    events = [
        {**OP, "cat": "brand_new", "args": {"q": [1, {"deep": None}]}},
        {**KERNEL, "args": {**KERNEL["args"], "future": {"a": 1}}},
        {
            "ph": "C",
            "cat": "hardware_counters",
            "name": "c",
            "pid": "GPU 0",
            "ts": 1,
            "args": {"": 5},
        },
        {"ph": "Z", "name": "who knows"},
        {},
        17,
    ]
    found = read(tmp_path, plain({"traceEvents": events}))
    assert found.counts.events == 5
    assert found.counts.not_objects == 1
    assert found.counts.without_phase == 1
    other = found.frames["other"]
    assert json.loads(other["extra"][0]) == {"q": [1, {"deep": None}]}
    assert json.loads(other["extra"][1]) == {"": 5}
    assert json.loads(found.frames["gpu_ops"]["extra"][0]) == {"future": {"a": 1}}


def test_wrongly_typed_values_become_null_or_text_never_an_error(tmp_path: Path) -> None:
    odd = {
        "ph": "X",
        "cat": "kernel",
        "name": ["not", "text"],
        "pid": None,
        "tid": {"a": 1},
        "ts": "1000.125",
        "dur": "soon",
        "args": {"device": "0", "correlation": -1, "grid": "8", "blocks per SM": "inf"},
    }
    frame = read(tmp_path, plain({"traceEvents": [KERNEL, odd, {**odd, "args": 3}]})).frames[
        "gpu_ops"
    ]
    assert frame["start_ns"].to_list() == [1_000_125] * 3
    assert frame["dur_ns"].to_list() == [2500, None, None]
    assert frame["correlation"].to_list() == [11, None, None]


def test_ids_are_exact_up_to_uint64(tmp_path: Path) -> None:
    ids = [2**53 + 1, 2**63 + 1, 2**64 - 1]
    events = [{**KERNEL, "args": {"correlation": i, "External id": i}} for i in ids]
    frame = read(tmp_path, plain({"traceEvents": events})).frames["gpu_ops"]
    assert frame["correlation"].to_list() == ids
    assert frame["external_id"].to_list() == ids


def test_epoch_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    texts = [f"17127434{i:08d}.{i:03d}" for i in range(400)]
    body = ", ".join(json.dumps(KERNEL).replace("1000.125", text) for text in texts)
    for tail in ("]}", '], "traceName": "t"}'):
        found = read(tmp_path, b'{"traceEvents": [' + body.encode() + tail.encode())
        expected = [int(Decimal(text) * 1000) for text in texts]
        assert found.frames["gpu_ops"]["start_ns"].to_list() == expected


@pytest.mark.parametrize("text", ["1000.125", "1712743400000000.123"])
def test_times_that_are_all_texts(tmp_path: Path, text: str) -> None:
    events = [{**KERNEL, "ts": text, "args": {"pad": "x" * 200}}] * 2000
    found = read(tmp_path, plain({"traceEvents": events}))
    assert set(found.frames["gpu_ops"]["start_ns"]) == {int(Decimal(text) * 1000)}


@pytest.mark.parametrize(
    "odd",
    [
        {"ts": "1e999999999"},
        {"dur": "1e999999999"},
        {"ts": [1]},
        {"args": {"block": 2**70, "grid": -(2**70)}},
        {"args": {"deep": json.loads("[" * 400 + "]" * 400)}},
        {"args": {"graph id": 2**63, "bytes": 2**70, "correlation": 2**70}},
    ],
    ids=str,
)
def test_extreme_values_cost_at_most_themselves(tmp_path: Path, odd: dict[str, Any]) -> None:
    found = read(tmp_path, plain({"traceEvents": [KERNEL, {**KERNEL, **odd}, KERNEL]}))
    assert found.counts.events == 3
    assert found.frames["gpu_ops"]["start_ns"].to_list().count(1_000_125) >= 2


@given(st.lists(st.integers(0, (1 << 43) * 1000 - 1), min_size=1))
@settings(max_examples=300)
def test_relative_times_are_exact(nanoseconds: list[int]) -> None:
    microseconds = [float(f"{n // 1000}.{n % 1000:03d}") for n in nanoseconds]
    assert to_ns(microseconds).to_list() == nanoseconds


@given(
    st.lists(
        st.none()
        | st.integers(0, 1 << 43)
        | st.from_regex(r"[0-9]{1,16}(\.[0-9]{0,4})?", fullmatch=True)
    )
)
def test_texts_are_exact_beside_numbers(values: list[object]) -> None:
    assert to_ns(values).to_list() == [exact_ns(value) for value in values]


@pytest.mark.parametrize("chunk_bytes", [1, 300, 100_000])
def test_long_times_are_exact_wherever_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(split, "CHUNK_BYTES", chunk_bytes)
    times = [
        "1.001",
        "1700000000000000.123",
        "2.002",
        "1700000000000001.456",
        "3",
        "8796093022208.9",
        "1700000000000002.500e0",
        "8999999999999999.999",
        "-1729003456789012.345",
        "-1.5",
        "1.729003456789012345e15",
        "-1729003456789012345.0E-3",
    ]
    text = ",".join(json.dumps({**KERNEL, "ts": "T"}).replace('"T"', time) for time in times)
    found = read(tmp_path, f'{{"traceEvents": [{text}]}}'.encode())
    exact = [int(Decimal(time) * 1000) for time in times]
    assert found.frames["gpu_ops"]["start_ns"].to_list() == exact


@given(
    st.lists(
        st.from_regex(r"-?(0|[1-8][0-9]{0,15})(\.[0-9]{1,3})?", fullmatch=True)
        | st.from_regex(r"-?[1-8]\.[0-9]{1,18}[eE]\+?15", fullmatch=True),
        min_size=1,
    )
)
@settings(max_examples=300)
def test_times_of_any_size_and_sign_are_exact(
    tmp_path_factory: pytest.TempPathFactory, times: list[str]
) -> None:
    text = ",".join(json.dumps({**KERNEL, "ts": "T"}).replace('"T"', time) for time in times)
    found = read(tmp_path_factory.mktemp("times"), f'{{"traceEvents": [{text}]}}'.encode())
    exact = [(Decimal(time) * 1000).to_integral_value() for time in times]
    assert found.frames["gpu_ops"]["start_ns"].to_list() == exact


@given(st.lists(st.none() | st.booleans() | st.integers() | st.floats() | st.text()))
def test_any_value_gives_nanoseconds_or_null(values: list[object]) -> None:
    series = to_ns(values)
    assert series.dtype == pl.Int64
    assert len(series) == len(values)


@pytest.mark.parametrize("flush_rows", [1, 4, 100])
def test_times_of_every_kind_in_one_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush_rows: int
) -> None:
    monkeypatch.setattr("analyze.trace.buffers.FLUSH_ROWS", flush_rows)
    monkeypatch.setattr(split, "CHUNK_BYTES", 1)
    times = [1.5, 2, "3.25", None, True, 4.125, [5], 6, 7.001, "x", 1e300, 10**400, 8]
    found = read(tmp_path, plain({"traceEvents": [{**KERNEL, "ts": ts} for ts in times]}))
    nanoseconds = [1500, 2000, 3250, None, None, 4125, None, 6000, 7001, None, None, None, 8000]
    assert found.frames["gpu_ops"]["start_ns"].to_list() == nanoseconds


def test_many_distinct_names_are_spelt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyze.trace.buffers.POOL_LIMIT", 50)
    monkeypatch.setattr("analyze.trace.buffers.FLUSH_ROWS", 40)
    names = [f"kernel_{i}" for i in range(500)]
    events = [{**KERNEL, "name": name} for name in names]
    found = read(tmp_path, plain({"traceEvents": events}))
    assert found.frames["gpu_ops"]["name"].to_list() == names


def test_legacy_export_without_categories(tmp_path: Path) -> None:
    events = [
        {"name": "aten::mm", "ph": "X", "ts": 1.5, "dur": 9, "tid": 1, "pid": "CPU functions"},
        {"name": "sgemm", "ph": "X", "ts": 3, "dur": 4, "tid": 0, "pid": "CUDA functions"},
    ]
    found = read(tmp_path, plain(events))
    assert found.frames["ops"].height == 1
    assert found.frames["gpu_ops"].height == 1


def test_other_kinds_are_named_where_they_speak_of_trace_events(tmp_path: Path) -> None:
    nodes = [{"name": "traceEvents"}, {"name": 'the key "traceEvents":'}]
    with pytest.raises(TraceError, match="execution trace"):
        read(tmp_path, plain({"schema": "1.0.2", "pid": 1, "nodes": nodes}))


def test_missing_and_unreadable_paths(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        read_events(tmp_path / "missing.json")
    with pytest.raises(TraceError, match="is a directory"):
        read_events(tmp_path)


def test_threads_with_the_same_text_are_one(tmp_path: Path) -> None:
    threads = [(42, 42), ("42", "42"), (42, 7), (None, 7), ({"a": 1}, [2])]
    events = [{**OP, "pid": pid, "tid": tid} for pid, tid in threads]
    del events[3]["pid"]
    found = read(tmp_path, plain({"traceEvents": events}))
    assert found.frames["ops"]["lane"].to_list() == [0, 0, 1, 2, 3]
    assert found.threads.rows() == [("42", "42"), ("42", "7"), (None, "7"), ('{"a":1}', "[2]")]


def test_arguments_that_come_late_or_not_at_all_are_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analyze.trace.buffers.FLUSH_ROWS", 4)
    monkeypatch.setattr(split, "CHUNK_BYTES", 1)
    bare = {**KERNEL, "args": {}}
    events = [*[bare] * 10, KERNEL, bare, KERNEL, *[bare] * 9]
    frame = read(tmp_path, plain({"traceEvents": events})).frames["gpu_ops"]
    assert frame["correlation"].to_list() == [None] * 10 + [11, None, 11] + [None] * 9
    assert frame["grid"].to_list() == [None] * 10 + ["[8,1,1]", None, "[8,1,1]"] + [None] * 9
    assert frame["extra"].null_count() == frame["bytes"].null_count() == 22


def test_one_column_under_two_names_in_one_event(tmp_path: Path) -> None:
    event = {**OP, "args": {"External id": 3, "external id": 4}}
    found = read(tmp_path, plain({"traceEvents": [event, OP]}))
    assert found.frames["ops"]["external_id"].to_list() == [4, 3]
