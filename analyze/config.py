"""The configuration of a project: ``[tool.kinetolint]`` in its ``pyproject.toml``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from analyze.engine.keys import Keys, Limits
from analyze.engine.model import Code, Identifier, Text
from analyze.engine.selection import Ignore, Selection
from analyze.engine.validation import Sound, checked
from analyze.engine.values import Scalar
from analyze.errors import AnalyzeError

FILE = "pyproject.toml"
TABLE = "tool.kinetolint"


@dataclass(frozen=True, kw_only=True)
class IgnoreEntry(Keys):
    """Findings that are known and not wanted: of which rules, and why."""

    code: Text
    reason: Text


@dataclass(frozen=True, kw_only=True)
class Config(Keys):
    """The keys of ``[tool.kinetolint]``.

    Attributes:
        rules: rule files and folders, relative to the file.
        select, extend_select: codes, code prefixes, names or categories of the rules to run.
        ignore: rules whose findings are only counted, each with the reason.
        params: per code, values of its parameters.
        fail_on: as ``--fail-on``.
        forward: as ``--forward``.
        baseline: as ``--baseline``, relative to the file.
        baseline_tolerance: as ``--baseline-tolerance``, in percent.
    """

    SPELT: ClassVar = {
        "extend_select": "extend-select",
        "fail_on": "fail-on",
        "baseline_tolerance": "baseline-tolerance",
    }

    rules: list[Text] = field(default_factory=list)
    select: list[Text] | None = None
    extend_select: list[Text] = field(default_factory=list)
    ignore: list[IgnoreEntry] = field(default_factory=list)
    params: dict[Code, dict[Identifier, Scalar | list[Scalar]]] = field(default_factory=dict)
    fail_on: Literal["info", "warning", "error", "never"] | None = None
    forward: Text | None = None
    baseline: Text | None = None
    baseline_tolerance: Annotated[float, Limits(ge=0, le=1e6)] | None = None

    @property
    def selection(self) -> Selection:
        """Which rules the project runs."""
        ignores = [Ignore(entry.code, entry.reason) for entry in self.ignore]
        return Selection(self.select, self.extend_select, ignores=ignores)


@dataclass(frozen=True)
class ConfigFile:
    """A configuration and the file it stands in; without a file it is empty."""

    config: Config = field(default_factory=Config)
    file: Path | None = None

    @property
    def rule_paths(self) -> list[Path]:
        """The project's rule files and folders."""
        folder = self.file.parent if self.file else Path()
        return [folder / path for path in self.config.rules]

    @property
    def baseline(self) -> Path | None:
        """The project's baseline file, relative to the current folder where it lies below it."""
        if self.file is None or self.config.baseline is None:
            return None
        path = self.file.parent / self.config.baseline
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def find_config(start: Path) -> ConfigFile:
    """Return the configuration that holds in a folder: the nearest one, going up.

    Raises:
        AnalyzeError: the file cannot be read, or a key or value is wrong.
    """
    for folder in [start, *start.parents]:
        file = folder / FILE
        if file.is_file():
            table = _table(file)
            if table is not None:
                return ConfigFile(config=_validated(table, file), file=file)
    return ConfigFile()


def read_config(file: Path) -> ConfigFile:
    """Return the configuration in a file.

    Raises:
        AnalyzeError: the file cannot be read, has no such table, or a key or value is wrong.
    """
    table = _table(file)
    if table is None:
        raise AnalyzeError(f"{file}: has no table [{TABLE}]")
    return ConfigFile(config=_validated(table, file), file=file)


def _table(file: Path) -> Any | None:
    import tomllib  # noqa: PLC0415 - where there is no such file

    try:
        data: Any = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise AnalyzeError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise AnalyzeError(f"{file}: not TOML: {error}") from None
    for key in TABLE.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _validated(table: Any, file: Path) -> Config:
    found = checked(Config, table)
    if isinstance(found, Sound):
        return found.model
    problems = "; ".join(problem.in_one_line() for problem in found)
    raise AnalyzeError(f"{file}: [{TABLE}] {problems}")
