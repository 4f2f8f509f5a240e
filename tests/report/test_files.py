"""Outputs are written whole or not at all, whatever interrupts the writing."""

import gzip
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from analyze.errors import AnalyzeError
from analyze.report.files import add_whole, write_whole, writing_whole
from analyze.report.trace_file import write_trace
from analyze.temporary import termination_raises

HALF_WRITTEN = """
import sys, time
from pathlib import Path
from analyze.report.trace_file import write_trace
with write_trace(Path(sys.argv[1]), b'{"traceEvents": [') as document:
    for _ in range(10_000):
        document.write(b'{"ph": "X", "name": "' + b'n' * 100 + b'"}')
    print("half", flush=True)
    time.sleep(60)
"""


def write_events(path: Path, count: int) -> None:
    with write_trace(path, b"[") as document:
        for number in range(count):
            document.write(f'{{"ts": {number * 7919 % 1_000_003}}}'.encode())


def test_the_old_content_stays_when_the_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")

    def write_half() -> None:
        with writing_whole(path) as file:
            file.write(b"half")
            file.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_trace_is_packed_as_well_as_torch_packs_it(samples: Path, tmp_path: Path) -> None:
    text = gzip.decompress((samples / "synthetic-sdpa-math.json.gz").read_bytes())
    with write_trace(tmp_path / "t.json.gz", b"[") as document:
        document.write(text)
    assert (tmp_path / "t.json.gz").stat().st_size < 1.02 * len(gzip.compress(text, 6))


def test_links_that_lead_to_each_other_are_an_error_and_stay(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(AnalyzeError, match=f"{one}: cannot be written: Too many levels of symbol"):
        write_whole(one, "text")
    assert one.is_symlink()
    assert other.is_symlink()


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGINT, -signal.SIGINT),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_the_old_content_stays_when_the_program_is_ended(
    sent: signal.Signals, code: int, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_text("old")
    command = [sys.executable, "-c", HALF_WRITTEN, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"half\n"
        assert len(list(tmp_path.iterdir())) == 2
        program.send_signal(sent)
        assert program.wait(timeout=60) == code
    assert path.read_text() == "old"
    if sent != signal.SIGKILL:  # which nothing can clean up after
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.json.zst"])
def test_a_full_disk_is_one_line_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
    try:
        with pytest.raises(AnalyzeError, match=f"{name}: cannot be written: File too large"):
            write_events(tmp_path / name, 60_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_device_without_space_is_said_to_be_so() -> None:
    with pytest.raises(AnalyzeError, match="/dev/full: cannot be written: No space left"):
        write_whole(Path("/dev/full"), "text")
    with pytest.raises(AnalyzeError, match="No space left on device"):
        write_events(Path("/dev/full"), 1)


def test_a_link_keeps_pointing_where_it_does(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o600)
    write_whole(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "n" * 243])
def test_the_longest_names_are_written(name: str, tmp_path: Path) -> None:
    write_whole(tmp_path / name, "text")
    assert (tmp_path / name).read_text() == "text"


def test_an_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with termination_raises():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_adding_to_an_open_file_writes_once(tmp_path: Path) -> None:
    with (tmp_path / "summary.md").open("w") as file:
        file.write("first\n")
        file.flush()
        add_whole(Path(f"/dev/fd/{file.fileno()}"), "second\n")
    assert (tmp_path / "summary.md").read_text() == "first\nsecond\n"


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(AnalyzeError, match=r"no/t\.txt: cannot be written: No such file"):
        write_whole(tmp_path / "no" / "t.txt", "text")
