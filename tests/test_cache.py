"""The cache: the same tables and reports from it, and never a failure or a wrong answer because of
what lies in it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyze.cache import packing, reading
from analyze.cache.reading import CacheMode, read_events_cached
from analyze.cache.store import Store, default_folder
from analyze.engine.loading import load_rules
from analyze.engine.run import run_rules
from analyze.errors import AnalyzeError
from analyze.report.summary import summarise
from analyze.tables.build import Trace
from analyze.tables.catalogue import TABLES
from analyze.trace.reader import TraceEvents, read_events
from tests.conftest import ROOT, RunAnalyze

NAME = "ab" * 20
RULES = load_rules(tests=False)
SAMPLES = sorted(path.name for path in (ROOT / "sample_traces").glob("*.json.gz"))
REAL_TRACES = (
    "gen-badmeta", "gen-cpu-train", "gen-legacy-array", "gen-names", "hta-amd-mi250", "hta-bigint",
    "hta-mtia-inf", "kin-gpumetrics-exp", "switch-a100", "tl-h100-owl", "tl-vllm-dec",
)  # fmt: skip

Read = Callable[..., TraceEvents]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache traces of any size."""
    monkeypatch.setattr(reading, "MIN_TEXT_BYTES", 0)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the traces that were read themselves, not from the cache."""
    paths: list[str] = []

    def read(path: str | Path, *rest: Any) -> TraceEvents:
        paths.append(str(path))
        return read_events(path, *rest)

    monkeypatch.setattr(reading, "read_events", read)
    return paths


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.json", 3)


def write_trace(path: Path, events: int) -> Path:
    event = (
        '{"ph": "X", "cat": "cpu_op", "name": "aten::op%d", "pid": 1, "tid": 1, "ts": %d, "dur": 1}'
    )
    written = ",\n".join(event % (number % 7, 2 * number) for number in range(events))
    path.write_text('{"schemaVersion": 1, "traceEvents": [\n' + written + "\n]}")
    return path


def everything(events: TraceEvents) -> dict[str, Any]:
    """All that a report could say about a trace, and every row of every table."""
    trace = Trace(events)
    return {
        **{name: Rows(trace.table(name)) for name in TABLES},
        "header": trace.header,
        "summary": summarise(trace),
        "report": run_rules(trace, RULES).to_dict(),
    }


class Rows:
    """The rows of a table, equal to those of a table with the same columns and values."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Rows)
        same_schema = self.frame.schema == other.frame.schema
        return same_schema and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.frame)


def assert_same(path: Path, store: Store, readings: list[str]) -> None:
    plain = everything(read_events(path))
    for _ in range(2):
        assert everything(read_events_cached(path, store=store)) == plain
    assert readings == [str(path)]


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_the_same_from_the_cache(
    name: str, samples: Path, store: Store, readings: list[str]
) -> None:
    assert_same(samples / name, store, readings)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("name", REAL_TRACES)
def test_real_traces_are_the_same_from_the_cache(
    name: str, real_traces: Path, store: Store, readings: list[str]
) -> None:
    (path,) = (file for file in (real_traces / name).iterdir() if ".json" in file.name)
    assert_same(path, store, readings)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(
    "text",
    [
        b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a\\b",'
        b' "pid": 1, "tid": NaN, "ts": 1, "dur": 1},,{"ph": "X", "cat": "ke',
        b'{"schemaVersion": 1, "big": 123456789012345678901234567890, "x": 1e999,'
        b' "traceEvents": [], "half": "\\ud800", "open": {"a"',
        '{"schemaVersion": 1, "ä": "\\u0000", "traceEvents": []}'.encode("utf-16"),
    ],
    ids=["repaired", "odd metadata", "utf-16"],
)
def test_damaged_traces_are_the_same_from_the_cache(
    text: bytes, tmp_path: Path, store: Store, readings: list[str]
) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(text)
    plain = read_events(path)
    for _ in range(2):
        found = read_events_cached(path, store=store)
        assert vars(found.repairs) == vars(plain.repairs)
        assert type(found.repairs.mended) is type(plain.repairs.mended)
        assert vars(found.source) == vars(plain.source)
        assert found.counts == plain.counts
        assert found.metadata == plain.metadata
    assert len(readings) == 1


