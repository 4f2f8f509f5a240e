"""What the commands about single rules share: all rules that a check would load."""

from pathlib import Path

from analyze.cli.rule_options import LoadedRules, RuleOptions


def load_all(
    paths: tuple[Path, ...], settings: tuple[str, ...] = (), *, tests: bool = False
) -> LoadedRules:
    """Load the rules that a check would load in this folder.

    Raises:
        AnalyzeError: the configuration or a setting is wrong.
        InvalidRulesError: a rule file is invalid.
    """
    return RuleOptions(paths, settings, (), (), (), None, isolated=False).load(tests=tests)
