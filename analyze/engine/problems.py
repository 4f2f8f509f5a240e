"""What is wrong with a rule file, and where: shown with the line, a caret and a suggestion."""

from collections.abc import Iterable
from typing import NamedTuple

from analyze.errors import RuleError
from analyze.words import aligned, closest, visible

_MAX_LINE = 200
"""Characters of a source line that are shown."""

_MAX_SHOWN = 50
"""Problems that are shown at once; a file with more is probably no rule at all."""


class Location(NamedTuple):
    """A stretch of one line of a file.

    Attributes:
        file: path as it is shown.
        line: 1-based; 0 when the problem is the file as a whole.
        column: 1-based.
        length: characters to underline.
        source: text of the line.
    """

    file: str
    line: int = 0
    column: int = 0
    length: int = 1
    source: str = ""


class Problem(NamedTuple):
    """One mistake in a rule file.

    Attributes:
        where: its position.
        message: one line.
        help: what to do about it, if known.
    """

    where: Location
    message: str
    help: str | None = None

    def render(self) -> str:
        """Return ``file:line:column: error: message``, the line with a caret, and the help."""
        where = self.where
        position = f":{where.line}:{where.column}" if where.line else ""
        lines = [f"{visible(where.file)}{position}: error: {visible(self.message)}"]
        if where.line and where.column <= len(where.source) + 1 <= _MAX_LINE:
            room = max(len(where.source) - where.column + 1, 1)
            caret = " " * (where.column - 1) + "^" * max(min(where.length, room), 1)
            lines += [f"{where.line:6} | {aligned(where.source)}", f"{'':6} | {caret}"]
        if self.help:
            lines.append(f"{'':6} = help: {visible(self.help)}")
        return "\n".join(lines)


class InvalidRulesError(RuleError):
    """Rule files are invalid.

    Attributes:
        problems: every problem found, in file order.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [problem.render() for problem in self.problems[:_MAX_SHOWN]]
        more = len(self.problems) - len(shown)
        super().__init__("\n".join(shown + ([f"... and {more} more problems"] if more else [])))


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort problems by file and position."""
    return sorted(problems, key=lambda item: (item.where.file, item.where.line, item.where.column))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return a help text that names the known word closest to a misspelt one."""
    candidates = list(known)
    close = closest(word, candidates)
    if close:
        return f"did you mean '{close}'?"
    shown = ", ".join(sorted(candidates)[:12])
    more = ", ..." if len(candidates) > 12 else ""
    return f"known: {shown}{more}" if candidates else None
