"""``analyze check``: run the rules on traces and print what they found."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click
from click.exceptions import Exit

from analyze.cli.baseline_options import (
    Known,
    baseline_option,
    read_known,
    tolerance_of,
    tolerance_option,
)
from analyze.cli.capture_folders import captures_without_trace
from analyze.cli.completing import complete_files
from analyze.cli.expectations import NO_GUESSES, Guesses, read_guesses
from analyze.cli.forward import Forward, chosen_forward
from analyze.cli.help_page import CHECK_CODES, FIND, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.report_output import ReportOutput, report_output
from analyze.cli.rule_options import LoadedRules, RuleOptions, rule_options
from analyze.cli.stored import from_option, read_stored, refuse_misfits
from analyze.cli.traces import (
    INPUTS,
    cache_option,
    command_names,
    complain,
    find_traces,
    forward_option,
    load_recorded,
    refuse_overwriting,
    worst_exit_code,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyze.engine.result import Level, TraceReport
    from analyze.engine.rule import Rule
    from analyze.engine.selection import Selection
    from analyze.tables.build import Trace

    FailOn: TypeAlias = Level | Literal["never"]

FINDINGS = 1
"""Exit code when something at or above --fail-on was found."""


@click.command(
    cls=Command,
    panel=FIND,
    page=Page(
        examples=(
            Example("analyze trace.json.gz", "findings of one trace, worst first"),
            Example(
                "analyze captures --format json --output report.json",
                "every trace in a folder, as JSON",
            ),
            Example(
                "analyze trace.json.gz --select ATTN,COPY101 --fail-on warning", "some rules, in CI"
            ),
            Example(
                "analyze trace.json.gz --baseline baseline.json", "only what is new or got worse"
            ),
        ),
        exit_codes=CHECK_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze guess",
            "analyze baseline",
            "analyze explain",
            "analyze rules list",
        ),
    ),
)
@click.argument("traces", metavar="[TRACE...]", nargs=-1, shell_complete=complete_files)
@from_option
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
@baseline_option
@tolerance_option
@rule_options
@click.pass_context
def check(
    ctx: click.Context,
    traces: tuple[str, ...],
    stored: tuple[str, ...],
    out: ReportOutput,
    forward: str | None,
    fail_on: "FailOn | None",
    expected: tuple[Path, ...],
    baseline: Path | None,
    tolerance: float | None,
    options: RuleOptions,
) -> None:
    """Print coverage, then findings: expected, observed, where, evidence, action, savings.

    TRACE is what torch.profiler wrote, a folder of traces, or `-` for standard input; --from takes
    stored results instead. Findings are ranked by severity and by what could be saved; what the
    trace cannot answer is said, too. The code of the exit is that of the worst trace: 4, 3, 1, 2, 0
    in this order.
    """
    refuse_misfits(ctx, traces, stored)
    codes: list[int] = []
    failures: dict[str, str] = {}

    def complain_of(argument: str, error: AnalyzeError) -> int:
        failures[argument] = str(error)
        return complain(error)

    if stored:
        refuse_overwriting(stored, *out.files, what="results")
        found = options.configuration(*out.files)
        file, share = baseline or found.baseline, tolerance_of(tolerance, found.config)
        known = read_known(file, share, *out.files)
        results = read_stored(stored, codes, complain_of)
        results[:1] = [_of_the_run(report, (), failures) for report in results[:1]]
        if not results:
            out.write_none(failures)
        ctx.exit(_show(results, known, fail_on or found.config.fail_on, out, codes))
    refuse_overwriting(expected, *out.files, what=INPUTS)
    loaded = options.load_sound(*out.files)
    config = loaded.found.config
    if loaded.invalid:
        codes.append(complain(loaded.invalid))
    guesses = read_guesses(expected, codes)
    only_guesses = guesses.invalid and bool(loaded.selection.select)
    loaded = guesses.beside(loaded)
    if only_guesses and not loaded.selection.select:
        ctx.exit(worst_exit_code(codes))
    rules = _selected(loaded, codes)
    encloses = chosen_forward(forward, loaded.found, guesses.forward)
    file, share = baseline or loaded.found.baseline, tolerance_of(tolerance, config)
    known = read_known(file, share, *out.files)
    reports: list[TraceReport] = []
    names = command_names(ctx)
    for path in find_traces(traces, names, codes, *out.files, on_error=complain_of):
        try:
            trace, report = load_and_check(path, encloses, rules, loaded.selection, guesses)
        except AnalyzeError as error:
            codes.append(complain_of(path, error))
            continue
        reports.append(_with_views(report, trace) if out.needs_views else report)
        codes += guesses.unanswered(report, rules)
    _complain_of_stale_ignores(reports, loaded)
    reports[:1] = [_of_the_run(report, traces, failures) for report in reports[:1]]
    if not reports:
        out.write_none(failures)
    ctx.exit(_show(reports, known, fail_on or config.fail_on, out, codes))


def _with_views(report: "TraceReport", trace: "Trace") -> "TraceReport":
    from analyze.report.views import with_views  # noqa: PLC0415

    return with_views(report, trace)


def _of_the_run(
    report: "TraceReport", arguments: tuple[str, ...], failures: dict[str, str]
) -> "TraceReport":
    """Return the first report of a run with what is missing from the run.

    Args:
        report: the first one.
        arguments: as given.
        failures: why traces could not be checked.
    """
    from analyze.engine.result import Unread  # noqa: PLC0415

    return dataclasses.replace(
        report,
        uncaptured=(*report.uncaptured, *captures_without_trace(arguments)),
        unread=(*report.unread, *(Unread(trace, message) for trace, message in failures.items())),
    )


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
    forward: Forward | None,
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


def _show(
    reports: "Sequence[TraceReport]",
    known: Known,
    fail_on: "FailOn | None",
    out: ReportOutput,
    codes: list[int],
) -> int:
    """Write the reports beside what is known, and return the exit code of the run."""
    compared = known.beside(reports)
    codes += [_verdict(report, fail_on or "error") for report in compared]
    if compared:
        out.write(compared)
    return worst_exit_code(codes)


def _verdict(report: "TraceReport", fail_on: "FailOn") -> int:
    if report.why_nothing is not None:
        return complain(NothingToCheckError(f"{report.trace}: {report.why_nothing}"))
    if fail_on == "never":
        return 0
    return FINDINGS if report.failing(fail_on) else 0
