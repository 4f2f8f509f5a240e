"""Temporary files: gone after use, also where a signal ends the program at an awkward moment."""

import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from analyze.cache.store import Store
from analyze.temporary import temporary_file, temporary_folder

SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_a_file_is_made_leaves_none(
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hangups_are_heard: None,  # noqa: ARG001
) -> None:
    make = tempfile.NamedTemporaryFile

    def made_at_a_bad_moment(**where: Any) -> Any:
        file = make(**where)
        signal.raise_signal(number)
        return file

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", made_at_a_bad_moment)
    ends = KeyboardInterrupt if number is signal.SIGINT else SystemExit
    with pytest.raises(ends), temporary_file(tmp_path):
        pytest.fail("the block was entered")
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("number", SIGNALS[:2])
def test_a_signal_in_the_block_leaves_nothing(
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hangups_are_heard: None,  # noqa: ARG001
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[str] = []

    def end() -> None:
        seen.extend(left_in(tmp_path))
        signal.raise_signal(number)

    for held in (temporary_file(prefix="a-"), temporary_folder()):
        with pytest.raises(SystemExit) as ended, held:
            end()
        assert ended.value.code == 128 + number
        assert left_in(tmp_path) == []
    assert len(seen) == 2


def test_what_took_the_place_of_another_stays(tmp_path: Path) -> None:
    with temporary_file(tmp_path, prefix=".x.", suffix=".new") as file:
        name = Path(file.name).name
        assert name.startswith(".x.")
        assert name.endswith(".new")
        file.write(b"new")
        file.close()
        Path(file.name).replace(tmp_path / "x")
    assert left_in(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"new"


def test_a_cache_that_is_ended_while_it_writes_holds_nothing_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "cache")
    assert store.put("0" * 40, b"one")
    before = left_in(store.folder)
    monkeypatch.setattr(Path, "replace", lambda *_: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit):
        store.put("1" * 40, b"two")
    assert left_in(store.folder) == before
