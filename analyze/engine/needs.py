"""What a rule needs of a trace, decided from what the trace holds.

A table that could not be filled, or a column that is unknown in every row, stands in the way of a
rule whose ``where``, ``expect`` or ``severity`` rests on it: the rule is *not applicable*, which is
never a pass. A column that the rule asks about with ``exists``, ``is_null`` or ``coalesce`` does
not, nor does one that is only shown. What a column that is unknown in some rows means is decided
when the rule has found nothing; see :mod:`analyze.engine.doubt`.
"""

from collections.abc import Collection

import polars as pl

from analyze.engine.data import RECORDED_FLAGS, Tables
from analyze.engine.per import base_table
from analyze.engine.program import Program
from analyze.tables.catalogue import TRACE, Column, Need


def missing(program: Program, tables: Tables) -> str | None:
    """Return why a trace is not enough for a rule; None when it is."""
    table = program.table
    if table.needs is not None and not tables.was_recorded(table):
        return _in_words(table.needs, tables)
    return (
        _unmet(program, tables)
        or _missing_units(program, tables)
        or _missing_columns(program, tables)
        or _missing_facts(program, tables)
    )


def _unmet(program: Program, tables: Tables) -> str | None:
    for precondition in program.requires:
        holds = pl.select(precondition.expr).item()
        if holds is False:
            return precondition.otherwise
        if holds is None:
            unknown = _unknown_fact(precondition.facts, tables)
            return unknown or f"it is not known whether this holds: {precondition.otherwise}"
    return None


def _missing_units(program: Program, tables: Tables) -> str | None:
    table, per = program.table, program.per
    if per.word == "trace":
        return None
    units = tables.unit_table(per)
    if units.is_empty():
        need = per.unit_table.needs
        return need.value if need else f"the trace has no annotation named {per.region}"
    if not tables.any_in_units(table, per):
        return f"no row of {base_table(table).name} belongs to any {per.words}"
    columns = [column for column in per.unit_table.columns if column.name in program.judged_by.unit]
    return _first_unknown(columns, units, per.words, tables)


def _missing_columns(program: Program, tables: Tables) -> str | None:
    used = program.judged_by.columns - program.judged_by.handled
    columns = [column for column in program.table.columns if column.name in used]
    return _first_unknown(columns, tables.table(program.table.name), program.table.name, tables)


def _missing_facts(program: Program, tables: Tables) -> str | None:
    return _unknown_fact(program.judged_by.facts, tables)


def _unknown_fact(names: Collection[str], tables: Tables) -> str | None:
    for column in TRACE.columns:
        if column.name in names and tables.facts[column.name] is None:
            unknown = f"trace.{column.name} is not known"
            return _in_words(column.needs, tables) if column.needs else unknown
    return None


def _first_unknown(
    columns: list[Column], frame: pl.DataFrame, where: str, tables: Tables
) -> str | None:
    if frame.is_empty():
        return None
    for column in columns:
        if column.needs is not None and frame[column.name].null_count() == frame.height:
            return _reason(column, column.needs, where, tables)
    return None


def _reason(column: Column, need: Need, where: str, tables: Tables) -> str:
    flag = RECORDED_FLAGS.get(need)
    if flag is not None and tables.facts[flag]:
        return f"{column.name} is not known for any row of {where}"
    return _in_words(need, tables)


def _in_words(need: Need, tables: Tables) -> str:
    """Word a need; without any GPU work there is nothing to be missing beside it."""
    is_moot = need is Need.LAUNCHES and not tables.facts["has_gpu"]
    return (Need.GPU if is_moot else need).words(truncated=bool(tables.facts["truncated"]))
