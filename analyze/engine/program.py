"""A rule compiled for one set of parameters and one trace: polars expressions and templates."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl

from analyze.engine.document import KeyPath
from analyze.engine.expressions import Compiled, Place
from analyze.engine.matchers import Matcher, Shared, compile_matcher
from analyze.engine.model import RuleModel, Step
from analyze.engine.per import UNIT_WORD, Per, can_be_judged, per_of
from analyze.engine.problems import did_you_mean
from analyze.engine.reporting import Reporter
from analyze.engine.result import Confidence, Level
from analyze.engine.scope import Scope, TraceFacts, Uses, column_kinds
from analyze.engine.syntax import ExpressionError
from analyze.engine.templates import Template, parse_template
from analyze.engine.values import Kind, Value, kind_of_value
from analyze.tables.catalogue import TABLES, TRACE, Table

_RESERVED = ("params", "trace", "forward", "step", "call", "region", "true", "false", "null")
_PLAIN_EVIDENCE = ("name", "op_chain", "source", "dur_us", "start_us")


class LadderStep(NamedTuple):
    """One step of a severity ladder; ``when`` is null where it always applies."""

    level: Level
    when: pl.Expr | None


class Verdict(NamedTuple):
    """A condition that changes a finding: one of ``benign`` or ``uncertain``.

    Attributes:
        rows: condition on the rows of evidence; None where it is one on measures.
        measures: the other way round.
        because: reason to print.
        ignore: of a benign one: do not report the finding.
        confidence: of an uncertain one: the confidence that remains.
    """

    rows: pl.Expr | None
    measures: pl.Expr | None
    because: str
    ignore: bool = False
    confidence: Confidence = "low"


class Precondition(NamedTuple):
    """What must be true of the trace for a rule to say anything.

    Attributes:
        expr: one value.
        otherwise: why not, in words.
        facts: the columns of ``trace`` it rests on.
    """

    expr: pl.Expr
    otherwise: str
    facts: frozenset[str]


@dataclass
class Program:
    """A compiled rule.

    Attributes:
        table, per: what is judged per what.
        requires: preconditions on the trace.
        group_by: columns that make up the group.
        where: true, false or null per row.
        scope: collected aggregates and text tests.
        formulas: per measure, the expression over hidden aggregates and earlier measures; where it
            comes to no finite number it is unknown.
        expect: None where the rule is informative.
        ladder: severity, first match wins.
        savings: microseconds per unit.
        savings_of: whose time they are: ``gpu``, ``cpu`` or ``either``.
        benign, uncertain: conditions on a finding.
        message, fix: templates.
        evidence: columns to show.
        shown: condition on the matched rows that evidence shows; None where it shows all.
        distinct: columns of which evidence shows each combination once.
        sort: the column to sort evidence by, and whether descending.
        limit: how many rows to show.
        judged_by: names that decide the verdict (``where``, ``expect``, ``severity``), which must
            be known.
    """

    table: Table
    per: Per
    scope: Scope
    requires: list[Precondition] = field(default_factory=list)
    group_by: list[str] = field(default_factory=list)
    where: pl.Expr = field(default_factory=lambda: pl.lit(value=True))
    formulas: dict[str, pl.Expr] = field(default_factory=dict)
    expect: pl.Expr | None = None
    ladder: list[LadderStep] = field(default_factory=list)
    savings: pl.Expr | None = None
    savings_of: str = "gpu"
    benign: list[Verdict] = field(default_factory=list)
    uncertain: list[Verdict] = field(default_factory=list)
    message: Template = field(default_factory=lambda: Template(()))
    fix: Template | None = None
    evidence: list[str] = field(default_factory=list)
    shown: pl.Expr | None = None
    distinct: list[str] = field(default_factory=list)
    sort: tuple[str, bool] | None = None
    limit: int = 0
    judged_by: Uses = field(default_factory=Uses)

    def row_expressions(self) -> Iterable[pl.Expr]:
        """Return every expression that is evaluated on rows of the table."""
        yield self.where
        yield from self.scope.aggregates.values()
        yield from () if self.shown is None else (self.shown,)
        yield from (verdict.rows for verdict in self.verdicts if verdict.rows is not None)

    def formulas_apart(self) -> Iterator[dict[str, pl.Expr]]:
        """Yield the formulas in their order, apart where one rests on another before it."""
        together: dict[str, pl.Expr] = {}
        for name, formula in self.formulas.items():
            if not together.keys().isdisjoint(formula.meta.root_names()):
                yield together
                together = {}
            together[name] = formula
        yield together

    @property
    def verdicts(self) -> list[Verdict]:
        """The conditions on a finding."""
        return [*self.benign, *self.uncertain]


def compile_rule(
    model: RuleModel,
    params: Mapping[str, Value],
    facts: Mapping[str, Any] | None,
    reporter: Reporter,
    shared: Shared,
) -> Program | None:
    """Compile a rule; its problems go to the reporter.

    Args:
        model: the rule as written.
        params: values of its parameters.
        facts: the row of the table ``trace``; None to check the rule without a trace.
        reporter: collects what is wrong with the rule.
        shared: lists and macros of the pack.

    Returns:
        The program; None when the rule's table or unit is wrong, so that nothing else can be
        checked. When problems were reported, the program must not be run.
    """
    table = TABLES.get(model.table)
    if table is None:
        reporter.unknown(("from",), "table", model.table, TABLES)
        return None
    per = per_of(model.per, table)
    if not can_be_judged(table, per):
        help_text = "judge it per trace"
        reporter.add(("per",), f"rows of '{table.name}' belong to no {per.word}", help_text)
        return None
    scope = _scope(table, per, params, facts)
    scope.declared = frozenset(model.measure)
    scope.broken |= reporter.broken
    program = Program(table, per, scope)
    return _RuleCompiler(model, program, reporter, shared).compile()


def _scope(
    table: Table, per: Per, params: Mapping[str, Value], facts: Mapping[str, Any] | None
) -> Scope:
    return Scope(
        table=table.name,
        columns=column_kinds(table.name),
        unit=per.word if per.table else None,
        unit_columns=column_kinds(per.table.name) if per.table else {},
        facts=TraceFacts(facts or {}),
        params=params,
    )


class _RuleCompiler:
    """One pass over one rule."""

    def __init__(
        self, model: RuleModel, program: Program, reporter: Reporter, shared: Shared
    ) -> None:
        self._model = model
        self._program = program
        self._scope = program.scope
        self._reporter = reporter
        self._shared = shared
        self._uses_of_measures: dict[str, Uses] = {}

    def compile(self) -> Program:
        program, model = self._program, self._model
        self._requires()
        where = self._matcher(model.where, ("where",))
        program.where = where.expr
        program.group_by = self._columns(model.group_by or [], ("group_by",))
        self._measures()
        judged = [where.uses]
        if model.expect is not None:
            expect = self._formula(("expect",), model.expect, Kind.FLAG)
            program.expect = expect.expr if expect else None
            judged += [expect.uses] if expect else []
        judged += self._severity()
        self._verdicts()
        if model.savings is not None:
            savings = self._formula(("savings", "us"), model.savings.us, Kind.NUMBER)
            program.savings = savings.expr if savings else None
            program.savings_of = model.savings.of
        self._templates()
        self._evidence()
        program.judged_by = self._with_measures(judged)
        return program

    def _requires(self) -> None:
        scope = Scope("trace", {}, None, {}, self._scope.facts, self._scope.params)
        for index, written in enumerate(self._model.requires):
            compiled = self._reporter.expression(
                ("requires", index, "that"), written.that, scope, want=Kind.FLAG
            )
            if compiled is not None:
                facts = frozenset(compiled.uses.facts)
                precondition = Precondition(compiled.expr, written.otherwise, facts)
                self._program.requires.append(precondition)

    def _matcher(self, tree: object, path: KeyPath) -> Matcher:
        return compile_matcher(tree, path, self._scope, self._reporter, self._shared)

    def _formula(self, path: KeyPath, written: object, want: Kind) -> Compiled | None:
        return self._reporter.expression(path, written, self._scope, want=want)

    def _columns(self, names: list[str], path: KeyPath) -> list[str]:
        known = self._scope.columns
        for index, name in enumerate(names):
            if name not in known:
                self._unknown_column((*path, index), name)
            elif name in names[:index]:
                self._reporter.add((*path, index), f"'{name}' is named twice")
        return [name for name in names if name in known]

    def _unknown_column(self, path: KeyPath, name: str) -> None:
        message = f"unknown column '{name}' in table '{self._program.table.name}'"
        self._reporter.add(path, message, did_you_mean(name, self._scope.columns))

    def _measures(self) -> None:
        for name, written in self._model.measure.items():
            path = ("measure", name)
            if name in _RESERVED:
                self._reporter.add(path, f"'{name}' is a word of the rule language", key=True)
                continue
            compiled = self._reporter.expression(path, written, self._scope, Place.MEASURE)
            if compiled is None:
                self._scope.broken.add(name)
                continue
            self._program.formulas[name] = compiled.expr
            self._scope.measures[name] = compiled.typed.kind
            self._uses_of_measures[name] = compiled.uses

    def _severity(self) -> list[Uses]:
        written = self._model.severity
        if isinstance(written, list):
            return self._ladder(written)
        plain: Level = "info" if self._model.expect is None else "warning"
        self._program.ladder = [LadderStep(written or plain, None)]
        return []

    def _ladder(self, steps: list[Step]) -> list[Uses]:
        uses = []
        for index, step in enumerate(steps):
            when = None
            if step.when is not None:
                compiled = self._formula(("severity", index, "when"), step.when, Kind.FLAG)
                when = compiled.expr if compiled else None
                uses += [compiled.uses] if compiled else []
            elif index < len(steps) - 1:
                message = "steps behind one without 'when' never apply"
                self._reporter.add(("severity", index), message)
            self._program.ladder.append(LadderStep(step.level, when))
        if steps[-1].when is not None:
            message = "the last step of a severity ladder has no 'when'"
            path = ("severity", len(steps) - 1)
            self._reporter.add(path, message, "add {level: info} for everything else")
        return uses

    def _verdicts(self) -> None:
        for index, benign in enumerate(self._model.benign):
            rows = self._matcher(benign.when, ("benign", index, "when")).expr
            ignore = benign.severity == "ignore"
            self._program.benign.append(Verdict(rows, None, benign.because, ignore=ignore))
        for index, uncertain in enumerate(self._model.uncertain):
            path = ("uncertain", index, "when")
            condition, formula = None, None
            if isinstance(uncertain.when, str):
                compiled = self._formula(path, uncertain.when, Kind.FLAG)
                formula = compiled.expr if compiled else None
            else:
                condition = self._matcher(uncertain.when, path).expr
            self._program.uncertain.append(
                Verdict(condition, formula, uncertain.because, confidence=uncertain.confidence)
            )

    def _templates(self) -> None:
        kinds = {UNIT_WORD: Kind.TEXT} | dict.fromkeys(self._scope.broken, Kind.NULL)
        kinds |= {**self._scope.measures, **self._prefixed_kinds()}
        for column in self._program.group_by:
            kinds.setdefault(column, self._scope.columns[column])
        message = self._template(("message",), self._model.message, kinds)
        self._program.message = message or Template(())
        if self._model.fix is not None:
            self._program.fix = self._template(("fix",), self._model.fix, kinds)

    def _prefixed_kinds(self) -> dict[str, Kind]:
        scope = self._scope
        kinds = {f"trace.{name}": kind for name, kind in column_kinds(TRACE.name).items()}
        kinds |= {f"{scope.unit}.{name}": kind for name, kind in scope.unit_columns.items()}
        return kinds | {
            f"params.{name}": kind_of_value(value)
            for name, value in scope.params.items()
            if not isinstance(value, list)
        }

    def _template(self, path: KeyPath, text: str, kinds: Mapping[str, Kind]) -> Template | None:
        try:
            return parse_template(text, kinds)
        except ExpressionError as error:
            self._reporter.add_in(path, error)
            return None

    def _evidence(self) -> None:
        evidence, columns = self._model.evidence, self._scope.columns
        self._program.limit = evidence.limit
        if evidence.columns is None:
            self._program.evidence = [name for name in _PLAIN_EVIDENCE if name in columns]
        else:
            self._program.evidence = self._columns(evidence.columns, ("evidence", "columns"))
        if evidence.where:
            self._program.shown = self._matcher(evidence.where, ("evidence", "where")).expr
        self._program.distinct = self._columns(evidence.distinct or [], ("evidence", "distinct"))
        written = evidence.sort
        if written is None:
            self._program.sort = ("dur_us", True) if "dur_us" in columns else None
            return
        name = written.removeprefix("-")
        if name in columns:
            self._program.sort = (name, written.startswith("-"))
        else:
            self._unknown_column(("evidence", "sort"), name)

    def _with_measures(self, judged: list[Uses]) -> Uses:
        """Return the names used, with those behind the measures among them."""
        total = Uses()
        waiting = list(judged)
        while waiting:
            uses = waiting.pop()
            total.add(uses)
            new = uses.measures - total.measures
            total.measures |= new
            waiting += [
                self._uses_of_measures[name] for name in new if name in self._uses_of_measures
            ]
        return total