@pytest.mark.usefixtures("any_size")
def test_the_path_is_the_one_asked_for(trace: Path, store: Store, readings: list[str]) -> None:
    read_events_cached(trace, store=store)
    moved = trace.rename(trace.with_name("moved.json"))
    assert read_events_cached(moved, store=store).source.name == str(moved)
    assert readings == [str(trace)]


@pytest.mark.usefixtures("any_size")
def test_other_bytes_are_another_trace_even_with_the_same_size_and_time(
    trace: Path, store: Store
) -> None:
    read_events_cached(trace, store=store)
    before = trace.stat()
    with trace.open("r+b") as file:
        content = file.read().replace(b"op2", b"op9")
        file.seek(0)
        file.write(content)
    os.utime(trace, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = trace.stat()
    assert (before.st_ino, before.st_size, before.st_mtime_ns) == (
        after.st_ino, after.st_size, after.st_mtime_ns,
    )  # fmt: skip
    assert "aten::op9" in read_events_cached(trace, store=store).frames["ops"]["name"]


@pytest.fixture
def another_decoder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As after an update of polars."""
    reading._decoder_fingerprint.cache_clear()
    monkeypatch.setattr(pl, "__version__", "99.0")
    yield
    reading._decoder_fingerprint.cache_clear()


@pytest.mark.usefixtures("any_size")
def test_another_version_reads_again(
    trace: Path, store: Store, readings: list[str], request: pytest.FixtureRequest
) -> None:
    read_events_cached(trace, store=store)
    request.getfixturevalue("another_decoder")
    read_events_cached(trace, store=store)
    read_events_cached(trace, store=store)
    assert len(readings) == 2


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(("mode", "times"), [("auto", 1), ("off", 3), ("refresh", 3)])
def test_modes(mode: CacheMode, times: int, trace: Path, store: Store, readings: list[str]) -> None:
    for _ in range(3):
        read_events_cached(trace, mode=mode, store=store)
    assert len(readings) == times
    assert store.usage().entries == (mode != "off")


def entry_of(store: Store) -> Path:
    (path,) = store.folder.glob("*.events")
    return path


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another kind": lambda path: path.write_bytes(b"PK\x03\x04" * 1000),
    "pipe": replaced_by_a_pipe,
    "no key": lambda path: path.with_name("key").unlink(),
    "short key": lambda path: path.with_name("key").write_bytes(b"short"),
    "another key": lambda path: path.with_name("key").write_bytes(bytes(32)),
    "open key": lambda path: path.with_name("key").chmod(0o644),
}


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_read_again_and_written_anew(
    damage: str, trace: Path, store: Store, readings: list[str]
) -> None:
    plain = everything(read_events_cached(trace, store=store))
    DAMAGES[damage](entry_of(store))
    for _ in range(2):
        assert everything(read_events_cached(trace, store=store)) == plain
    assert len(readings) == 2


@pytest.mark.usefixtures("any_size")
def test_what_cannot_be_replaced_is_passed_over(
    trace: Path, store: Store, readings: list[str]
) -> None:
    plain = everything(read_events_cached(trace, store=store))
    replaced_by_a_folder(entry_of(store))
    assert everything(read_events_cached(trace, store=store)) == plain
    assert len(readings) == 2


@settings(max_examples=200)
@given(at=st.floats(0, 1, exclude_max=True), value=st.integers(1, 255))
def test_any_changed_byte_is_noticed(
    at: float, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store(tmp_path_factory.getbasetemp() / "bytes")
    store.put(NAME, b"what was cached" * 5)
    path = entry_of(store)
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= value
    path.write_bytes(data)
    assert store.get(NAME) is None


def test_an_entry_under_the_name_of_another_is_not_trusted(store: Store) -> None:
    store.put(NAME, b"one")
    other = NAME.replace("a", "c")
    (store.folder / f"{NAME}.events").rename(store.folder / f"{other}.events")
    assert store.get(other) is None


@pytest.mark.usefixtures("any_size")
def test_an_entry_of_somebody_else_is_never_decoded(
    trace: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow data made to crash the reader of it carries somebody else's signature, if any."""
    read_events_cached(trace, store=store)
    path = entry_of(store)
    theirs = Store(tmp_path / "theirs")
    theirs.put(path.stem, hostile_arrow())
    path.write_bytes(entry_of(theirs).read_bytes())
    monkeypatch.setattr(packing, "unpack", lambda *_: pytest.fail("it was decoded"))
    assert read_events_cached(trace, store=store).counts.events == 3


def hostile_arrow() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_ipc(buffer)
    return buffer.getvalue().replace(b"\0\0\0\0", b"\xff\xff\xff\x7f")


@pytest.mark.skipif(sys.platform == "win32", reason="no mode bits")
def test_a_folder_that_others_can_write_to_is_not_used(store: Store) -> None:
    assert store.put(NAME, b"one")
    store.folder.chmod(0o777)
    assert store.get(NAME) is None
    assert not store.put(NAME, b"two")


@pytest.mark.skipif(sys.platform == "win32", reason="no mode bits")
def test_nobody_else_can_read_it(store: Store) -> None:
    store.put(NAME, b"one")
    modes = [
        path.stat().st_mode & 0o777 for path in (store.folder, *sorted(store.folder.iterdir()))
    ]
    assert modes == [0o700, 0o600, 0o600]


def test_signed_rubbish_is_passed_over(
    trace: Path, store: Store, readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry that cannot be decoded, although it is ours, costs nothing but time."""
    monkeypatch.setattr(reading, "MIN_TEXT_BYTES", 0)
    monkeypatch.setattr(packing, "pack", lambda _: b"\xff" * 100)
    read_events_cached(trace, store=store)
    assert read_events_cached(trace, store=store).counts.events == 3
    assert len(readings) == 2


@pytest.mark.usefixtures("any_size")
def test_metadata_that_json_cannot_hold_is_not_cached(
    trace: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str | Path, *rest: Any) -> TraceEvents:
        events = read_events(path, *rest)
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        events.metadata["deep"] = deep
        return events

    monkeypatch.setattr(reading, "read_events", read)
    assert "deep" in read_events_cached(trace, store=store).metadata
    assert store.usage().entries == 0


@pytest.mark.usefixtures("any_size")
def test_a_trace_that_grows_while_it_is_read_is_not_cached(
    trace: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str | Path, *rest: Any) -> TraceEvents:
        events = read_events(path, *rest)
        with trace.open("a") as file:
            file.write("\n")
        return events

    monkeypatch.setattr(reading, "read_events", read)
    read_events_cached(trace, store=store)
    assert store.usage().entries == 0


def test_small_traces_are_not_cached(trace: Path, store: Store) -> None:
    read_events_cached(trace, store=store)
    assert not store.folder.exists()


@pytest.mark.usefixtures("any_size")
def test_pipes_are_not_cached(trace: Path, store: Store, readings: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, trace.read_bytes())
    os.close(write_end)
    assert read_events_cached(f"/dev/fd/{read_end}", store=store).counts.events == 3
    os.close(read_end)
    assert len(readings) == 1
    assert not store.folder.exists()


@pytest.mark.usefixtures("any_size")
def test_a_full_disk_does_not_fail_the_run(
    trace: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert read_events_cached(trace, store=store).counts.events == 3
    assert list(store.folder.iterdir()) == []


def test_the_entries_used_longest_ago_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", max_bytes=3000)
    foreign = [store.folder / "notes.txt", store.folder / "deadbeef.events"]
    names = [f"{number:040x}" for number in range(4)]
    for age, name in enumerate(names[:3]):
        store.put(name, bytes(900))
        os.utime(store.folder / f"{name}.events", (1000 + age, 1000 + age))
    for file in foreign:
        file.write_bytes(bytes(5000))
    assert store.get(names[0]) is not None
    store.put(names[3], bytes(900))
    assert [store.get(name) is not None for name in names] == [True, False, True, True]
    assert all(file.exists() for file in foreign)


def test_what_is_larger_than_the_whole_cache_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", max_bytes=1000)
    assert not store.put(NAME, bytes(1001))
    assert store.usage().entries == 0


def test_what_a_killed_run_left_is_removed_after_a_while(store: Store) -> None:
    store.put(NAME, b"one")
    left, running = (store.folder / f".{word}.unfinished" for word in ("left", "running"))
    for path in (left, running):
        path.write_bytes(b"half")
    os.utime(left, (1000, 1000))
    store.put(NAME, b"two")
    assert (left.exists(), running.exists()) == (False, True)


@pytest.mark.parametrize(
    ("home", "cache_home", "folder"),
    [
        ("/her/home", "", "/her/home/.cache/kinetolint/traces"),
        ("/her/home", "/fast", "/fast/kinetolint/traces"),
        ("/her/home", "relative/is/ignored", "/her/home/.cache/kinetolint/traces"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_where_it_lies(
    home: str, cache_home: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    assert default_folder() == Path(folder)


def test_an_unknown_mode_in_the_environment_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANALYZE_CACHE", "no")
    with pytest.raises(AnalyzeError, match="ANALYZE_CACHE=no: must be one of auto, off, refresh"):
        reading.mode_of_environment()


@pytest.fixture(scope="module")
def large_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace just large enough to be cached."""
    path = write_trace(tmp_path_factory.mktemp("large") / "large.json", 50_000)
    assert 1 < path.stat().st_size / reading.MIN_TEXT_BYTES < 1.5
    return path


@pytest.mark.parametrize("command", ["check", "summary"])
def test_commands_print_the_same_with_and_without(
    command: str, large_trace: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    def run(mode: str) -> tuple[int, str, str]:
        done = run_analyze(command, large_trace, "--cache", mode, XDG_CACHE_HOME=str(tmp_path))
        return done.returncode, done.stdout, done.stderr

    plain = run("off")
    assert list(tmp_path.iterdir()) == []
    assert plain[1]
    assert [run(mode) for mode in ("auto", "auto", "refresh")] == [plain] * 3
    assert len(list(tmp_path.rglob("*.events"))) == 1


def test_the_environment_says_the_mode_too(
    large_trace: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    run_analyze("summary", large_trace, ANALYZE_CACHE="off", XDG_CACHE_HOME=str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    run_analyze("summary", large_trace, ANALYZE_CACHE="auto", XDG_CACHE_HOME=str(tmp_path))
    assert len(list(tmp_path.rglob("*.events"))) == 1


@pytest.mark.usefixtures("any_size")
def test_standard_input_is_not_cached(
    trace: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where a file has the name that stands for it."""
    monkeypatch.chdir(trace.parent)
    write_trace(Path("-"), 9)
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(trace.read_bytes())))
        assert read_events_cached("-", store=store).counts.events == 3
    assert not store.folder.exists()


def test_a_cache_that_cannot_be_written_is_no_problem(
    large_trace: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("summary", large_trace, "--cache", "auto", XDG_CACHE_HOME="/dev/null/none")
    assert (done.returncode, done.stderr) == (0, "")


def test_several_processes_at_once(large_trace: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "analyze"
    command: list[str | Path] = [program, "summary", large_trace, "--cache", "auto"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        for _ in range(4)
    ]
    outcomes = {(*process.communicate(timeout=300), process.returncode) for process in running}
    assert len(outcomes) == 1
    (outcome,) = outcomes
    assert outcome[1:] == (b"", 0)
    store = Store(tmp_path / "kinetolint" / "traces")
    assert store.get(entry_of(store).stem) is not None
    assert {path.name for path in store.folder.iterdir()} == {entry_of(store).name, "key"}


def test_info_and_clear(large_trace: Path, tmp_path: Path, run_analyze: RunAnalyze) -> None:
    def run(*arguments: str | Path) -> str:
        done = run_analyze(*arguments, XDG_CACHE_HOME=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert "0 traces, 0 B of at most 1 GiB" in run("cache", "info")
    run("summary", large_trace, "--cache", "auto")
    (entry,) = tmp_path.rglob("*.events")
    info = json.loads(run("cache", "info", "--format", "json"))
    assert info == {
        "schema_version": 1,
        "folder": str(entry.parent),
        "entries": 1,
        "size_bytes": entry.stat().st_size,
        "max_bytes": 1 << 30,
    }
    assert f"folder  {entry.parent}\nholds   1 trace, " in run("cache", "info")
    note = entry.with_name("note.txt")
    note.write_text("mine")
    assert run("cache", "clear").startswith("removed 1 trace, ")
    assert list(entry.parent.iterdir()) == [note]
