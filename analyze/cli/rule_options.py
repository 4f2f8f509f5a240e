"""The options that say which rules are loaded and run, for every command that takes rules."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyze.cli.completing import complete_rules, complete_setting
from analyze.cli.help_page import RULES, Option
from analyze.cli.traces import INPUTS, refuse_overwriting
from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.config import ConfigFile
    from analyze.engine.problems import InvalidRulesError
    from analyze.engine.rule import Rule
    from analyze.engine.selection import Selection

FINDING_WORDS = "its code, the rule's name, its fingerprint's first digits, its number in the JSON"
"""How a command is told a finding; see :func:`analyze.engine.chosen_finding.chosen_number`."""


@dataclass(frozen=True)
class RuleOptions:
    """The options as given.

    Attributes:
        paths: of ``--rules``.
        settings: of ``--set``.
        select, extend_select, ignore: selectors.
        config: of ``--config``.
        isolated: neither configuration nor installed packs.
    """

    paths: tuple[Path, ...]
    settings: tuple[str, ...]
    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    ignore: tuple[str, ...]
    config: Path | None
    isolated: bool

    def load(self, *outputs: Path | None, tests: bool = False) -> "LoadedRules":
        """Load all rules there are, with the parameters of the configuration and of ``--set``.

        Args:
            outputs: the files that will be written.
            tests: read the rules' own tests, too.

        Raises:
            AnalyzeError: an option or the configuration is wrong, or an output is a file of rules
                or the configuration.
            InvalidRulesError: a rule file is invalid.
        """
        loaded = self.load_sound(*outputs, tests=tests)
        if loaded.invalid is not None:
            raise loaded.invalid
        return loaded

    def load_sound(self, *outputs: Path | None, tests: bool = False) -> "LoadedRules":
        """Load the rules that are valid, and the problems of the others; see :meth:`load`.

        Raises:
            AnalyzeError: an option or the configuration is wrong, or an output is a file of rules
                or the configuration.
            InvalidRulesError: a rule file is invalid, and a parameter of it is set.
        """
        from analyze.engine.loading import (  # noqa: PLC0415
            apply_settings,
            configured,
            load_sound_rules,
            rule_files,
        )

        found = self.configuration(*outputs)
        paths = [*found.rule_paths, *self.paths]
        refuse_overwriting(rule_files(paths), *outputs, what=INPUTS)
        rules, invalid = load_sound_rules(paths, installed=not self.isolated, tests=tests)
        try:
            rules = configured(rules, found.config.params, str(found.file))
            rules = apply_settings(rules, self.settings)
        except AnalyzeError as error:
            raise invalid or error from None
        return LoadedRules(rules, self._selection(found), found, invalid)

    def configuration(self, *outputs: Path | None) -> "ConfigFile":
        """Return the configuration: of ``--config``, else the nearest one; none if isolated.

        Args:
            outputs: the files that will be written.

        Raises:
            AnalyzeError: it cannot be read, is wrong, or is one of the outputs.
        """
        from analyze.config import ConfigFile, find_config, read_config  # noqa: PLC0415

        if self.isolated:
            return ConfigFile()
        found = read_config(self.config) if self.config else find_config(Path.cwd())
        refuse_overwriting([found.file] if found.file else [], *outputs, what=INPUTS)
        return found

    def _selection(self, found: "ConfigFile") -> "Selection":
        """Return what the command line selects; ``--select`` starts afresh."""
        from analyze.engine.selection import Selection  # noqa: PLC0415

        of_project = found.config.selection
        if self.select:
            return Selection(self.select, self.extend_select, self.ignore)
        extend = (*of_project.extend, *self.extend_select)
        return Selection(of_project.select, extend, self.ignore, of_project.ignores)


@dataclass(frozen=True)
class LoadedRules:
    """All rules, and which of them are run.

    Attributes:
        rules: every rule that was loaded.
        selection: which of them are run.
        found: the configuration.
        invalid: what is wrong with the rules that could not be loaded.
    """

    rules: "list[Rule]"
    selection: "Selection"
    found: "ConfigFile"
    invalid: "InvalidRulesError | None" = None


def rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as one :class:`RuleOptions` named ``options``."""

    @functools.wraps(command)
    def bundled(
        *args: Any,
        rule_paths: tuple[Path, ...],
        settings: tuple[str, ...],
        select: tuple[str, ...],
        extend_select: tuple[str, ...],
        ignore: tuple[str, ...],
        config: Path | None,
        isolated: bool,
        **rest: Any,
    ) -> Any:
        given = RuleOptions(
            rule_paths,
            settings,
            _split(select),
            _split(extend_select),
            _split(ignore),
            config,
            isolated,
        )
        return command(*args, options=given, **rest)

    for option in reversed(_OPTIONS):
        option(bundled)
    return bundled


def _split(selectors: tuple[str, ...]) -> tuple[str, ...]:
    """Split selectors given with commas.

    Raises:
        UsageError: one of them is empty, as an unset variable makes it.
    """
    parts = tuple(part.strip() for given in selectors for part in given.split(","))
    if not all(parts):
        raise click.UsageError("an empty code in --select, --extend-select or --ignore")
    return parts


rules_option = click.option(
    "--rules",
    "rule_paths",
    cls=Option,
    panel=RULES,
    multiple=True,
    type=click.Path(path_type=Path),
    help="A rule file or a folder of rules, beside the built-in ones. Repeatable.",
)
set_option = click.option(
    "--set",
    "settings",
    cls=Option,
    panel=RULES,
    multiple=True,
    metavar="CODE.PARAM=VALUE",
    shell_complete=complete_setting,
    help="Change a rule's threshold for this run, e.g. COPY101.min_bytes=MiB(8). Repeatable.",
)
_OPTIONS = (
    rules_option,
    set_option,
    click.option(
        "--select",
        cls=Option,
        panel=RULES,
        multiple=True,
        metavar="RULES",
        shell_complete=complete_rules,
        help="Run only these: codes, code prefixes (COPY, OCC1), names or categories, with commas."
        " Starts afresh from what the configuration selects and ignores.",
    ),
    click.option(
        "--extend-select",
        cls=Option,
        panel=RULES,
        multiple=True,
        metavar="RULES",
        shell_complete=complete_rules,
        help="Run these as well. Repeatable.",
    ),
    click.option(
        "--ignore",
        cls=Option,
        panel=RULES,
        multiple=True,
        metavar="RULES",
        shell_complete=complete_rules,
        help="Do not run these; a more exact --select wins. Repeatable.",
    ),
    click.option(
        "--config",
        cls=Option,
        panel=RULES,
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read [tool.kinetolint] from this file instead of the nearest pyproject.toml.",
    ),
    click.option(
        "--isolated",
        cls=Option,
        panel=RULES,
        is_flag=True,
        help="Neither pyproject.toml nor rules of installed packages.",
    ),
)
