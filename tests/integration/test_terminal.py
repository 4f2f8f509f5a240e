"""Reports as a terminal shows them: what is printed on a pseudo-terminal, drawn by pyte.

A terminal is told to print text, to begin a line and to change colours, and nothing else.
"""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pyte
import pytest
from pyte import modes

from analyze.report.formats import FORMATS, Rendering, render
from tests.conftest import copied_to_a_deep_folder
from tests.integration import test_formats_cli
from tests.integration.test_formats_cli import on_a_terminal, without_color
from tests.report.report_factory import HOSTILE, hostile_report

hostile = test_formats_cli.hostile

HARMLESS = {"draw", "linefeed", "carriage_return"}
COLOURS = {"select_graphic_rendition"}
MOST_ROWS = 2000


class Told:
    """Takes the place of a screen and notes what it is told to do."""

    def __init__(self) -> None:
        self.events: set[str] = set()

    def __getattr__(self, event: str) -> Callable[..., None]:
        return lambda *_arguments, **_options: self.events.add(event)


def told_by(printed: str) -> set[str]:
    """Return what a terminal is told to do by what was printed."""
    told = Told()
    pyte.Stream(cast("pyte.Screen", told), strict=False).feed(printed)
    return told.events


def rows_of(printed: str, columns: int) -> list[str]:
    """Return what stands on a terminal of that many columns, without trailing blanks."""
    screen = pyte.Screen(columns, MOST_ROWS)
    screen.set_mode(modes.LNM)
    pyte.Stream(screen).feed(printed)
    used = screen.cursor.y
    assert used < MOST_ROWS - 1
    return [row.rstrip() for row in screen.display[:used]]


def folded(line: str, columns: int) -> list[str]:
    """Return the rows that a terminal makes of a line that is too long for it."""
    rows = [line[start : start + columns].rstrip() for start in range(0, len(line), columns)]
    return rows or [""]


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("columns", [80, 200])
def test_a_report_folds_its_own_lines(
    columns: int, deep: bool, samples: Path, tmp_path: Path
) -> None:
    """Only what is to be copied in one piece, a path or a command, is left to the terminal."""
    path = samples / "synthetic-naive.json.gz"
    if deep:
        path = copied_to_a_deep_folder(path, tmp_path)
    for arguments in ((), ("--verbose",)):
        printed = on_a_terminal(columns, path, *arguments)
        assert told_by(printed) == HARMLESS - {"carriage_return"} | COLOURS
        lines = without_color(printed).splitlines()
        assert all(str(path) in line for line in lines if len(line) > columns)
        rows = [row for line in lines for row in folded(line, columns)]
        assert rows_of(printed, columns) == rows


def test_without_color_a_terminal_only_prints(samples: Path) -> None:
    path = samples / "synthetic-naive.json.gz"
    for arguments in ((), ("--format", "concise")):
        plain = on_a_terminal(80, path, *arguments, NO_COLOR="1")
        assert told_by(plain) == {"draw", "linefeed"}
        assert rows_of(plain, 80) == rows_of(on_a_terminal(80, path, *arguments), 80)


def test_a_concise_line_is_one_line_at_any_width(samples: Path) -> None:
    path = samples / "synthetic-sdpa-math.json.gz"
    wide = on_a_terminal(2000, path, "--format", "concise")
    assert rows_of(wide, 2000) == wide.splitlines()
    assert {row.split(": ")[0] for row in rows_of(wide, 2000)} == {str(path)}
    assert on_a_terminal(80, path, "--format", "concise") == wide


def test_names_of_a_trace_tell_a_terminal_nothing(hostile: Path) -> None:
    for arguments in (("--verbose",), ("--format", "concise")):
        assert told_by(on_a_terminal(80, hostile, *arguments)) <= HARMLESS | COLOURS


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_tells_a_terminal_anything(name: str) -> None:
    for text in HOSTILE:
        report = hostile_report(text)
        for color in (False, True):
            printed = render(name, [report, report], Rendering(verbose=color, color=color))
            assert told_by(printed) <= (HARMLESS | COLOURS if color else HARMLESS), text[:80]
