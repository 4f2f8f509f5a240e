"""From the mismatching units of one group to severity, savings, verdicts and evidence."""

from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from analyze.engine.data import UNIT, Tables
from analyze.engine.places import places_of, source_of
from analyze.engine.program import Program, Verdict
from analyze.engine.result import LEVELS, FindingState, Level, Place

CHAIN = "op_chain"
"""The column that says which ops a row lies under."""

_LEVEL = "#level"
_SAVINGS = "#savings"


class Judged(NamedTuple):
    """One group of a rule, judged.

    Attributes:
        group: key columns with their values.
        state: ``mismatch``, ``intermittent`` or ``informative``.
        total, mismatching, unknown: numbers of units.
        values: medians of measures and unit columns over the mismatching units, by name.
        severity: on those medians.
        worst_severity, worst_unit: of the severest single unit.
        savings_us, savings_share: medians per unit; null when unknown.
        savings_of: ``gpu`` or ``cpu``: whose time is saved.
        benign: the verdict that makes it harmless.
        uncertain: the verdicts that say what it rests on without knowing it.
        evidence: rows, as plain JSON types.
        places: where the first of these rows are in the trace.
        rows: how many of them there are.
        source: the user's source line that most of their time goes to.
        chains: the distinct op chains of the matched rows; empty where the table has none.
    """

    group: dict[str, Any]
    state: FindingState
    total: int
    mismatching: int
    unknown: int
    values: dict[str, Any]
    severity: Level
    worst_severity: Level
    worst_unit: int | None
    savings_us: float | None
    savings_share: float | None
    savings_of: str
    benign: Verdict | None
    uncertain: list[Verdict]
    evidence: list[dict[str, Any]]
    places: tuple[Place, ...]
    rows: int
    source: str | None
    chains: frozenset[str | None]


class Suspect(NamedTuple):
    """A group with the units in which it mismatches.

    Attributes:
        group: key columns with their values.
        units: one row per mismatching unit, with measures and unit columns.
        state: of the group, but for what may make it benign.
        total, unknown: numbers of units that could and could not be judged.
    """

    group: dict[str, Any]
    units: pl.DataFrame
    state: FindingState
    total: int
    unknown: int


