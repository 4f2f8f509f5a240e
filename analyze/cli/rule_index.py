"""The rules there are, by a glance at their files: code, name, title and parameters.

Loading rules takes a tenth of a second and more; a shell that completes a word should not wait for
it. A file that is not written as rules usually are is simply not offered.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analyze.engine.installed import builtin_rules, installed_packs
from analyze.engine.rule_folders import yaml_files
from analyze.errors import AnalyzeError

_CODE = re.compile(r"""^code:\s*["']?([A-Z]{2,6}[0-9]{3})\b""", re.MULTILINE)
_NAME = re.compile(r"""^name:\s*["']?([a-z0-9]+(?:-[a-z0-9]+)*)\b""", re.MULTILINE)
_TITLE = re.compile(r"^title:[ \t]*(\S[^\n]*)", re.MULTILINE)
_PARAMS = re.compile(
    r"^params:[ \t]*(?:#[^\n]*)?\n((?:[ \t]+[^\n]*\n|[ \t]*#[^\n]*\n|[ \t]*\n)*)", re.MULTILINE
)
_PARAM = re.compile(r"^[ \t]+([A-Za-z_]\w*):[ \t]*([^#\n]*)", re.MULTILINE)

_MAX_FILES = 2000
_MAX_CHARACTERS = 64 << 10


@dataclass(frozen=True)
class IndexedRule:
    """What a file says of itself.

    Attributes:
        code, name, title: of the rule.
        category: the folder it lies in.
        params: parameters with their values as written.
    """

    code: str
    name: str
    title: str
    category: str
    params: tuple[tuple[str, str], ...]


def index_rules(paths: Sequence[Path], *, isolated: bool) -> list[IndexedRule]:
    """Return the rules that a check in this folder would load, sorted by code.

    Args:
        paths: of ``--rules``.
        isolated: without those of the configuration and of installed packages.
    """
    folders = [builtin_rules(), *paths]
    if not isolated:
        folders += [*_installed(), *_configured(Path.cwd())]
    found = (rule for file in _files(folders) if (rule := _glance(file)) is not None)
    return sorted({rule.code: rule for rule in found}.values(), key=lambda rule: rule.code)


def _installed() -> Iterable[Path]:
    try:
        return installed_packs().values()
    except AnalyzeError:
        return ()


def _configured(start: Path) -> list[Path]:
    """Return the rule paths of the nearest pyproject.toml that has any."""
    for folder in (start, *start.parents):
        try:
            table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
            return [folder / path for path in table["tool"]["kinetolint"]["rules"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return []


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            files = (file for file in yaml_files(path) if file.is_file())
            yield from (file for _, file in zip(range(_MAX_FILES), files, strict=False))
        elif path.is_file():
            yield path


def _glance(file: Path) -> IndexedRule | None:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MAX_CHARACTERS)
    except OSError:
        return None
    code, name, title = (pattern.search(text) for pattern in (_CODE, _NAME, _TITLE))
    if code is None or name is None:
        return None
    params = _PARAMS.search(text)
    return IndexedRule(
        code=code[1],
        name=name[1],
        title=title[1].strip("\"' ") if title else "",
        category=file.parent.name,
        params=tuple((p[1], p[2].strip()) for p in _PARAM.finditer(params[1])) if params else (),
    )
