"""What the commands about single rules share: all rules that a check would load."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from analyze.cli.rule_options import LoadedRules, RuleOptions

Command = TypeVar("Command", bound=Callable[..., Any])


def rules_option(command: Command) -> Command:
    """Add the option that names further rules."""
    return click.option(
        "--rules",
        "rule_paths",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A rule file or a folder of rules, beside the built-in ones. Repeatable.",
    )(command)


def load_all(
    paths: tuple[Path, ...], settings: tuple[str, ...] = (), *, tests: bool = False
) -> LoadedRules:
    """Load the rules that a check would load in this folder.

    Raises:
        AnalyzeError: the configuration or a setting is wrong.
        InvalidRulesError: a rule file is invalid.
    """
    return RuleOptions(paths, settings, (), (), (), None, isolated=False).load(tests=tests)
