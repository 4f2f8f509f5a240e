"""Build a rule from text and run it on rows."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from analyze.engine.model import Expected, RuleTest
from analyze.engine.rule import Rule
from analyze.engine.run import RuleResult, run_rule
from analyze.engine.written_tables import write_tables
from tests.engine.loaded import load_rule

HEAD = """\
version: 1
code: TEST101
name: test-rule
title: A test
guess: it holds
"""

Row = dict[str, Any]
LoadText = Callable[[str], Rule]
CheckRows = Callable[..., RuleResult]


@pytest.fixture
def load_text(tmp_path: Path) -> LoadText:
    """Load a rule from the keys that matter; the others are filled in."""

    def load(text: str) -> Rule:
        tail = "" if "\nmessage:" in f"\n{text}" else "message: seen\n"
        file = tmp_path / "rule.yaml"
        file.write_text(f"{HEAD}{text}\n{tail}")
        return load_rule(file)

    return load


@pytest.fixture
def check(load_text: LoadText) -> CheckRows:
    """Run a rule, given as text, on rows of its table."""

    def run(
        text: str,
        rows: Sequence[Row],
        forwards: Sequence[Row] | None = None,
        **more: Any,
    ) -> RuleResult:
        rule = load_text(text)
        units = None if forwards is None else list(forwards)
        test = RuleTest(name="x", rows=list(rows), forwards=units, expect=Expected(), **more)
        return run_rule(rule, write_tables(rule.compile(), test))

    return run
