"""Evaluate one compiled rule on the tables of one trace.

Groups and units are never multiplied out: rows are aggregated where they exist, and what an empty
unit amounts to is computed once per unit. It is combined with a group only when the group is
reported, and the expectation fails for empty units or the rule expects nothing.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from analyze.engine.data import UNIT, Tables
from analyze.engine.judge import CHAIN, Judge, Judged, Suspect
from analyze.engine.needs import missing
from analyze.engine.places import ROW
from analyze.engine.program import Program

_HOLDS = "#holds"
_PRESENT = "#present"

OK = "#ok"
"""Column that says whether the expectation holds."""


class MeasuredGroup(NamedTuple):
    """One group of a rule with its measures.

    Attributes:
        group: key columns with their values; empty for a rule without groups.
        units: one row per unit, with measures and unit columns; without the units in which the
            group is absent and an expectation holds all the same.
        holds, fails, unknown: numbers of all units by what the expectation comes to; all 0 for a
            rule that expects nothing.
    """

    group: dict[str, Any]
    units: pl.DataFrame
    holds: int
    fails: int
    unknown: int


MAX_GROUPS = 500
"""Groups that one rule may report in one trace."""


class TooManyGroupsError(Exception):
    """A rule groups by something that is different in almost every row."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count:,} groups to report, and {MAX_GROUPS} are allowed: group by fewer columns"
        )


@dataclass
class Outcome:
    """What a rule says about one trace.

    Attributes:
        judged: one entry per group that is reported.
        not_applicable: why the trace is not enough.
        unknown: units, or groups, whose expectation could not be evaluated although the trace is
            enough; in words.
        undecided_rows: rows of which ``where`` could not tell whether they match, or of those that
            do, a ``count`` could not tell whether to count them.
    """

    judged: list[Judged] = field(default_factory=list)
    not_applicable: str | None = None
    unknown: str | None = None
    undecided_rows: int = 0


def evaluate(program: Program, tables: Tables, quorum: float) -> Outcome:
    """Evaluate a rule.

    Args:
        program: the compiled rule.
        tables: what to evaluate it on.
        quorum: share of the units that must mismatch; fewer is intermittent.
    """
    reason = missing(program, tables)
    if reason is not None:
        return Outcome(not_applicable=reason)
    return evaluate_rows(program, tables, quorum)


def holds_whatever_matches(program: Program, tables: Tables, quorum: float) -> bool:
    """Whether there is nothing to report even if every undecided row matches as well."""
    try:
        outcome = Evaluation(program, tables, quorum, undecided_match=True).run()
    except TooManyGroupsError:
        return False
    return not (outcome.judged or outcome.unknown)


def evaluate_rows(program: Program, tables: Tables, quorum: float) -> Outcome:
    """Evaluate a rule without asking whether the trace is enough for it."""
    return Evaluation(program, tables, quorum).run()


def evaluate_all(program: Program, tables: Tables, quorum: float) -> None:
    """Evaluate everything a rule may ask for, also what needs no look where no row matches."""
    evaluation = Evaluation(program, tables, quorum)
    for _ in evaluation.measured_groups():
        pass
    evaluation.run()


