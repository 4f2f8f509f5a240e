"""``analyze check``: run the rules on traces and print what they found."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import rich_click as click
from click.exceptions import Exit

from analyze.cli.capture_folders import captures_without_trace
from analyze.cli.expectations import NO_GUESSES, Guesses, read_guesses
from analyze.cli.rule_options import LoadedRules, RuleOptions, rule_options
from analyze.cli.traces import (
    command_names,
    complain,
    emit,
    find_traces,
    load_recorded,
    trace_arguments,
    worst_exit_code,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from analyze.engine.result import Level, TraceReport
    from analyze.engine.rule import Rule
    from analyze.engine.selection import Selection

FINDINGS = 1
"""Exit code when something at or above --fail-on was found."""


@click.command()
@trace_arguments
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
@click.option("-v", "--verbose", is_flag=True, help="All evidence, and what was as guessed.")
@click.pass_context
def check(
    ctx: click.Context,
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
    fail_on: "Level | Literal['never'] | None",
    expected: tuple[Path, ...],
    options: RuleOptions,
    verbose: bool,
) -> None:
    """Print coverage, then findings: expected, observed, where, evidence, action, savings."""
    loaded = options.load_sound()
    config = loaded.found.config
    codes = [complain(loaded.invalid)] if loaded.invalid else []
    guesses = read_guesses(expected, codes)
    loaded = guesses.beside(loaded)
    rules = _selected(loaded, codes)
    forward = forward or config.forward or guesses.forward
    fail_on = fail_on or config.fail_on or "error"
    reports: list[TraceReport] = []
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            report = check_trace(path, forward, rules, loaded.selection, guesses)
        except AnalyzeError as error:
            codes.append(complain(error))
            continue
        reports.append(report)
        codes += [_verdict(report, fail_on), *guesses.unanswered(report, rules)]
    _complain_of_stale_ignores(reports, loaded)
    if reports:
        emit(_render(reports, traces, output_format, verbose=verbose), output)
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


def check_trace(
    path: str,
    forward: str | None,
    rules: "list[Rule]",
    selection: "Selection | None" = None,
    guesses: Guesses = NO_GUESSES,
) -> "TraceReport":
    """Read one trace and run rules on it, those of guesses among them.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        NothingToCheckError: nothing was recorded in it.
    """
    from analyze.engine.run import run_rules  # noqa: PLC0415
    from analyze.engine.selection import EVERYTHING  # noqa: PLC0415

    trace = load_recorded(path, forward)
    return guesses.explained(run_rules(trace, rules, selection or EVERYTHING), trace)


def _verdict(report: "TraceReport", fail_on: "Level | Literal['never']") -> int:
    if report.why_nothing is not None:
        return complain(NothingToCheckError(f"{report.trace}: {report.why_nothing}"))
    if fail_on == "never":
        return 0
    return FINDINGS if report.failing(fail_on) else 0


def _render(
    reports: "list[TraceReport]", arguments: tuple[str, ...], output_format: str, *, verbose: bool
) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json([report.to_dict() for report in reports])
    from analyze.report.captures_text import render_captures  # noqa: PLC0415
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.text import render_report  # noqa: PLC0415

    color = wants_color()
    texts = [render_report(report, verbose=verbose, color=color) for report in reports]
    side_by_side = render_captures(reports, captures_without_trace(arguments), color=color)
    return "\n".join(texts) + side_by_side
