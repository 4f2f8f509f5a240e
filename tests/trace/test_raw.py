"""A trace read for copying: every intact event by its own text, and a document that holds them."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyze.report.trace_file import write_trace
from analyze.trace import zstd
from analyze.trace.raw import RawEvent, head_of, raw_events, tail_of
from analyze.trace.reader import read_events

KERNEL = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}'
OP = '{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 1, "dur": 9}'
QUOTE = OP.replace("::mul", '"mul')
"""An event that is lost."""

DAMAGED = {
    "bare NaN": f'{{"traceEvents": [{OP}, {KERNEL[:-1]}, "args": {{"x": NaN}}}}, {OP}]}}',
    "unescaped quote": f'{{"traceEvents": [{OP}, {QUOTE}, {KERNEL}]}}',
    "half a surrogate": f'{{"traceEvents": [{OP.replace("mul", chr(92) + "ud800")}, {KERNEL}]}}',
    "cut short": f'{{"schemaVersion": 1, "traceEvents": [{OP}, {KERNEL}, {OP[:40]}',
    "two documents": f'{{"a": 1, "traceEvents": [{OP}]}}{{"b": 2, "traceEvents": [{KERNEL}]}}',
    "broken metadata": f'{{"x": "say "hi"", "y": 2, "traceEvents": [{OP}, {{}}, 5], "z": 3}}',
    "broken end": f'{{"y": 2, "traceEvents": [{OP},{KERNEL}], "z": tru, "traceName": "n"}}',
    "missing comma": f'{{"traceEvents": [{OP} {KERNEL}], "z": NaN}}',
    "stray commas": f'{{"traceEvents": [{OP},, {KERNEL},], "z": 3,}}',
    "log line": f'{{"traceEvents": [{OP}, WARNING: slow\n, {KERNEL}]}}',
    "array cut short": f"[{OP},\n{KERNEL},\n{OP[:30]}",
}


def copied(path: Path, output: Path) -> list[RawEvent]:
    events = []
    with raw_events(path) as trace, write_trace(output, trace.head) as document:
        for text, event in trace:
            events.append((text, event))
            document.write(text)
        document.tail = trace.tail()
    return events


def exactly(data: bytes) -> Any:
    return json.loads(data, parse_float=Decimal)


def test_every_sample_is_copied_with_its_members_and_digits(samples: Path, tmp_path: Path) -> None:
    for path in sorted(samples.glob("*.json.gz")):
        output = tmp_path / "copy.json"
        copied(path, output)
        original, copy = exactly(gzip.decompress(path.read_bytes())), exactly(output.read_bytes())
        assert copy == original
        assert list(copy) == list(original)


def test_the_text_of_an_event_is_the_files_own(tmp_path: Path) -> None:
    texts = [
        '{ "ph":"X", "cat":"kernel","name":"\\u00e9","ts":1729003456789012.345, "dur": 0.30 }',
        '{"ph": "X","name":"} , { [ \\" ]","ts":1e3,\r\n "args":{"a":[{"b":{}} , {"c":1}]}}',
        '{"ph": "C", "name": "big", "args": {"n": 123456789012345678901234567890}}',
    ]
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [' + "\r\n,\t".join(texts) + "]}")
    events = copied(path, tmp_path / "copy.json")
    assert [text.decode() for text, _ in events] == texts
    assert events[0][1]["ts"] == "1729003456789012.345"  # a float64 would lose the last digit
    assert exactly((tmp_path / "copy.json").read_bytes()) == exactly(path.read_bytes())


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_gives_what_the_reader_reads(damage: str, tmp_path: Path) -> None:
    path, output = tmp_path / "damaged.json", tmp_path / "copy.json"
    path.write_text(DAMAGED[damage])
    copied(path, output)
    original, copy = read_events(path), read_events(output)
    assert original.repairs.any
    assert not copy.repairs.any
    assert not copy.repairs.mended
    assert original.counts.events == copy.counts.events
    for name, frame in original.frames.items():
        assert frame.equals(copy.frames[name]), name
    assert copy.metadata == original.metadata


def test_large_fractional_times_survive_damage(tmp_path: Path) -> None:
    exact = OP.replace('"ts": 1,', '"ts": 1729003456789012.345,')
    path, output = tmp_path / "damaged.json", tmp_path / "copy.json"
    path.write_text(f'{{"traceEvents": [{exact}, {QUOTE}, {KERNEL}]}}')
    (text, event), _ = copied(path, output)
    assert text.decode() == exact
    assert event["ts"] == "1729003456789012.345"
    assert read_events(output).frames["ops"]["start_ns"].to_list() == [1729003456789012345]
    assert read_events(path).frames["ops"]["start_ns"].to_list() == [1729003456789012345]


def test_a_bare_array_stays_one(tmp_path: Path) -> None:
    path, output = tmp_path / "array.json", tmp_path / "copy.json"
    path.write_text(f"[\n{OP},\n{KERNEL}\n]\n")
    copied(path, output)
    assert exactly(output.read_bytes()) == exactly(path.read_bytes())


def test_an_empty_list_has_no_events(tmp_path: Path) -> None:
    path, output = tmp_path / "empty.json", tmp_path / "copy.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [], "traceName": "x"}')
    assert copied(path, output) == []
    assert exactly(output.read_bytes()) == exactly(path.read_bytes())


texts = st.text(alphabet='ab"\\{}[], :\t\u00e9\u2028', max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
anything = st.lists(st.dictionaries(texts, values, max_size=3) | values, max_size=8)


@settings(max_examples=200)
@given(values=anything, separator=st.sampled_from([", ", ",\n  ", "\r\n,"]), indent=st.booleans())
def test_any_list_is_cut_where_its_values_end(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], separator: str, indent: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    written = [json.dumps(value, indent=1 if indent else None) for value in values]
    path.write_text('{"traceEvents": [' + separator.join(written) + "]}")
    with raw_events(path) as trace:
        pairs = list(trace)
    objects = [i for i, value in enumerate(values) if isinstance(value, dict)]
    assert [text.decode() for text, _ in pairs] == [written[i] for i in objects]
    assert [json.loads(text) for text, _ in pairs] == [values[i] for i in objects]


def test_the_name_says_how_the_document_is_compressed(tmp_path: Path) -> None:
    unpack: Any = {
        "t.json": bytes,
        "t.json.gz": gzip.decompress,
        "t.json.zst": zstd.decompress,
    }
    for name, read in unpack.items():
        for _ in range(2):
            before = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
            with write_trace(tmp_path / name, head_of({"a": 1})) as document:
                document.write(b'{"ph": "X"}')
                document.tail = tail_of({"b": [2.5]})
            written = (tmp_path / name).read_bytes()
            assert before in (None, written)  # the same every time
        assert json.loads(read(written)) == {"a": 1, "traceEvents": [{"ph": "X"}], "b": [2.5]}


def test_real_traces_are_copied(real_traces: Path, tmp_path: Path) -> None:
    for name in ("tl-h100-bert", "hta-bigint", "gen-legacy-array", "gen-names", "gen-badmeta"):
        path = next(path for path in (real_traces / name).iterdir() if path.is_file())
        events = copied(path, tmp_path / "copy.json.gz")
        assert copied(tmp_path / "copy.json.gz", tmp_path / "again.json.gz") == events
        original, copy = read_events(path), read_events(tmp_path / "copy.json.gz")
        assert copy.counts.events == original.counts.events == len(events)
        assert copy.metadata == original.metadata
        assert not copy.repairs.any
