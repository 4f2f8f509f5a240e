"""The Python API: :func:`load` a trace, :func:`check` it, hold it to a level in a test.

The tables and findings are those of the command. Unlike the command, it reads neither
``pyproject.toml`` nor the rules of installed packages: what is checked is what the call says.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from analyze.baseline.comparing import compared
from analyze.baseline.file import read_baseline
from analyze.cache.reading import CacheMode, checked_mode, mode_of_environment
from analyze.engine.loading import configured, load_rules
from analyze.engine.result import LEVELS, Finding, Level, TraceReport
from analyze.engine.rule import Rule
from analyze.engine.run import run_rules
from analyze.engine.selection import Selection
from analyze.engine.values import Value
from analyze.errors import AnalyzeError, NothingToCheckError
from analyze.report import stored_result
from analyze.report.finding_words import closing_line
from analyze.report.formats import FORMATS, Rendering, render
from analyze.report.html_repr import report_html, trace_html
from analyze.report.summary import summarise
from analyze.report.text import render_report
from analyze.report.views import with_views
from analyze.tables import build, coverage
from analyze.tables.catalogue import TABLES
from analyze.words import closest, counted, inert_to_ci, printable

AnyPath = str | os.PathLike[str]

_REPR_FINDINGS = 10


class _Table:
    """A table of the catalogue as an attribute of :class:`Trace`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.__doc__ = f"{TABLES[name].meaning}; see ``analyze columns {name}``."

    def __get__(self, trace: "Trace", owner: type) -> pl.DataFrame:
        return trace.table(self.name)


