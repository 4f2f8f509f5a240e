"""``analyze check``: run the rules on traces and print what they found."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import rich_click as click
from click.exceptions import Exit

from analyze.cli.capture_folders import captures_without_trace
from analyze.cli.expectations import NO_GUESSES, Guesses, read_guesses
from analyze.cli.report_output import ReportOutput, report_output
from analyze.cli.rule_options import LoadedRules, RuleOptions, rule_options
from analyze.cli.traces import (
    cache_option,
    command_names,
    complain,
    find_traces,
    forward_option,
    load_recorded,
    traces_argument,
    worst_exit_code,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from analyze.engine.result import Level, TraceReport
    from analyze.engine.rule import Rule
    from analyze.engine.selection import Selection
    from analyze.tables.build import Trace

FINDINGS = 1
"""Exit code when something at or above --fail-on was found."""


@click.command()
@traces_argument
@report_output
@forward_option
@cache_option
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error", "never"]),
    help="Exit with 1 when a finding is at least this severe. Default: error.",
)
@click.option(
    "--expect",
    "expected",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A guess file, as `analyze guess` writes it, to check beside the rules. Repeatable.",
)
@rule_options
@click.pass_context
def check(
    ctx: click.Context,
    traces: tuple[str, ...],
    out: ReportOutput,
    forward: str | None,
    fail_on: "Level | Literal['never'] | None",
    expected: tuple[Path, ...],
    options: RuleOptions,
) -> None:
    """Print coverage, then findings: expected, observed, where, evidence, action, savings."""
    from analyze.report.views import with_views  # noqa: PLC0415

    loaded = options.load_sound()
    config = loaded.found.config
    codes = [complain(loaded.invalid)] if loaded.invalid else []
    guesses = read_guesses(expected, codes)
    loaded = guesses.beside(loaded)
    rules = _selected(loaded, codes)
    forward = forward or config.forward or guesses.forward
    fail_on = fail_on or config.fail_on or "error"
    reports: list[TraceReport] = []
    for path in find_traces(traces, command_names(ctx), codes, *out.files):
        try:
            trace, report = load_and_check(path, forward, rules, loaded.selection, guesses)
        except AnalyzeError as error:
            codes.append(complain(error))
            continue
        reports.append(with_views(report, trace) if out.needs_views else report)
        codes += [_verdict(report, fail_on), *guesses.unanswered(report, rules)]
    _complain_of_stale_ignores(reports, loaded)
    if reports:
        out.write(reports, captures_without_trace(traces))
    ctx.exit(worst_exit_code(codes))


def _selected(loaded: LoadedRules, codes: list[int]) -> "list[Rule]":
    """Return the rules to run; where there are none, exit."""
    try:
        return loaded.selection.apply(loaded.rules)
    except AnalyzeError as error:
        raise Exit(worst_exit_code([*codes, complain(error)])) from None


def _complain_of_stale_ignores(reports: "list[TraceReport]", loaded: LoadedRules) -> None:
    from analyze.engine.selection import stale  # noqa: PLC0415

    counts: dict[str, int] = {}
    for report in reports:
        for entry in report.ignored:
            counts[entry.code] = counts.get(entry.code, 0) + entry.findings
    for words in stale(loaded.selection.ignores, loaded.rules, counts):
        click.echo(f"analyze: {loaded.found.file}: {words}; remove it", err=True)


def load_and_check(
    path: str,
    forward: str | None,
    rules: "list[Rule]",
    selection: "Selection | None" = None,
    guesses: Guesses = NO_GUESSES,
) -> "tuple[Trace, TraceReport]":
    """Read one trace and run rules on it, those of guesses among them.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        NothingToCheckError: nothing was recorded in it.
    """
    from analyze.engine.run import run_rules  # noqa: PLC0415
    from analyze.engine.selection import EVERYTHING  # noqa: PLC0415

    trace = load_recorded(path, forward)
    return trace, guesses.explained(run_rules(trace, rules, selection or EVERYTHING), trace)


def _verdict(report: "TraceReport", fail_on: "Level | Literal['never']") -> int:
    if report.why_nothing is not None:
        return complain(NothingToCheckError(f"{report.trace}: {report.why_nothing}"))
    if fail_on == "never":
        return 0
    return FINDINGS if report.failing(fail_on) else 0
