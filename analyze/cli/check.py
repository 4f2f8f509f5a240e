"""``analyze check``: run the rules on traces and print what they found."""

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from analyze.cli.traces import (
    command_names,
    complain,
    emit,
    find_traces,
    load,
    trace_arguments,
    worst_exit_code,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from analyze.engine.result import TraceReport
    from analyze.engine.rule import Rule

FINDINGS = 1
"""Exit code when something at or above --fail-on was found."""


@click.command()
@trace_arguments
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error", "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 when a finding is at least this severe.",
)
@click.option(
    "--rules",
    "rule_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A rule file or a folder of rules, beside the built-in ones. Repeatable.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="CODE.PARAM=VALUE",
    help="Change a rule's threshold for this run, e.g. COPY101.min_bytes=MiB(8). Repeatable.",
)
@click.option("-v", "--verbose", is_flag=True, help="All evidence, and what was as guessed.")
@click.pass_context
def check(
    ctx: click.Context,
    traces: tuple[str, ...],
    output_format: str,
    output: Path | None,
    forward: str | None,
    fail_on: str,
    rule_paths: tuple[Path, ...],
    settings: tuple[str, ...],
    verbose: bool,
) -> None:
    """Print coverage, then findings: expected, observed, where, evidence, action, savings."""
    from analyze.engine.loading import load_rules  # noqa: PLC0415

    rules = load_rules(rule_paths, settings=settings, tests=False)
    reports: list[TraceReport] = []
    codes: list[int] = []
    for path in find_traces(traces, command_names(ctx), codes, output):
        try:
            report = check_trace(path, forward, rules)
        except AnalyzeError as error:
            codes.append(complain(error))
            continue
        reports.append(report)
        codes.append(_verdict(report, fail_on))
    if reports:
        emit(_render(reports, output_format, verbose=verbose), output)
    ctx.exit(worst_exit_code(codes))


def check_trace(path: str, forward: str | None, rules: "list[Rule]") -> "TraceReport":
    """Read one trace and run rules on it.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        NothingToCheckError: nothing was recorded in it.
    """
    from analyze.engine.run import run_rules  # noqa: PLC0415

    trace = load(path, forward)
    if trace.is_empty:
        raise trace.nothing_recorded()
    return run_rules(trace, rules)


def _verdict(report: "TraceReport", fail_on: str) -> int:
    from analyze.engine.result import LEVELS  # noqa: PLC0415

    if report.errors and not report.checked:
        return complain(NothingToCheckError(f"{report.trace}: every rule failed"))
    if not report.checked:
        return complain(NothingToCheckError(f"{report.trace}: {_why_nothing(report)}"))
    if fail_on == "never":
        return 0
    failing = LEVELS[LEVELS.index(fail_on) :]
    bad = any(finding.gates and finding.severity in failing for finding in report.findings)
    return FINDINGS if bad else 0


def _why_nothing(report: "TraceReport") -> str:
    reasons = list(dict.fromkeys(rule.reason for rule in report.not_applicable))
    return f"nothing could be checked: {'; '.join(reasons)}"


def _render(reports: "list[TraceReport]", output_format: str, *, verbose: bool) -> str:
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        return to_json([report.to_dict() for report in reports])
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.text import render_report  # noqa: PLC0415

    color = wants_color()
    return "\n".join(render_report(report, verbose=verbose, color=color) for report in reports)