class Trace:
    """One trace with its documented tables, as polars frames.

    Each table is an attribute; ``analyze columns`` documents them. Times are float microseconds
    from the trace start, sizes bytes, shares 0 to 1, unknown values null. Rows of GPU work belong
    to the op, region and forward that launched them.
    """

    gpu_ops = _Table()
    kernels = _Table()
    copies = _Table()
    ops = _Table()
    api_calls = _Table()
    launches = _Table()
    syncs = _Table()
    gaps = _Table()
    memory = _Table()
    regions = _Table()
    forwards = _Table()
    steps = _Table()
    calls = _Table()
    trace = _Table()

    def __init__(self, built: build.Trace) -> None:
        """Wrap the tables of a trace; use :func:`load`."""
        self._built = built

    @property
    def name(self) -> str:
        """The path it was read from."""
        return self._built.name

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(TABLES)

    @property
    def forward_is(self) -> str:
        """What a forward is in it: the name of an annotation, ``ProfilerStep`` or ``trace``."""
        return self._built.forward_source

    @property
    def coverage(self) -> dict[str, Any]:
        """What was recorded, and how much of the GPU work is linked to what launched it."""
        return coverage.coverage(self._built)

    @property
    def quality(self) -> dict[str, Any]:
        """How well the file could be read, and what in it is odd."""
        return coverage.quality(self._built)

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by name.

        Raises:
            AnalyzeError: there is no such table.
        """
        if name not in TABLES:
            close = closest(name, TABLES)
            hint = f"did you mean '{close}'?" if close else f"there are {', '.join(TABLES)}"
            raise AnalyzeError(f"no table '{printable(name)}'; {hint}")
        return self._built.table(name)

    def summary(self) -> dict[str, Any]:
        """Return what ``analyze summary --format json`` prints."""
        return summarise(self._built)

    def __repr__(self) -> str:
        """Name the file and say how much it holds."""
        gpu_ops = counted(self._built.facts.gpu_ops.height, "GPU op")
        ops = counted(self._built.facts.ops.height, "op")
        return f"<Trace {printable(self.name)}: {ops}, {gpu_ops}, forward is {self.forward_is!r}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return trace_html(self.name, self.coverage, self.quality, self.tables)


class Report(TraceReport):
    """What was found in one trace, findings ranked; plain data that also prints itself."""

    def raise_for(self, level: Level = "error") -> None:
        """Raise if the command would fail with ``--fail-on`` at this level.

        Findings that are benign, intermittent or only informative, and those of preview rules,
        never fail.

        Args:
            level: ``"info"``, ``"warning"`` or ``"error"``.

        Raises:
            FindingsError: there are findings at ``level`` or above.
            NothingToCheckError: no rule came to a verdict, which must not look like success.
            ValueError: there is no such level.
        """
        __tracebackhide__ = True  # pytest shows the line of the test instead
        if level not in LEVELS:
            raise ValueError(f"no level {level!r}: must be one of {', '.join(LEVELS)}")
        if self.why_nothing is not None:
            raise NothingToCheckError(f"{self.trace}: {self.why_nothing}")
        if failing := self.failing(level):
            raise FindingsError(self.trace, level, failing)

    def to_text(self, *, verbose: bool = False) -> str:
        """Return the text that ``analyze check`` prints, ``verbose`` or not.

        As there, a name that a CI runner would take for a command has a backslash in it.
        """
        return render_report(self, verbose=verbose)

    def to_json(self) -> str:
        """Return the JSON that ``analyze check --format json`` prints.

        ``analyze schema`` documents its keys; :func:`read_results` reads it back.
        """
        return self.render("json")

    def render(self, format: str, *, verbose: bool = False) -> str:  # noqa: A002 - as the option
        """Return the report in a format.

        Args:
            format: as ``--format`` of the command: ``"text"``, ``"json"``, ``"sarif"``, ...
            verbose: all evidence, and the rules that hold.

        Raises:
            ValueError: there is no such format.
        """
        if format not in FORMATS:
            raise ValueError(f"no format {format!r}: must be one of {', '.join(FORMATS)}")
        return render(format, [self], Rendering(verbose))

    def __str__(self) -> str:
        """Return the text that ``analyze check`` prints."""
        return self.to_text()

    def __repr__(self) -> str:
        """Name the file, the tally, and the first findings."""
        lines = [f"<Report {printable(self.trace)}: {closing_line(self)}"]
        lines += map(_in_one_line, self.findings[:_REPR_FINDINGS])
        if len(self.findings) > _REPR_FINDINGS:
            lines.append(f"  and {len(self.findings) - _REPR_FINDINGS} more")
        return inert_to_ci("\n".join(lines) + ">")

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return report_html(self)


class FindingsError(AssertionError):
    """A trace has findings that it must not have.

    Attributes:
        trace: the path the trace was read from.
        level: the level that was asked for.
        findings: those at the level or above, ranked.
    """

    def __init__(self, trace: str, level: Level, findings: Sequence[Finding]) -> None:
        """Put the findings into the message, one after the other."""
        self.trace = trace
        self.level = level
        self.findings = tuple(findings)
        found = counted(len(findings), "finding")
        lines = [f"{printable(trace)}: {found} at or above {level}"]
        for finding in findings:
            lines.append(_in_one_line(finding))
            lines.append(f"    expected: {printable(finding.guess)}")
            if finding.fix:
                lines.append(f"    do: {printable(finding.fix)}")
        super().__init__(inert_to_ci("\n".join(lines)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let test runners send it from one process to another."""
        return type(self), (self.trace, self.level, self.findings)


def load(path: AnyPath, forward: str | None = None, *, cache: CacheMode | None = None) -> Trace:
    """Read a trace and build its tables.

    Args:
        path: what ``torch.profiler`` exported, plain, gzip or zstd; ``"-"`` is standard input.
        forward: the ``record_function`` annotation that encloses one forward. Default: the one that
            ``capture`` writes, else the ``ProfilerStep``, else the whole trace.
        cache: ``"auto"`` reads large traces faster the second time, from a copy in the user's cache
            folder; ``"refresh"`` writes it anew; ``"off"`` does neither. Default: what
            ``ANALYZE_CACHE`` says, else ``"auto"``.

    Raises:
        TraceError: the file is missing, unreadable, or no trace of PyTorch's profiler.
        AnalyzeError: the trace has no annotation named ``forward``, or ``cache`` is no such word.
    """
    mode = mode_of_environment() if cache is None else checked_mode(cache, "cache")
    return Trace(build.load_trace(os.fspath(path), forward=forward, cache=mode))


