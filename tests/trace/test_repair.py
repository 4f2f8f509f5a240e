"""Every intact event of a damaged file comes back, and the damage is told."""

import gzip
import json
from collections import Counter
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyze.trace import split
from analyze.trace.reader import TraceEvents, read_events
from analyze.trace.repair import repair_text


def event(number: int, name: str | None = None) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name or f"op {number}",
        "pid": 1,
        "tid": 1,
        "ts": number * 10,
        "dur": 5,
        "args": {"External id": number, "Input Dims": [[2, 3], []]},
    }


def document(*texts: str, head: str = '{"schemaVersion": 1, ', tail: str = "]}") -> bytes:
    return (head + '"traceEvents": [\n  ' + ",\n  ".join(texts) + "\n" + tail).encode()


def dumped(*numbers: int) -> list[str]:
    return [json.dumps(event(number), indent=2) for number in numbers]


def read(tmp_path: Path, data: bytes) -> TraceEvents:
    path = tmp_path / "damaged.json"
    path.write_bytes(data)
    return read_events(path)


def names(found: TraceEvents) -> list[str]:
    return found.frames["ops"]["name"].to_list()


def test_an_unescaped_quote_costs_its_own_event_only(tmp_path: Path) -> None:
    bad = json.dumps(event(3)).replace("op 3", 'say "hi" there')
    found = read(tmp_path, document(*dumped(1, 2), bad, *dumped(4, 5)))
    assert names(found) == ["op 1", "op 2", "op 4", "op 5"]
    assert found.repairs.events_lost == 1
    assert not found.repairs.truncated


def test_the_broken_event_may_be_the_last_or_the_first(tmp_path: Path) -> None:
    bad = json.dumps(event(9)).replace("op 9", 'a "b" c')
    assert names(read(tmp_path, document(*dumped(1, 2), bad))) == ["op 1", "op 2"]
    assert names(read(tmp_path, document(bad, *dumped(1, 2)))) == ["op 1", "op 2"]


@pytest.mark.parametrize(
    ("old", "new", "kind", "name"),
    [
        ("op 3", "a\tb\nc\x01", "control_character", "a\tb\nc\x01"),
        ("op 3", r"C:\work\new", "backslash", None),
        ("op 3", r"half \ud800 pair", "surrogate", "half \ufffd pair"),
    ],
)
def test_bytes_inside_names_are_mended(
    tmp_path: Path, old: str, new: str, kind: str, name: str | None
) -> None:
    texts = [text.replace(old, new) for text in dumped(1, 2, 3, 4)]
    found = read(tmp_path, document(*texts))
    assert found.counts.events == 4
    assert found.repairs.mended[kind] >= 1
    assert found.repairs.events_lost == 0
    if name is not None:
        assert names(found)[2] == name


def test_repairs_of_the_last_event_are_counted(tmp_path: Path) -> None:
    texts = [*dumped(1, 2), dumped(3)[0].replace("op 3", r"C:\work")]
    found = read(tmp_path, document(*texts, tail='], "traceName": "x"}'))
    assert found.counts.events == 3
    assert found.repairs.mended["backslash"] == 1


@pytest.mark.parametrize("bare", ["NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"])
def test_bare_numbers_become_unknown(tmp_path: Path, bare: str) -> None:
    texts = [text.replace('"dur": 5', f'"dur": {bare}') for text in dumped(1, 2)]
    found = read(tmp_path, document(*texts, *dumped(3)))
    assert found.frames["ops"]["dur_ns"].to_list() == [None, None, 5000]
    assert found.repairs.mended["bare_number"] == 2


def test_not_utf8_is_replaced_and_told(tmp_path: Path) -> None:
    data = document(*dumped(1, 2)).replace(b"op 2", b"op \xff2")
    found = read(tmp_path, data)
    assert names(found) == ["op 1", "op \ufffd2"]
    assert found.repairs.mended["not_utf8"] == 1


@pytest.mark.parametrize("tail", ["]}", ",]}", ",\n\n  ]}"])
def test_trailing_and_double_commas(tmp_path: Path, tail: str) -> None:
    data = document(*dumped(1, 2, 3), tail=tail).replace(b"},\n  {", b"},,\n  {", 1)
    found = read(tmp_path, data)
    assert names(found) == ["op 1", "op 2", "op 3"]
    assert not found.repairs.truncated


def test_every_cut_keeps_all_whole_events_before_it(tmp_path: Path) -> None:
    data = document(*dumped(1, 2, 3, 4))
    ends = [data.index(b'"op %d"' % n) for n in (1, 2, 3, 4)]
    closings = [data.index(b"\n}", end) + 2 for end in ends]
    for cut in range(data.index(b"[") + 1, len(data)):
        found = read_cut(tmp_path, data[:cut])
        whole = sum(closing <= cut for closing in closings)
        assert found.counts.events == whole, f"cut at {cut}"
        if cut < data.rindex(b"]"):
            assert found.repairs.truncated


