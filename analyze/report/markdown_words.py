"""Texts of a trace or a rule in GitHub Markdown: shown as they are, and without effect.

Beside markup, GitHub gives effect to ``@name``, ``#12``, ``:emoji:`` and addresses wherever they
stand in the rendered text, escaped or not; only a code span, or a character without width in
between, keeps them from that.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape

from analyze.words import printable, visible

_PIPE = "&#124;"
_NO_WIDTH = "&#8203;"
"""Zero width space, which shows nothing and ends a name, a number and an address."""

_IN_CI_COMMAND = re.compile(r"(?<=#)(?=#\[)")
_BACKTICKS = re.compile("`+")
_MARKUP = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_[]~#$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_OPENS_BLOCK = re.compile(r"^(\s*)([-+=:]|\d+(?=[.)]))")
"""What makes a list, a heading or a table's rule of the line that begins with it."""
_HAS_EFFECT = re.compile(
    r"@|#(?=\d)"  # somebody, an issue
    r"|:(?=[\w+-]+:)|:(?=//)"  # an emoji, an address
    r"|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)",  # an address without its scheme, an issue's other form
    re.IGNORECASE,
)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already. An empty one has its heading only."""
    lines = (columns, ["---"] * len(columns), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(text: str) -> str:
    """Return a code span that shows a name as :func:`analyze.words.printable` words it.

    It is as good in the cell of a table as elsewhere: a pipe, which would end a cell even in a code
    span, stands between two spans. So do the parts of what a CI runner takes for a command, should
    the Markdown be in its log. An empty text gives an empty text.
    """
    parts = printable(text).split("|")
    return _PIPE.join(_NO_WIDTH.join(map(_span, _IN_CI_COMMAND.split(part))) for part in parts)


def plain(text: str) -> str:
    """Return text in one line that Markdown shows as it is, in a cell of a table as elsewhere.

    It is made visible by :func:`analyze.words.visible`, and whole: what can be long is cut before.
    """
    shown = _HAS_EFFECT.sub(lambda found: found.group() + "\u200b", visible(text))
    escaped = shown.translate(_MARKUP).replace("|", _PIPE).replace("\u200b", _NO_WIDTH)
    return _OPENS_BLOCK.sub(_escaped_opening, escaped)


def in_html(text: str) -> str:
    """Return a name as :func:`analyze.words.printable` words it, for inside an HTML element."""
    return escape(printable(text)).replace("##[", "#&#35;[")


def _span(text: str) -> str:
    """Fence a text by more backticks than it has in a row; blanks keep its own from the fence."""
    if not text:
        return ""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    is_stripped = text.startswith(" ") and text.endswith(" ") and not text.isspace()
    blank = " " if is_stripped or text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def _escaped_opening(found: re.Match[str]) -> str:
    blank, opening = found.groups()
    return f"{blank}{opening}\\" if opening.isdigit() else f"{blank}\\{opening}"
