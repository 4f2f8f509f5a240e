"""``analyze baseline``: findings that are known, in a file."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from analyze.cli.baseline_options import tolerance_of, tolerance_option
from analyze.cli.check import load_and_check
from analyze.cli.forward import chosen_forward
from analyze.cli.help_page import (
    COLOURS,
    COMPARE,
    FILE_CODES,
    PRINT_CODES,
    TRACE_ENVIRONMENT,
    Command,
    Example,
    Group,
    Page,
)
from analyze.cli.rule_options import LoadedRules, RuleOptions, rule_options
from analyze.cli.traces import (
    cache_option,
    command_names,
    complain,
    emit,
    find_traces,
    format_option,
    forward_option,
    traces_argument,
    worst_exit_code,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from analyze.baseline.updating import Acceptance
    from analyze.config import ConfigFile
    from analyze.engine.result import TraceReport

_DEFAULT = Path("baseline.json")

file_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The baseline file to write. Default: `baseline` of the configuration, else {_DEFAULT}.",
)
reason_option = click.option(
    "--reason", metavar="TEXT", help="Why the findings are accepted; kept in the file."
)


@click.group(
    cls=Group,
    panel=COMPARE,
)
def baseline() -> None:
    """Note the findings that are known, so that a check fails on new and worse ones only.

    `analyze TRACE --baseline FILE` names the file, or `baseline = "FILE"` in [tool.kinetolint] of
    pyproject.toml. A known finding is worse when its severity rose, when it costs more than it did
    by --baseline-tolerance, or when it is seen in more of the units.
    """


@baseline.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze baseline create trace.json.gz", "everything that is found today"),
            Example(
                "analyze baseline create captures -o known.json --reason 'until 2.0'",
                "of a folder, with the reason",
            ),
        ),
        exit_codes=FILE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=("analyze check --baseline", "analyze baseline update"),
    ),
)
@traces_argument
@file_option
@reason_option
@click.option(
    "--by-trace",
    is_flag=True,
    help="Know a finding in trace files of the same name only. Traces of capture need no name.",
)
@forward_option
@cache_option
@rule_options
@click.pass_context
def create(
    ctx: click.Context,
    traces: tuple[str, ...],
    output: Path | None,
    reason: str | None,
    by_trace: bool,
    forward: str | None,
    options: RuleOptions,
) -> None:
    """Check traces and write a file of everything that is found, benign findings aside.

    A finding is known by its rule and what it is about, in traces of any name; in traces that
    capture wrote, by the variant and the workload as well. A file that exists is never overwritten.
    """
    from analyze.baseline.file import write_baseline  # noqa: PLC0415
    from analyze.baseline.updating import create as make  # noqa: PLC0415
    from analyze.words import counted  # noqa: PLC0415

    loaded = options.load()
    file = _file(output, loaded.found)
    if file.exists() or file.is_symlink():
        raise AnalyzeError(f"{file}: exists already; `analyze baseline update` changes it")
    reports = _reports(ctx, traces, forward, loaded, file)
    made = make(reports, _acceptance(reason), by_trace=by_trace)
    write_baseline(made, file)
    found, checked = len(made.findings), counted(len(reports), "trace")
    click.echo(f"Wrote {file}: {counted(found, 'known finding')} of {checked}")
    anywhere = sum(entry.scope is None for entry in made.findings)
    if anywhere:
        known = counted(anywhere, "of them is known", "of them are known")
        click.echo(f"{known} in any trace, whatever its name; --by-trace knows them by file name")


@baseline.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze baseline update after.json.gz", "drop what was repaired"),
            Example(
                "analyze baseline update trace.json.gz --accept --reason 'needs PyTorch 2.9'",
                "take in what is new, with the reason",
            ),
        ),
        exit_codes=FILE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=("analyze baseline show", "analyze check --baseline"),
    ),
)
@traces_argument
@file_option
@click.option(
    "--accept", is_flag=True, help="Take in what is new and worse, too; not only what is better."
)
@reason_option
@tolerance_option
@forward_option
@cache_option
@rule_options
@click.pass_context
def update(
    ctx: click.Context,
    traces: tuple[str, ...],
    output: Path | None,
    accept: bool,
    reason: str | None,
    tolerance: float | None,
    forward: str | None,
    options: RuleOptions,
) -> None:
    """Check traces and remove from the file what is no longer found; note what got better.

    What is new or worse is taken in only with --accept. An entry stays as it is where no trace can
    answer its rule, a trace was cut off, fewer traces are checked than the file was made from, or
    these share none of its findings but have others, as another program's do: that it was not found
    proves nothing then. Reasons are kept; further ones can be written into
    the file by hand.
    """
    from analyze.baseline.file import read_baseline, write_baseline  # noqa: PLC0415
    from analyze.baseline.updating import update as bring_up_to_date  # noqa: PLC0415
    from analyze.report.baseline_text import render_update  # noqa: PLC0415

    loaded = options.load()
    file = _file(output, loaded.found)
    before = read_baseline(file)
    reports = _reports(ctx, traces, forward, loaded, file)
    share = tolerance_of(tolerance, loaded.found.config)
    done = bring_up_to_date(before, reports, share, _acceptance(reason), accept=accept)
    write_baseline(done.baseline, file)
    emit(render_update(str(file), done), None)


@baseline.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze baseline show", "what is known here"),
            Example("analyze baseline show baseline.json --format json", "for scripts"),
        ),
        exit_codes=PRINT_CODES,
        environment=COLOURS,
        see_also=("analyze baseline update",),
    ),
)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@format_option("text", "json", help_text="How to print.")
def show(file: Path | None, output_format: str) -> None:
    """Print the known findings of FILE, by default that of the configuration."""
    from analyze.baseline.file import read_baseline  # noqa: PLC0415
    from analyze.config import find_config  # noqa: PLC0415

    file = file or _file(None, find_config(Path.cwd()))
    known = read_baseline(file)
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        emit(to_json([known.to_dict()]), None)
        return
    from analyze.report.baseline_text import render_baseline  # noqa: PLC0415
    from analyze.report.console import wants_color  # noqa: PLC0415

    emit(render_baseline(str(file), known, color=wants_color()), None)


def _file(given: Path | None, found: "ConfigFile") -> Path:
    return given or found.baseline or _DEFAULT


def _acceptance(reason: str | None) -> "Acceptance":
    from analyze.baseline.updating import Acceptance  # noqa: PLC0415

    return Acceptance(date.today().isoformat(), reason)


def _reports(
    ctx: click.Context,
    traces: Sequence[str],
    forward: str | None,
    loaded: LoadedRules,
    file: Path,
) -> "list[TraceReport]":
    """Check all traces; where one cannot be checked, end the command, since nobody would know.

    Raises:
        AnalyzeError: no rule is left to run.
    """
    rules = loaded.selection.apply(loaded.rules)
    encloses = chosen_forward(forward, loaded.found)
    reports, codes = [], [0]
    for path in find_traces(traces, command_names(ctx), codes, file):
        try:
            _, report = load_and_check(path, encloses, rules, loaded.selection)
            _complain_of_failures(report, file)
            reports.append(report)
        except AnalyzeError as error:
            codes.append(complain(error))
    if any(codes):
        complain(AnalyzeError(f"{file}: not written, since not every trace could be checked"))
        raise Exit(worst_exit_code(codes))
    return reports


def _complain_of_failures(report: "TraceReport", file: Path) -> None:
    """Say which rules failed: what they would have found is not known.

    Raises:
        NothingToCheckError: no rule came to a verdict, so that nothing is known.
    """
    if report.why_nothing is not None:
        raise NothingToCheckError(f"{report.trace}: {report.why_nothing}")
    for failure in report.errors:
        complain(
            AnalyzeError(
                f"{report.trace}: {failure.code} {failure.name} failed, so {file} does not hold"
                f" what it would find: {failure.message}"
            )
        )