def read_cut(tmp_path: Path, data: bytes) -> TraceEvents:
    return read(
        tmp_path,
        data.replace(b'{"schemaVersion": 1', b'{"deviceProperties": [], "schemaVersion": 1'),
    )


def test_a_truncated_gzip_yields_what_was_written(tmp_path: Path) -> None:
    data = document(*dumped(*range(3000)))
    whole = gzip.compress(data)
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    found = read_events(path)
    assert found.source.cut_short
    assert found.repairs.truncated
    assert 500 < found.counts.events < 3000
    assert names(found) == [f"op {n}" for n in range(found.counts.events)]


def test_log_lines_between_and_after_the_events(tmp_path: Path) -> None:
    text = document(*dumped(1, 2, 3)).decode()
    first_end = text.index("},\n  {") + 2
    noisy = text[:first_end] + "\nWARNING: 2026 something (and more)\n" + text[first_end:]
    found = read(tmp_path, noisy.encode())
    assert names(found) == ["op 1", "op 2", "op 3"]
    assert found.repairs.foreign_texts == 1
    after = read(tmp_path, document(*dumped(1, 2), tail='], "ERROR": ["quote " inside"]}'))
    assert names(after) == ["op 1", "op 2"]
    assert after.repairs.metadata_broken


def test_broken_metadata_loses_only_the_broken_member(tmp_path: Path) -> None:
    head = (
        '{"schemaVersion": 1, "bad": {not json, "traceName": "x", "deviceProperties": [{"id": 0}], '
    )
    found = read(tmp_path, document(*dumped(1, 2), head=head))
    assert names(found) == ["op 1", "op 2"]
    assert found.metadata["deviceProperties"] == [{"id": 0}]
    assert found.metadata["traceName"] == "x"
    assert found.repairs.metadata_lost == ["bad"]


def test_two_documents_in_one_file(tmp_path: Path) -> None:
    one, two = document(*dumped(1, 2)), document(*dumped(3, 4))
    found = read(tmp_path, one + two)
    assert names(found) == ["op 1", "op 2", "op 3", "op 4"]
    assert found.repairs.documents == 2


@pytest.mark.parametrize("cut_after", ["}", "},", "}, ", "}, {"])
@pytest.mark.parametrize("between", ["", "\n"])
def test_a_whole_document_behind_one_that_was_cut(
    tmp_path: Path, cut_after: str, between: str
) -> None:
    one = '{"schemaVersion": 1, "traceEvents": [' + ", ".join(dumped(1, 2)) + cut_after[1:]
    found = read(tmp_path, one.encode() + between.encode() + document(*dumped(3, 4, 5)))
    assert names(found) == [f"op {n}" for n in range(1, 6)]
    assert found.counts.without_phase == 0
    begun = cut_after.endswith("{")  # an event of which nothing else is left
    assert (found.repairs.documents, found.repairs.events_lost) == ((1, 1) if begun else (2, 0))


@pytest.mark.parametrize("damage", ["NaN", '"a\x01b"'])
def test_events_without_commas_are_mended_one_by_one(tmp_path: Path, damage: str) -> None:
    texts = [text.replace('"ts"', f'"x": {damage}, "ts"', 1) for text in dumped(*range(300))]
    data = '{"schemaVersion": 1, "traceEvents": [' + "\n".join(texts) + "]}"
    found = read(tmp_path, data.encode())
    assert names(found) == [f"op {n}" for n in range(300)]
    assert found.repairs.events_lost == 0
    assert found.repairs.mended["missing_comma"] == 299


def test_events_without_commas_are_read_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "MAX_HEADER_BYTES", 1 << 20)
    texts = dumped(*range(20_000))
    data = '{"schemaVersion": 1, "traceEvents": [' + "\n".join(texts) + "]}"
    assert len(data) > 2 << 20
    assert read(tmp_path, data.encode()).counts.events == 20_000


def test_many_events_that_end_in_the_middle_are_passed_in_little_time(tmp_path: Path) -> None:
    """In minutes where each is looked for in all that follows."""
    halves = [text[: text.index("op ") + 3] for text in dumped(*range(3000))]
    found = read(tmp_path, document(*dumped(1, 2), ",\n".join(halves)))
    assert names(found)[:2] == ["op 1", "op 2"]
    assert found.repairs.any


@pytest.mark.parametrize("first", ["args", "cat", "name", "ts"])
def test_the_second_documents_events_begin_with_any_key(tmp_path: Path, first: str) -> None:
    texts = [json.dumps({first: event(n)[first], **event(n)}) for n in range(5)]
    devices = '"deviceProperties": [{"id": 0, "name": "a GPU"}]'
    one = document(*texts[:2], tail='], "traceName": "a"}\n')
    for second in (", ".join(texts[2:]) + "]}", f"{devices}, {texts[2]}, {texts[3]}, {texts[4]}"):
        found = read(tmp_path, one + second.encode())
        assert names(found) == [f"op {n}" for n in range(5)]
        assert found.counts.without_phase == 0
        assert found.repairs.documents == 2
        assert found.metadata["traceName"] == "a"


