"""Why a rule fires on a trace, or does not: its documentation, and the way of the rows through it.

Plain data that every writer renders.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from analyze.engine.data import Tables
from analyze.engine.document import Document, KeyPath
from analyze.engine.evaluate import Evaluation, MeasuredGroup, holding, rows_in_units
from analyze.engine.findings import plain
from analyze.engine.measure_formats import formats_of
from analyze.engine.model import Expression, RuleTest, State
from analyze.engine.per import per_of, unit_in_words
from analyze.engine.program import Program, Verdict
from analyze.engine.reporting import spell
from analyze.engine.result import Finding
from analyze.engine.rule import Rule
from analyze.engine.run import run_rule
from analyze.engine.templates import FORMATS
from analyze.engine.values import Value
from analyze.engine.wording import in_words, steps
from analyze.tables.catalogue import TABLES

SCHEMA_VERSION = 1
"""Raised when a key is renamed, removed or changes its meaning; new keys do not raise it."""

KEPT_GROUPS = 20
"""Groups that are kept, those that fail first."""

_COMMENT_BEHIND = re.compile(r"[\s,}\]]*#+ ?(.*)")
_COMMENT_LINE = re.compile(r"( *)#+ ?(.*)")


@dataclass(frozen=True)
class Threshold:
    """A parameter of a rule.

    Attributes:
        name: of the parameter.
        value: in use.
        written: as the rule file has it; None for one that the pack shares.
        comment: the lines beside it, which say where the value comes from; empty without any.
        changed_by: who changed it, if anybody did.
    """

    name: str
    value: Value
    written: Any
    comment: str
    changed_by: str | None


@dataclass(frozen=True)
class Reason:
    """A condition that changes a finding, in words, and why it does."""

    when: str
    because: str


@dataclass(frozen=True)
class NamedTest:
    """A test of a rule: its name, and the state that it expects, if it names one."""

    name: str
    state: State | None
    todo: bool


@dataclass(frozen=True)
class Documentation:
    """What a rule file says about its rule; the attributes are the keys of the file in words."""

    code: str
    name: str
    title: str
    category: str
    pack: str
    file: str
    status: str
    confidence: str
    guess: str
    description: str | None
    table: str
    table_meaning: str
    per: str
    group_by: tuple[str, ...]
    requires: tuple[Reason, ...]
    where: tuple[str, ...]
    measures: dict[str, str]
    expect: str | None
    quorum: float
    severity: tuple[str, ...]
    benign: tuple[Reason, ...]
    uncertain: tuple[Reason, ...]
    thresholds: tuple[Threshold, ...]
    fix: str | None
    explains: tuple[str, ...]
    known_problems: tuple[str, ...]
    references: tuple[str, ...]
    tests: tuple[NamedTest, ...]


@dataclass(frozen=True)
class Condition:
    """One condition of ``where`` on the rows that belong to a unit.

    Attributes:
        words: the condition.
        alone: rows for which it holds.
        unknown: rows of which it cannot be told.
        so_far: rows for which it and all conditions before it hold.
    """

    words: str
    alone: int
    unknown: int
    so_far: int


@dataclass(frozen=True)
class MeasureRange:
    """One measure over units.

    Attributes:
        name: of the measure.
        format: as the texts of the rule write it, else what its unit asks for; empty where
            neither says.
        lowest, middle, highest: over the units; for text only the commonest, in the middle.
        unknown: units in which it is unknown.
    """

    name: str
    format: str
    lowest: Any
    middle: Any
    highest: Any
    unknown: int


@dataclass(frozen=True)
class GroupSeen:
    """One group, or the whole of a rule without groups.

    Attributes:
        group: key columns with their values.
        measures: over the units in which it occurs, and those in which it fails by its absence.
        holds, fails, unknown: numbers of units by what the expectation comes to.
    """

    group: dict[str, Any]
    measures: tuple[MeasureRange, ...]
    holds: int
    fails: int
    unknown: int


@dataclass(frozen=True)
class VerdictSeen:
    """One condition of ``benign`` or ``uncertain`` on the rows that match.

    Attributes:
        kind: ``benign`` or ``uncertain``.
        when, because: as in the documentation.
        rows: matching rows for which it holds; None for a condition on measures.
        of_rows: matching rows.
    """

    kind: str
    when: str
    because: str
    rows: int | None
    of_rows: int


@dataclass(frozen=True)
class Funnel:
    """The way of the rows of one trace through a rule.

    Attributes:
        trace: the file.
        unit: the unit of repetition in words.
        units: how many there are.
        rows: of the rule's table.
        rows_in_units: those that belong to a unit.
        conditions: of ``where``, in order.
        matched: rows for which all hold.
        group_count: how many groups there are.
        groups: some of them, those that fail first.
        verdicts: of ``benign`` and ``uncertain``.
        state: of the rule as a whole.
        reason: why it is not applicable, or what went wrong.
        findings: ranked; those that the rule asks to ignore come last.
    """

    trace: str
    unit: str
    units: int
    rows: int
    rows_in_units: int
    conditions: tuple[Condition, ...]
    matched: int
    group_count: int
    groups: tuple[GroupSeen, ...]
    verdicts: tuple[VerdictSeen, ...]
    state: State
    reason: str | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Explanation:
    """A rule explained: by itself, and on a trace if there is one."""

    rule: Documentation
    funnel: Funnel | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON data."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}


def document(rule: Rule) -> Documentation:
    """Return what a rule file says."""
    model, table = rule.model, TABLES[rule.model.table]
    return Documentation(
        code=rule.code,
        name=rule.name,
        title=model.title,
        category=rule.category,
        pack=rule.pack,
        file=rule.file,
        status=model.status,
        confidence=model.confidence,
        guess=model.guess,
        description=model.description,
        table=table.name,
        table_meaning=table.meaning,
        per=per_of(model.per, table).words,
        group_by=tuple(model.group_by or ()),
        requires=tuple(Reason(_spelt(it.that), it.otherwise) for it in model.requires),
        where=tuple(_words(rule, tree) for _, tree in steps(model.where, ("where",))),
        measures={name: _spelt(written) for name, written in model.measure.items()},
        expect=None if model.expect is None else _spelt(model.expect),
        quorum=model.quorum,
        severity=tuple(_severity(rule)),
        benign=tuple(Reason(_words(rule, it.when), it.because) for it in model.benign),
        uncertain=tuple(Reason(_words(rule, it.when), it.because) for it in model.uncertain),
        thresholds=tuple(_thresholds(rule)),
        fix=model.fix,
        explains=tuple(model.explains),
        known_problems=rule.known_problems,
        references=rule.references,
        tests=tuple(map(_named, model.tests)),
    )


def _words(rule: Rule, condition: Any) -> str:
    if isinstance(condition, str):
        return condition
    return in_words(condition, rule.params, rule.shared)


def _spelt(written: Expression) -> str:
    return " ".join(spell(written).split())


def _severity(rule: Rule) -> Iterator[str]:
    written = rule.model.severity
    if isinstance(written, list):
        for step in written:
            yield step.level if step.when is None else f"{step.level} when {_spelt(step.when)}"
    else:
        yield written or ("info" if rule.model.expect is None else "warning")


def _thresholds(rule: Rule) -> Iterator[Threshold]:
    for name, value in rule.params.items():
        comment = comment_beside(rule.document, ("params", name))
        written = rule.model.params.get(name)
        yield Threshold(name, value, written, comment, rule.changed.get(name))


def _named(test: RuleTest) -> NamedTest:
    return NamedTest(test.name, test.expect.state, test.todo)


def comment_beside(document: Document, path: KeyPath) -> str:
    """Return the comment of a value: lines above its key, behind the value, and going on below."""
    place = document.origin(path)
    lines = place.document.lines
    key, value = place.document.keys.get(place.path), place.document.values.get(place.path)
    if key is None or value is None:
        return ""
    indent, end = key.start_mark.column, value.end_mark
    above = list(_comments(reversed(lines[: key.start_mark.line]), indent, indent))[::-1]
    behind = _COMMENT_BEHIND.fullmatch(lines[end.line][end.column :])
    below = _comments(lines[end.line + 1 :], indent + 1) if behind else ()
    return " ".join([*above, *([behind[1]] if behind else []), *below])


def _comments(lines: Sequence[str] | Iterator[str], least: int, most: int = 999) -> Iterator[str]:
    """Yield the texts of lines that are comments, indented so far, until another line comes."""
    for line in lines:
        comment = _COMMENT_LINE.fullmatch(line.rstrip())
        if comment is None or not least <= len(comment[1]) <= most:
            return
        yield comment[2]


def explain(rule: Rule, tables: Tables, trace: str) -> Funnel:
    """Return the way of the rows of a trace through a rule.

    Args:
        rule: the rule.
        tables: of the trace.
        trace: its name.
    """
    result = run_rule(rule, tables)
    table = TABLES[rule.model.table]
    per = per_of(rule.model.per, table)
    funnel = Funnel(
        trace=trace,
        unit=unit_in_words(per, tables.facts.get("forward_is")),
        units=0,
        rows=tables.table(table.name).height,
        rows_in_units=0,
        conditions=(),
        matched=0,
        group_count=0,
        groups=(),
        verdicts=(),
        state=result.state,
        reason=result.error or result.not_applicable,
        findings=(*result.findings, *result.ignored),
    )
    return funnel if result.error is not None else _Explaining(rule, tables).fill(funnel)


class _Explaining:
    """One rule on one trace."""

    def __init__(self, rule: Rule, tables: Tables) -> None:
        self._rule = rule
        self._program = rule.compile(tables.facts)
        self._tables = tables
        formulas = {name: _spelt(written) for name, written in rule.model.measure.items()}
        table = TABLES[rule.model.table]
        self._formats = formats_of(formulas, table, _written_formats(self._program))

    def fill(self, funnel: Funnel) -> Funnel:
        """Return the funnel with what happens to the rows."""
        # Compiling the conditions apart adds text tests, which rows_in_units then evaluates.
        conditions = self._compiled()
        evaluation = Evaluation(self._program, self._tables, self._rule.model.quorum)
        rows = rows_in_units(self._program, self._tables, evaluation.units)
        groups = sorted(evaluation.measured_groups(), key=_failing_first)
        return replace(
            funnel,
            units=evaluation.units.height,
            rows_in_units=rows.height,
            conditions=tuple(_counted(conditions, rows)),
            matched=evaluation.rows.height,
            group_count=len(groups),
            groups=tuple(self._seen(group) for group in groups[:KEPT_GROUPS]),
            verdicts=tuple(self._verdicts(evaluation.rows)),
        )

    def _compiled(self) -> list[tuple[str, pl.Expr]]:
        return [
            (_words(self._rule, tree), matcher.expr)
            for tree, matcher in self._rule.conditions(self._program)
        ]

    def _seen(self, group: MeasuredGroup) -> GroupSeen:
        return GroupSeen(
            group={name: plain(value) for name, value in group.group.items()},
            measures=tuple(
                _range(group.units[name], self._formats.get(name, ""))
                for name in self._program.formulas
            ),
            holds=group.holds,
            fails=group.fails,
            unknown=group.unknown,
        )

    def _verdicts(self, rows: pl.DataFrame) -> Iterator[VerdictSeen]:
        model, program = self._rule.model, self._program
        for kind, verdicts, written in (
            ("benign", program.benign, [it.when for it in model.benign]),
            ("uncertain", program.uncertain, [it.when for it in model.uncertain]),
        ):
            for verdict, when in zip(verdicts, written, strict=True):
                words, seen = _words(self._rule, when), _rows_of(verdict, rows)
                yield VerdictSeen(kind, words, verdict.because, seen, rows.height)


def _written_formats(program: Program) -> dict[str, str]:
    """Return how the texts of a rule write its measures; the message comes first."""
    fields = [*(program.fix.fields if program.fix else ()), *program.message.fields]
    return {field.name: field.format for field in fields if field.format in FORMATS}


def _failing_first(group: MeasuredGroup) -> tuple[int, int]:
    return -group.fails, -group.unknown


def _counted(conditions: list[tuple[str, pl.Expr]], rows: pl.DataFrame) -> Iterator[Condition]:
    so_far = pl.Series([True]).new_from_index(0, rows.height)
    for words, expr in conditions:
        holds = holding(expr, rows)
        so_far &= holds.fill_null(value=False)
        yield Condition(words, int(holds.sum()), holds.null_count(), int(so_far.sum()))


def _range(values: pl.Series, form: str) -> MeasureRange:
    known = values.drop_nulls()
    if values.dtype.is_numeric():
        lowest, middle, highest = known.min(), known.median(), known.max()
    else:
        common = known.mode(maintain_order=True)
        lowest, middle, highest = None, common[0] if len(common) else None, None
    return MeasureRange(
        values.name, form, plain(lowest), plain(middle), plain(highest), values.null_count()
    )


def _rows_of(verdict: Verdict, rows: pl.DataFrame) -> int | None:
    return None if verdict.rows is None else int(holding(verdict.rows, rows).sum())