class Judge:
    """Judges one group."""

    def __init__(
        self, program: Program, suspect: Suspect, rows: pl.DataFrame, tables: Tables
    ) -> None:
        """Hold what is judged.

        Args:
            program: the rule.
            suspect: the group.
            rows: its matched rows in the mismatching units.
            tables: where the rows are.
        """
        units = suspect.units
        self._program = program
        self._suspect = suspect
        self._units = units
        self._rows = rows
        self._tables = tables
        self._medians = _medians(units)

    def run(self) -> Judged:
        """Judge the group."""
        level, worst_level, worst = self._levels()
        savings_us, savings_share = self._savings()
        rows, table = self._shown_rows(), self._program.table
        return Judged(
            group=self._suspect.group,
            state=self._suspect.state,
            total=self._suspect.total,
            mismatching=self._units.height,
            unknown=self._suspect.unknown,
            values=_plain(self._medians, self._units.schema),
            severity=level,
            worst_severity=worst_level,
            worst_unit=self._index_of(worst),
            savings_us=savings_us,
            savings_share=savings_share,
            savings_of=self._savings_of,
            benign=next(filter(self._is_benign, self._program.benign), None),
            uncertain=[verdict for verdict in self._program.uncertain if self._applies(verdict)],
            evidence=self._evidence(rows),
            places=places_of(rows, table, self._tables),
            rows=rows.height,
            source=source_of(rows, table, self._tables),
            chains=frozenset(self._rows[CHAIN].unique()) if CHAIN in self._rows else frozenset(),
        )

    def _levels(self) -> tuple[Level, Level, int]:
        """Return the severity on the medians, that of the severest unit, and that unit."""
        *steps, last = self._program.ladder
        if not steps:
            return last.level, last.level, self._units[UNIT][0]
        levels = self._units.select_seq(UNIT, self._level())
        unit, worst = levels.sort(_LEVEL, descending=True, maintain_order=True).row(0)
        return LEVELS[self._medians_level()], LEVELS[worst], unit

    def _index_of(self, unit: int) -> int | None:
        """Return the index of a unit as its table has it: of a step that is its number."""
        name = f"{self._program.per.word}.index"
        if name not in self._units.columns:
            return unit
        index: int | None = self._units.filter(pl.col(UNIT) == unit)[name][0]
        return index

    def _level(self) -> pl.Expr:
        """Return the severity as a position in LEVELS: that of the first step that applies."""
        *steps, last = self._program.ladder
        level = pl.lit(LEVELS.index(last.level), dtype=pl.Int64)
        for step in reversed(steps):
            when = pl.lit(value=False) if step.when is None else step.when
            level = pl.when(when).then(pl.lit(LEVELS.index(step.level))).otherwise(level)
        return level.alias(_LEVEL)

    def _medians_level(self) -> int:
        frame = self._medians if self._medians.width else pl.DataFrame({UNIT: [0]})
        return int(frame.select_seq(self._level())[_LEVEL][0])

    def _savings(self) -> tuple[float | None, float | None]:
        if self._program.savings is None:
            return None, None
        savings = self._program.savings.cast(pl.Float64)
        whole = self._whole(self._savings_of)
        row = self._units.select_seq(
            savings.median().alias(_SAVINGS),
            pl.when(whole > 0).then(savings / whole).median().alias("share"),
        ).row(0)
        return row[0], row[1]

    @cached_property
    def _savings_of(self) -> str:
        of = self._program.savings_of
        if of != "either":
            return of
        has_gpu_work = self._units.select_seq((self._whole("gpu") > 0).any()).item()
        return "gpu" if has_gpu_work else "cpu"

    def _whole(self, of: str) -> pl.Expr:
        """Return the time of the units that savings are a share of."""
        column = {"gpu": "gpu_busy_us", "cpu": "cpu_us"}[of]
        return pl.col(f"{self._program.per.word}.{column}")

    def _is_benign(self, verdict: Verdict) -> bool:
        """Whether there is evidence and every row of it matches."""
        if verdict.rows is None or self._rows.is_empty():
            return False
        matches = self._rows.select_seq(verdict.rows.alias("matches"))["matches"]
        return matches.fill_null(value=False).all()

    def _applies(self, verdict: Verdict) -> bool:
        """Whether any row of evidence matches, or the medians do."""
        if verdict.measures is not None:
            return bool(self._medians.select_seq(verdict.measures.alias("applies"))["applies"][0])
        if verdict.rows is None or self._rows.is_empty():
            return False
        return self._rows.select_seq(verdict.rows.alias("matches"))["matches"].any()

    def _shown_rows(self) -> pl.DataFrame:
        """Return the rows of evidence, the most important first."""
        shown = self._program.shown
        rows = self._rows if shown is None else self._rows.filter(shown)
        if self._program.sort is None:
            return rows
        column, descending = self._program.sort
        return rows.sort(column, descending=descending, nulls_last=True, maintain_order=True)

    def _evidence(self, rows: pl.DataFrame) -> list[dict[str, Any]]:
        if self._program.distinct:
            rows = rows.unique(self._program.distinct, keep="first", maintain_order=True)
        shown = rows.select_seq(self._program.evidence).head(self._program.limit)
        return shown.to_dicts()


def middle_values(units: pl.DataFrame) -> dict[str, Any]:
    """Return the medians over units by name; those of whole numbers as whole numbers if they are.

    Args:
        units: one row per unit, with measures and unit columns.
    """
    return _plain(_medians(units), units.schema)


def _plain(medians: pl.DataFrame, schema: pl.Schema) -> dict[str, Any]:
    """Return medians by name, those of whole numbers as whole numbers if they are."""
    if not medians.width:
        return {}
    return {
        name: int(value)
        if value is not None and schema[name].is_integer() and value % 1 == 0
        else value
        for name, value in medians.row(0, named=True).items()
    }


def _medians(units: pl.DataFrame) -> pl.DataFrame:
    return units.select_seq(
        _middle(name, dtype) for name, dtype in units.schema.items() if not name.startswith("#")
    )


def _middle(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return the median of numbers, the commonest of other values, in one row."""
    if dtype.is_numeric():
        return pl.col(name).median().cast(pl.Float64)
    return pl.col(name).drop_nulls().mode(maintain_order=True).first()