def rows_in_units(program: Program, tables: Tables, units: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that belong to a unit, with the columns that the rule's conditions rest on.

    Args:
        program: the compiled rule.
        tables: where the rows are.
        units: the units, as :meth:`Tables.units` has them.
    """
    table = program.table
    rows = tables.table(table.name)
    needed = _needed_columns(program)
    extra = [
        tables.unit_index(table, program.per).alias(UNIT),
        pl.int_range(rows.height, dtype=pl.UInt32, eager=True).alias(ROW),
    ]
    extra += [
        tables.distinct_test(table, column, test).alias(name)
        for name, (column, test) in program.scope.text_tests.items()
    ]
    rows = rows.select_seq(*(column for column in rows.columns if column in needed), *extra)
    if program.scope.row_unit_columns:
        used = [f"{program.per.word}.{name}" for name in program.scope.row_unit_columns]
        rows = rows.join(units.select_seq(UNIT, *used), on=UNIT, how="left", maintain_order="left")
    in_units = rows[UNIT].is_in(units[UNIT].implode())
    return rows if in_units.all(ignore_nulls=False) else rows.filter(in_units)


def holding(condition: pl.Expr, rows: pl.DataFrame) -> pl.Series:
    """Return whether a condition holds for each row; null where it cannot be told."""
    return rows.with_columns_seq(condition.alias(_HOLDS))[_HOLDS]


def _needed_columns(program: Program) -> set[str]:
    needed = {*program.group_by, *program.evidence, *program.distinct, CHAIN}
    needed |= {program.sort[0]} if program.sort else set()
    for expr in program.row_expressions():
        needed |= set(expr.meta.root_names())
    return needed


def _finite(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Take for unknown what is no finite number; most often a sum tells that all are."""
    odd = [name for name in names if _may_be_infinite(frame[name])]
    values = pl.col(odd)
    return frame.with_columns(pl.when(values.is_finite()).then(values)) if odd else frame


def _may_be_infinite(values: pl.Series) -> bool:
    return values.dtype.is_float() and not math.isfinite(values.sum())


class Evaluation:
    """One rule on one trace.

    Attributes:
        units: the units, as :meth:`Tables.units` has them.
        rows: the rows that match ``where`` and belong to a unit.
    """

    def __init__(
        self, program: Program, tables: Tables, quorum: float, *, undecided_match: bool = False
    ) -> None:
        """Find the rows that match.

        Args:
            program: the compiled rule.
            tables: what to evaluate it on.
            quorum: share of the units that must mismatch; fewer is intermittent.
            undecided_match: take rows that ``where`` cannot decide on for rows that match.
        """
        self._program = program
        self._quorum = quorum
        self._tables = tables
        self._keys = [f"#key{index}" for index in range(len(program.group_by))]
        self.units = tables.units(program.per)
        rows = rows_in_units(program, tables, self.units)
        matches = holding(program.where, rows)
        undecided = matches.null_count()
        if undecided and undecided_match:
            matches = matches.fill_null(value=True)
        self.rows = rows.filter(matches) if matches.any() else rows.clear()
        self._undecided = undecided + self._uncounted()

    def run(self) -> Outcome:
        """Judge every group."""
        outcome = self._outcome()
        outcome.undecided_rows = self._undecided
        return outcome

    def _outcome(self) -> Outcome:
        informs = self._program.expect is None
        if self.rows.is_empty() and (self._keys or informs):
            return Outcome()
        return self._inform(self._measured) if informs else self._judge(self._measured)

    def _uncounted(self) -> int:
        """Return how many of the rows that match a ``count`` could not decide on."""
        conditions = self._program.judged_by.counted.values()
        if not conditions or self.rows.is_empty():
            return 0
        unknown = pl.any_horizontal(condition.is_null() for condition in conditions)
        return self.rows.filter(unknown).height

    def measured_groups(self) -> Iterator[MeasuredGroup]:
        """Yield every group with its measures, whether or not it is reported."""
        judged = self._program.expect is not None
        empty = self._counting_empty_units()
        for group, frame in self._groups(self._measured):
            units = self._zero_filled(frame, empty)
            verdicts = units[OK].to_list() if judged else []
            fails, unknown = verdicts.count(False), verdicts.count(None)
            holds = self.units.height - fails - unknown if judged else 0
            yield MeasuredGroup(group, units, holds, fails, unknown)

    @cached_property
    def _measured(self) -> pl.DataFrame:
        """One row per unit, or per group and unit, with the measures."""
        if self.rows.is_empty() and not self._keys:
            return self._empty_units()
        keys = [
            pl.col(column).alias(key)
            for column, key in zip(self._program.group_by, self._keys, strict=True)
        ]
        aggregates = [expr.alias(name) for name, expr in self._program.scope.aggregates.items()]
        present = self.rows.group_by(UNIT, *keys, maintain_order=True).agg(
            pl.lit(value=True).alias(_PRESENT), *aggregates
        )
        if self._keys:
            joined = present.join(self.units, on=UNIT, how="left", maintain_order="left")
            return self._with_measures(joined)
        joined = self.units.join(present, on=UNIT, how="left", maintain_order="left")
        return self._with_measures(joined.with_columns_seq(self._filled()))

    def _filled(self) -> list[pl.Expr]:
        """Return the aggregates with those of no rows where a unit has none."""
        empty = self._empty_aggregates()
        return [
            pl.when(pl.col(_PRESENT)).then(pl.col(name)).otherwise(pl.lit(empty[name][0]))
            for name in empty.columns
        ]

    def _empty_aggregates(self) -> pl.DataFrame:
        aggregates = self._program.scope.aggregates
        return self.rows.clear().select_seq(expr.alias(name) for name, expr in aggregates.items())

    def _with_measures(self, frame: pl.DataFrame) -> pl.DataFrame:
        for formulas in self._program.formulas_apart():
            frame = _finite(frame.with_columns_seq(**formulas), formulas)
        if self._program.expect is not None:
            frame = frame.with_columns_seq(self._program.expect.alias(OK))
        return frame

    def _inform(self, measured: pl.DataFrame) -> Outcome:
        empty = self._counting_empty_units()
        suspects = []
        for group, frame in self._reported_groups(measured):
            units = self._zero_filled(frame, empty)
            suspects.append(Suspect(group, units, "informative", units.height, 0))
        return Outcome(self._judged(suspects))

    def _judge(self, measured: pl.DataFrame) -> Outcome:
        empty = self._counting_empty_units()
        if self._keys and empty is None:
            measured = self._doubtful(measured)
        suspects, unknown = [], []
        for group, frame in self._reported_groups(measured):
            suspect = self._suspect(group, self._zero_filled(frame, empty))
            if suspect.units.height:
                suspects.append(suspect)
            elif suspect.unknown:
                unknown.append(suspect.unknown)
        words = self._unknown_words(unknown) if unknown else None
        return Outcome(self._judged(suspects), unknown=words)

    def _reported_groups(
        self, measured: pl.DataFrame
    ) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
        count = measured.select_seq(self._keys).n_unique() if self._keys and measured.height else 0
        if count > MAX_GROUPS:
            raise TooManyGroupsError(count)
        yield from self._groups(measured)

    def _groups(self, measured: pl.DataFrame) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
        if not self._keys:
            yield {}, measured
            return
        for values, frame in measured.group_by(self._keys, maintain_order=True):
            yield dict(zip(self._program.group_by, values, strict=True)), frame

    def _doubtful(self, measured: pl.DataFrame) -> pl.DataFrame:
        """Drop the groups whose expectation holds wherever they occur."""
        if measured[OK].all(ignore_nulls=False):
            return measured.clear()
        holds = pl.col(OK).fill_null(value=False).all().over(self._keys)
        return measured.filter(~holds)

    def _counting_empty_units(self) -> pl.DataFrame | None:
        """Return the units that count for a group although it is absent there; None for none.

        They are those whose expectation does not hold, and all of a rule that expects nothing.
        """
        if not self._keys:
            return None
        units = self._empty_units()
        if self._program.expect is not None:
            units = units.filter(~pl.col(OK).fill_null(value=False))
        return None if units.is_empty() else units

    def _empty_units(self) -> pl.DataFrame:
        """Return all units with the measures of one in which no row matches."""
        empty = self._empty_aggregates()
        literals = [pl.lit(values[0], dtype=values.dtype).alias(values.name) for values in empty]
        return self._with_measures(self.units.with_columns_seq(literals))

    def _zero_filled(self, frame: pl.DataFrame, empty: pl.DataFrame | None) -> pl.DataFrame:
        if empty is None:
            return frame
        absent = empty.join(frame.select_seq(UNIT), on=UNIT, how="anti")
        return pl.concat([frame, absent], how="diagonal")

    def _suspect(self, group: dict[str, Any], units: pl.DataFrame) -> Suspect:
        mismatching = units.filter(~pl.col(OK))
        unknown = units[OK].null_count()
        total = self.units.height - unknown
        # A share and not a product: 0.07 * 100 is more than 7.
        enough = total > 0 and mismatching.height / total >= self._quorum
        return Suspect(group, mismatching, "mismatch" if enough else "intermittent", total, unknown)

    def _unknown_words(self, units: list[int]) -> str:
        total, per = self.units.height, self._program.per
        groups = f" for {len(units)} group{'s' if len(units) > 1 else ''}" if self._keys else ""
        return (
            f"the expectation is unknown{groups} in {max(units)} of {total} {per.words}"
            f"{'s' if total > 1 else ''}: a value it rests on is null"
        )

    def _judged(self, suspects: list[Suspect]) -> list[Judged]:
        rows = self._rows_by_group(suspects)
        judged = []
        for suspect in suspects:
            found = rows.get(tuple(suspect.group.values()), self.rows.clear())
            found = found.filter(pl.col(UNIT).is_in(suspect.units[UNIT].implode()))
            judged.append(Judge(self._program, suspect, found, self._tables).run())
        return judged

    def _rows_by_group(self, suspects: list[Suspect]) -> dict[tuple[Any, ...], pl.DataFrame]:
        """Return the matched rows of the suspects, apart."""
        columns = self._program.group_by
        if not columns:
            return {(): self.rows}
        wanted = pl.DataFrame(
            [suspect.group for suspect in suspects],
            schema={column: self.rows.schema[column] for column in columns},
        )
        rows = self.rows.join(wanted, on=columns, how="semi", nulls_equal=True)
        return rows.partition_by(columns, as_dict=True, maintain_order=True)
