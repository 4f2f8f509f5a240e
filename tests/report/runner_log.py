"""How a runner of GitHub Actions reads a log: an independent reader of workflow commands.

Written anew from what the runner does (``ActionCommand`` and ``ActionCommandManager`` in
``src/Runner.Common`` and ``src/Runner.Worker`` of ``actions/runner``); no package that could be
installed reads these lines, those that there are write them.
"""

import re
from collections.abc import Sequence

Command = tuple[str, dict[str, str], str]
"""Name, properties and message."""

REGISTERED = frozenset({
    "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group",
    "internal-set-repo-path", "notice", "remove-matcher", "save-state", "set-env", "set-output",
    "stop-commands", "warning",
})  # fmt: skip

_DATA = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_OLDER = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))

_NEW_FORM = re.compile(r"\s*::(?P<head>(?:(?!::).)*)::(?P<message>.*)")
_OLD_FORM = re.compile(r".*?##\[(?P<head>[^\]]*)\](?P<message>.*)")


def commands(log: str) -> list[Command]:
    """Return what the lines of a log tell the runner, in either form."""
    lines = re.split(r"\r\n|\r|\n", log)
    return [command for line in lines if (command := read_command(line)) is not None]


def read_command(line: str) -> Command | None:
    """Return the command of a line; None where it is a line like any other."""
    forms = ((_NEW_FORM, ",", _PROPERTY, _DATA), (_OLD_FORM, ";", _OLDER, _OLDER))
    for form, between, of_properties, of_message in forms:
        found = form.fullmatch(line)
        if found is None:
            continue
        name, _, written = found["head"].partition(" ")
        if name in REGISTERED:
            pairs = (pair.split("=", 1) for pair in written.strip().split(between) if "=" in pair)
            properties = {key: unescaped(value, of_properties) for key, value in pairs}
            return name, properties, unescaped(found["message"], of_message)
    return None


def unescaped(text: str, codes: Sequence[tuple[str, str]]) -> str:
    """Return text with each code replaced, one after the other as the runner does."""
    for code, char in codes:
        text = text.replace(code, char)
    return text