def check(  # noqa: PLR0913 - each is an option of the command
    trace: Trace | AnyPath,
    *,
    rules: AnyPath | Rule | Sequence[AnyPath | Rule] = (),
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    params: Mapping[str, Mapping[str, Value]] | None = None,
    builtin: bool = True,
    baseline: AnyPath | None = None,
    baseline_tolerance: float = 20,
) -> Report:
    """Run rules on a trace.

    Args:
        trace: a loaded trace, or the path of one.
        rules: rule files and folders of your own, or rules from ``load_rules``, which replace
            the built-in ones of the same code.
        select: run only these: codes, code prefixes, names or categories.
        ignore: do not run these; a more exact ``select`` wins.
        params: thresholds by rule, then by name, e.g. ``{"OCC101": {"min_share": "pct(20)"}}`` for
            what the command takes as ``--set OCC101.min_share=pct(20)``.
        builtin: run the built-in rules as well.
        baseline: a file of known findings, as ``analyze baseline create`` writes it: of these only
            what got worse fails.
        baseline_tolerance: a known finding is worse when it costs this much more than it did, in
            percent; at least 0.

    Raises:
        TraceError: the file cannot be read as a trace of PyTorch's profiler.
        RuleError: a rule file is missing or invalid.
        NothingToCheckError: nothing was recorded in the trace.
        AnalyzeError: ``select`` or ``ignore`` fits no rule, or ``params`` no parameter, or the
            baseline cannot be read.
        ValueError: ``baseline_tolerance`` is negative, infinite or not a number.
    """
    if not 0 <= baseline_tolerance < math.inf:  # not a number: nothing would ever be worse
        raise ValueError(f"baseline_tolerance={baseline_tolerance}: must be a number, 0 or more")
    known = None if baseline is None else read_baseline(Path(baseline))
    given = [rules] if isinstance(rules, str | os.PathLike | Rule) else list(rules)
    paths = [os.fspath(path) for path in given if not isinstance(path, Rule)]
    loaded = {rule.code: rule for rule in load_rules(paths, builtin=builtin, tests=False)}
    loaded |= {rule.code: rule for rule in given if isinstance(rule, Rule)}
    selection = Selection(_selectors(select) or None, leave_out=_selectors(ignore))
    chosen = selection.apply(configured(list(loaded.values()), _by_rule(params or {}), "check()"))
    built = (trace if isinstance(trace, Trace) else load(trace))._built
    if built.is_empty:
        raise built.nothing_recorded()
    # Drawn now and not when they are asked for: the views are small, and a report that could draw
    # them later would keep the whole trace in memory for as long as it lives.
    report = with_views(run_rules(built, chosen), built)
    if known is not None:
        (report,) = compared([report], known, os.fspath(baseline or ""), baseline_tolerance / 100)
    return _as_report(report)


def read_results(path: AnyPath) -> list[Report]:
    """Read reports that were stored as JSON, as ``--from`` of the command does.

    Args:
        path: a file with one result, a list of them, or one a line; ``"-"`` is standard input.

    Raises:
        TraceError: it cannot be read, or is no result that this version knows.
    """
    return [_as_report(stored) for stored in stored_result.read_results(os.fspath(path))]


def _as_report(found: TraceReport) -> Report:
    return Report(**{field.name: getattr(found, field.name) for field in fields(found)})


def _selectors(given: str | Sequence[str]) -> list[str]:
    """Return selectors as a list: a text alone is one of them, not its letters."""
    return [given] if isinstance(given, str) else list(given)


def _by_rule(params: Mapping[str, Mapping[str, Value]]) -> Mapping[str, Mapping[str, Value]]:
    """Return parameters if they are as they should be.

    Raises:
        AnalyzeError: a rule has no mapping of its own, as in the command's ``CODE.name=value``.
    """
    for code, values in params.items():
        if not isinstance(values, Mapping):
            rule, _, name = str(code).partition(".")
            right = f'{{"{rule}": {{"{name or "NAME"}": {values!r}}}}}'
            raise AnalyzeError(f"check(): params are by rule, then by name: write {right}")
    return params


def _in_one_line(finding: Finding) -> str:
    state = finding.severity if finding.state == "mismatch" else finding.state
    return f"  {state} {finding.code} {finding.name}: {printable(finding.message)}"
