"""Load one rule file alone."""

from pathlib import Path

from analyze.engine.loading import load_rules
from analyze.engine.rule import Rule


def load_rule(file: Path) -> Rule:
    (rule,) = load_rules([file], builtin=False)
    return rule
