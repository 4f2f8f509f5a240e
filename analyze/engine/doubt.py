"""Whether a pass rests on what is not known.

Unknown never matches, but neither is it "no": where a condition of ``where`` could decide on few of
the rows it was for, that no row was found to match says little. Such a rule is *not applicable*,
unless its expectation holds even if all of these rows match.
"""

import polars as pl

from analyze.engine.data import Tables
from analyze.engine.evaluate import holding, holds_whatever_matches, rows_in_units
from analyze.engine.matchers import Matcher
from analyze.engine.places import ROW
from analyze.engine.program import Program
from analyze.engine.rule import Rule

_MOST = 0.5
"""Share of the rows that a condition is for. Where more are unknown, the rule has not looked at
most of what it is about; where fewer are, the pass stands, and undecided rows are told beside it.
"""


def why_in_doubt(rule: Rule, program: Program, tables: Tables) -> str | None:
    """Return why a rule that found nothing has not passed either; None where it has.

    Args:
        rule: the rule.
        program: the rule compiled for the trace.
        tables: of the trace.
    """
    reason = _mostly_unknown(rule, program, tables)
    if reason is None or holds_whatever_matches(program, tables, rule.model.quorum):
        return None
    return reason


def _mostly_unknown(rule: Rule, program: Program, tables: Tables) -> str | None:
    """Name a condition that is unknown for most of the rows that the other conditions leave."""
    matchers = [matcher for _, matcher in rule.conditions(program)]
    rows = rows_in_units(program, tables, tables.units(program.per))
    verdicts = [holding(matcher.expr, rows) for matcher in matchers]
    for index, (matcher, verdict) in enumerate(zip(matchers, verdicts, strict=True)):
        left = pl.Series([True]).new_from_index(0, rows.height)
        for other in [*verdicts[:index], *verdicts[index + 1 :]]:
            left &= other.fill_null(value=True)
        asked, unknown = rows.filter(left), rows.filter(left & verdict.is_null())
        if unknown.height > _MOST * asked.height:
            what = " or ".join(_unknown_names(matcher, unknown, program, tables))
            return f"{what} is not known for {_of(unknown.height, asked.height, program)}"
    return None


def _of(unknown: int, asked: int, program: Program) -> str:
    rows = f"{asked:,} row{'s' if asked > 1 else ''} of {program.table.name} it decides on"
    return f"{unknown:,} of the {rows}" if unknown < asked else f"any of the {rows}"


def _unknown_names(
    matcher: Matcher, rows: pl.DataFrame, program: Program, tables: Tables
) -> list[str]:
    """Return the columns that a condition rests on and that are unknown in some of the rows."""
    table = tables.table(program.table.name)[rows[ROW]]
    names = [name for name in sorted(matcher.uses.columns) if table[name].null_count()]
    return names or [f"{program.per.word}.{name}" for name in sorted(matcher.uses.unit)]
