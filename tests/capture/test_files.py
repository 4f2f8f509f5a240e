"""Files are replaced as a whole or not at all."""

import gzip
import os
from pathlib import Path

import pytest

from capture.errors import CaptureError
from capture.files import make_folder, replacing, write_compressed, write_text
from tests.capture.problems import file_names


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    write_text(path, "new é")
    assert path.read_text("utf-8") == "new é"
    assert file_names(tmp_path) == {"file.txt"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_exception_keeps_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half of the n")
            raise error("full")

    with pytest.raises(CaptureError if error is OSError else error):
        write_half()
    assert path.read_text() == "old"
    assert file_names(tmp_path) == {"file.txt"}


def test_the_old_file_stands_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o640


def test_a_compressed_file_depends_on_its_content_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"content" * 1000)
        write_compressed(tmp_path / name, tmp_path / f"{name}.gz")
    packed = (tmp_path / "a.gz").read_bytes()
    assert packed == (tmp_path / "b.gz").read_bytes()
    assert packed[3:8] == bytes(5)  # neither a name nor a time
    assert gzip.decompress(packed) == b"content" * 1000


@pytest.mark.parametrize("name", ["missing/file.txt", "file/below"])
def test_where_nothing_can_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(CaptureError, match=f"{name}: cannot be written: N"):
        write_text(tmp_path / name, "new")


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(CaptureError, match="file/below: cannot be written: Not a directory"):
        make_folder(tmp_path / "file" / "below")


def test_a_folder_is_made_with_its_parents_and_left_empty(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    assert file_names(tmp_path / "a" / "b") == set()
