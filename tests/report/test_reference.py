"""The reference page is complete, correct and up to date."""

import re
from pathlib import Path
from typing import get_args

import pytest

from analyze.engine import meanings
from analyze.engine.expressions import Place, compile_expression
from analyze.engine.functions import AGGREGATES, SCALARS, Function
from analyze.engine.model import State
from analyze.engine.per import UnitWord
from analyze.engine.scope import Scope
from analyze.engine.templates import FORMATS
from analyze.engine.values import Kind, kind_of_dtype
from analyze.report.reference import reference_page
from analyze.tables.catalogue import GPU_OPS, TABLES
from tests.conftest import RunAnalyze

ROOT = Path(__file__).parents[2]
PAGE = reference_page()
EXAMPLES = [function.example for function in [*AGGREGATES.values(), *SCALARS.values()]]
SYNTAX = [part for example in meanings.SYNTAX for part in re.split(r", (?![^\[]*\])", example)]


def scope() -> Scope:
    """What examples may name: columns of ``kernels``, two numbers, a text."""
    columns = {column.name: kind_of_dtype(column.dtype) for column in GPU_OPS.columns}
    measures = {"a": Kind.NUMBER, "b": Kind.NUMBER, "word": Kind.TEXT}
    return Scope("kernels", columns, None, {}, {}, {}, measures=measures)


def test_the_committed_page_is_up_to_date() -> None:
    committed = (ROOT / "rules/REFERENCE.md").read_text(encoding="utf-8")
    how = "rules/REFERENCE.md is out of date: run `analyze rules docs -o rules/REFERENCE.md`"
    assert committed == PAGE, how


def test_the_command_prints_the_page(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    assert run_analyze("rules", "docs").stdout == PAGE
    assert run_analyze("rules", "docs", "-o", tmp_path / "page.md").stdout == ""
    assert (tmp_path / "page.md").read_text() == PAGE


@pytest.mark.parametrize("example", [*EXAMPLES, *SYNTAX])
def test_examples_are_expressions(example: str) -> None:
    compile_expression(example, scope(), Place.MEASURE)


@pytest.mark.parametrize(("name", "function"), [*AGGREGATES.items(), *SCALARS.items()])
def test_examples_call_their_function(name: str, function: Function) -> None:
    assert function.example.startswith(f"{name}(")


def test_every_word_has_a_meaning() -> None:
    assert tuple(meanings.FORMATS) == tuple(FORMATS)
    assert tuple(meanings.STATES) == get_args(State)
    assert tuple(meanings.UNITS_OF_REPETITION) == get_args(UnitWord)


@pytest.mark.parametrize("table", TABLES)
def test_every_table_and_column_is_there(table: str) -> None:
    assert f"`{table}`" in PAGE
    for column in TABLES[table].columns:
        assert f"\n| `{column.name}` |" in PAGE


def test_rows_have_as_many_cells_as_their_heading() -> None:
    cells = 0
    for line in PAGE.splitlines():
        count = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert count in (cells, 0) or cells == 0, line
        cells = count


def test_names_are_not_taken_for_markup() -> None:
    prose = re.sub(r"`[^`]*`|<!--.*?-->", "", PAGE)
    assert "<" not in prose
    assert "ties joined by \\|" in PAGE


def test_links_lead_to_headings() -> None:
    headings = {
        heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", PAGE, re.M)
    }
    targets = re.findall(r"\]\(#([^)]*)\)", PAGE)
    assert targets
    assert set(targets) <= headings