def test_a_log_line_that_looks_like_the_end_of_the_list(tmp_path: Path) -> None:
    texts = [json.dumps(event(n), sort_keys=True) for n in range(4)]
    texts[1] = texts[1].replace("op 1", '"}]}INFO: foo { "x": 1 }op 1')
    found = read(tmp_path, document(*texts))
    assert names(found) == ["op 0", "op 2", "op 3"]
    assert found.counts.without_phase + found.repairs.events_lost == 1
    assert found.repairs.any


@pytest.mark.parametrize("chunk_bytes", [300, 2000])
def test_a_broken_event_costs_no_other_whatever_the_order_of_keys(
    tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "CHUNK_BYTES", chunk_bytes)
    events = [{**event(n), "args": {"list": [{"id": 1}, {"name": 2}] * 5}} for n in range(40)]
    for damage in ('"op 17', 'op" 17', '"}]}INFO { "x": 1 }op 17'):
        texts = [json.dumps(each, sort_keys=True) for each in events]
        texts[17] = texts[17].replace("op 17", damage)
        found = read(tmp_path, document(*texts))
        assert {f"op {n}" for n in range(40) if n != 17} == set(names(found))


def test_two_processes_that_overwrote_each_other(tmp_path: Path) -> None:
    one = document(*dumped(*range(100)))
    two = document(*dumped(*range(1000, 1100)))
    middle = len(one) // 2
    found = read(tmp_path, one[:middle] + two[: middle // 2] + one[middle + middle // 2 :])
    kept = set(names(found))
    assert {f"op {n}" for n in range(40)} <= kept
    assert {f"op {n}" for n in range(85, 100)} <= kept
    assert {f"op {n}" for n in range(1000, 1010)} <= kept


@pytest.mark.parametrize("chunk_bytes", [200, 1000, 5000])
def test_repairs_do_not_depend_on_chunk_borders(
    tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = dumped(*range(60))
    texts[17] = texts[17].replace("op 17", 'bro"ken')
    texts[40] = texts[40].replace("op 40", "tab\there")
    monkeypatch.setattr(split, "CHUNK_BYTES", chunk_bytes)
    found = read(tmp_path, document(*texts))
    assert found.counts.events == 59
    assert found.repairs.events_lost == 1
    assert "tab\there" in names(found)


@pytest.mark.parametrize(
    ("separator", "kind"), [(",,", "stray_comma"), (" ", "missing_comma"), ("", "missing_comma")]
)
def test_wrong_commas_are_counted(tmp_path: Path, separator: str, kind: str) -> None:
    one, two, three = dumped(1, 2, 3)
    data = f'{{"schemaVersion": 1, "traceEvents": [{one}{separator}{two},{three}]}}'
    found = read(tmp_path, data.encode())
    assert names(found) == ["op 1", "op 2", "op 3"]
    assert found.repairs.mended[kind] == 1


def test_a_damaged_key_of_the_event_list(tmp_path: Path) -> None:
    data = document(*dumped(1, 2, 3))
    for damage in (b'"tracEvents"', b"", b"traceEvents"):
        found = read(tmp_path, data.replace(b'"traceEvents"', damage))
        assert names(found) == ["op 1", "op 2", "op 3"]


def test_one_event_that_is_too_long_does_not_cost_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "MAX_HEADER_BYTES", 1 << 20)
    huge = json.dumps(event(9, "x" * (3 << 20)))
    found = read(tmp_path, document(*dumped(*range(1000)), huge, *dumped(2000)))
    assert found.counts.events >= 1000
    assert found.repairs.truncated
    assert "longer than" in found.source.notes[0]


@pytest.mark.parametrize(
    "data",
    [
        document(*(json.dumps(event(n, 'k"k')).replace('\\"', '"') for n in range(20_000))),
        document(*dumped(1)) * 400,
        document(json.dumps(event(1)), '{"ph":' * 20_000 + "1"),
        document(json.dumps(event(1)), '{"name":' * 200_000),
        document(json.dumps(event(1)), head='{"schemaVersion": 1, ' + '"bad": [' * 100_000),
    ],
    ids=["a quote in every event", "many documents", "nested events", "nested names", "metadata"],
)
def test_repairing_takes_time_in_proportion(tmp_path: Path, data: bytes) -> None:
    """Quadratic repairs of these inputs ran for minutes, which the runner's patience shows."""
    assert read(tmp_path, data).counts.events >= 0


@given(st.binary(max_size=200), st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_arbitrary_damage_never_raises(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int
) -> None:
    data = document(*dumped(*range(12)))
    at = place % (len(data) - 60) + 40
    damaged = data[:at] + noise + data[at + len(noise) // 2 :]
    found = read(tmp_path_factory.mktemp("damage"), damaged)
    assert found.counts.events <= 12 + damaged.count(b'"ph"')


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner)
        ),
    )
)
def test_valid_json_is_left_alone(value: object) -> None:
    text = orjson.dumps(value).decode()
    mended: Counter[str] = Counter()
    assert orjson.loads(repair_text(text, mended)) == orjson.loads(text)
    assert not mended
