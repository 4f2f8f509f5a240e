"""``analyze trim``: a smaller trace of chosen steps, with names that may be shown to others."""

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyze.cli.completing import complete_files, complete_rule
from analyze.cli.forward import Forward, chosen_forward
from analyze.cli.help_page import FILE_CODES, SHARE, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.one_trace import one_trace
from analyze.cli.rule_options import FINDING_WORDS, LoadedRules, RuleOptions, rule_options
from analyze.cli.traces import (
    STANDARD_INPUT,
    cache_option,
    forward_option,
    load_recorded,
    trace_output_option,
)
from analyze.errors import AnalyzeError
from analyze.words import visible

if TYPE_CHECKING:
    from analyze.engine.result import Finding
    from analyze.engine.rule import Rule
    from analyze.tables.build import Trace
    from analyze.trim.selection import Selected
    from analyze.trim.trimming import Rewriting, TrimReport

_MAX_CONTEXT_MS = 1e9
_NS_IN_MS = 1_000_000


@click.command(
    cls=Command,
    panel=SHARE,
    page=Page(
        examples=(
            Example(
                "analyze trim trace.json.gz -o small.json.gz --forwards 0", "the first forward"
            ),
            Example(
                "analyze trim trace.json.gz -o shown.json.gz --around COPY101 --anonymise",
                "a finding, with names that may be shown",
            ),
        ),
        exit_codes=FILE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze annotate",
            "analyze open",
        ),
    ),
)
@click.argument("trace", shell_complete=complete_files)
@trace_output_option
@click.option("--steps", metavar="N-M", help="ProfilerSteps by number: 3, 2-4 or 2,4.")
@click.option("--forwards", metavar="N-M", help="Forwards, counted from 0: 0, 0-1 or 0,2.")
@click.option(
    "--between", metavar="T-T", help="A time from the trace start on the host, e.g. 10ms-20ms."
)
@click.option(
    "--around",
    metavar="FINDING",
    shell_complete=complete_rule,
    help=f"What is around a finding: {FINDING_WORDS}.",
)
@click.option(
    "--context",
    "context_ms",
    type=click.FloatRange(0, _MAX_CONTEXT_MS),
    metavar="MS",
    help="With --around: milliseconds before and after. Default: the whole forward"
    " around it, and 5 ms before and after where there is none.",
)
@click.option(
    "--places",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="With --around: how many of the finding's places, the first of its evidence first.",
)
@click.option(
    "--anonymise",
    is_flag=True,
    help="Replace every name, path and text that is not known to be torch's or a GPU library's.",
)
@click.option(
    "--keep",
    "kept_names",
    multiple=True,
    metavar="NAME",
    help="With --anonymise: leave this name as it is. Repeatable.",
)
@forward_option
@cache_option
@rule_options
@click.pass_context
def trim(
    ctx: click.Context,
    /,
    trace: str,
    output: Path,
    anonymise: bool,
    kept_names: tuple[str, ...],
    forward: str | None,
    options: RuleOptions,
    **chosen: Any,
) -> None:
    """Write the part of TRACE that is asked for, with everything that belongs to it.

    On the host all that overlaps the kept time is kept, whole; GPU work is kept with its launch.
    Numbers are copied digit by digit. With --anonymise alone everything is kept. What was kept of
    what stands in the written trace, and on standard error.
    """
    from analyze.report.files import open_descriptor  # noqa: PLC0415
    from analyze.trace.source import STDIN_NAME  # noqa: PLC0415
    from analyze.trim import trimming  # noqa: PLC0415

    if kept_names and not anonymise:
        raise click.UsageError("--keep needs --anonymise")
    loaded = options.load(output) if chosen["around"] is not None else None
    choose = _choice(chosen, loaded, anonymise=anonymise)
    encloses = chosen_forward(forward, options.configuration(output))
    with trimming.rereadable(one_trace(ctx, trace, output)) as path:
        read = load_recorded(path, encloses)
        rewriting = _anonymiser(kept_names) if anonymise else None
        source = STDIN_NAME if trace == STANDARD_INPUT else None
        chosen_part, finding = choose(read)
        report = trimming.trim(read, output, chosen_part, rewriting, source)
    click.echo(_text(read, report), err=True, nl=False)
    if finding and loaded and output.is_file() and open_descriptor(output) is None:
        _warn_if_gone(finding, output, encloses, loaded.rules, anonymised=anonymise)


def _warn_if_gone(
    finding: "Finding",
    output: Path,
    forward: Forward | None,
    rules: "list[Rule]",
    *,
    anonymised: bool,
) -> None:
    """Say so where the finding that was trimmed around is not found in what was written.

    A rule may rest on more than the kept time: on the median of all launches, say. Of an anonymised
    trace only the code is looked for, since the names that a rule groups by are other ones.
    """
    from analyze.engine.run import run_rules  # noqa: PLC0415
    from analyze.tables.build import load_trace  # noqa: PLC0415

    own = [rule for rule in rules if rule.code == finding.code]
    name = None if anonymised or forward is None else forward.name
    try:
        found = run_rules(load_trace(output, forward=name), own).findings
    except AnalyzeError as error:
        click.echo(f"analyze: {visible(str(error))}", err=True)
        found = ()
    if anonymised:
        is_found = any(each.code == finding.code for each in found)
    else:
        is_found = any(each.fingerprint == finding.fingerprint for each in found)
    if not is_found:
        click.echo(
            f"analyze: {output}: {finding.code} is not found in it: the rule rests on more than was"
            " kept; keep more with --context, --places or --forwards",
            err=True,
        )


def _choice(
    chosen: dict[str, Any], rules: LoadedRules | None, *, anonymise: bool
) -> "Callable[[Trace], tuple[Selected | None, Finding | None]]":
    """Return what finds the kept time in a trace, and the finding that it is around, if any.

    Raises:
        UsageError: not one way to choose is given, or it is written wrongly.
    """
    from analyze.trim import selection  # noqa: PLC0415

    ways = [way for way in ("steps", "forwards", "between", "around") if chosen[way] is not None]
    if len(ways) > 1:
        raise click.UsageError(f"--{ways[0]} and --{ways[1]}: choose one of them")
    if chosen["context_ms"] is not None and ways != ["around"]:
        raise click.UsageError("--context needs --around")
    if chosen["context_ms"] is not None and isnan(chosen["context_ms"]):
        raise click.UsageError("--context: nan is no number of milliseconds")
    if not ways and not anonymise:
        raise click.UsageError(
            "say what to keep: --steps, --forwards, --between or --around; or --anonymise"
        )
    match ways:
        case ["steps"]:
            steps = _parsed(selection.parse_ranges, "steps", chosen)
            return lambda trace: (selection.select_steps(trace, steps), None)
        case ["forwards"]:
            forwards = _parsed(selection.parse_ranges, "forwards", chosen)
            return lambda trace: (selection.select_forwards(trace, forwards), None)
        case ["between"]:
            window = _parsed(selection.parse_between, "between", chosen)
            return lambda trace: (selection.select_between(trace, window), None)
        case ["around"]:
            return lambda trace: _around(trace, chosen, rules)
        case _:
            return lambda _: (None, None)


def _parsed(parse: Callable[[str], Any], way: str, chosen: dict[str, Any]) -> Any:
    try:
        return parse(chosen[way])
    except ValueError as error:
        raise click.UsageError(f"--{way}: {error}") from None


def _around(
    trace: "Trace", chosen: dict[str, Any], rules: LoadedRules | None
) -> "tuple[Selected, Finding]":
    from analyze.engine.chosen_finding import chosen_number  # noqa: PLC0415
    from analyze.engine.run import run_rules  # noqa: PLC0415
    from analyze.trim.selection import select_around  # noqa: PLC0415

    assert rules is not None  # noqa: S101 - loaded where --around is given
    selection = rules.selection
    report = run_rules(trace, selection.apply(rules.rules), selection)
    finding = report.findings[chosen_number(report, chosen["around"]) - 1]
    context = chosen["context_ms"]
    context_ns = None if context is None else round(context * _NS_IN_MS)
    return select_around(trace, finding, context_ns, chosen["places"]), finding


def _anonymiser(kept_names: tuple[str, ...]) -> "Rewriting":
    from analyze.trim.anonymise import Anonymiser  # noqa: PLC0415

    return Anonymiser(frozenset(kept_names))


def _text(trace: "Trace", report: "TrimReport") -> str:
    """Say what was kept, and what was wrong with the file."""
    from rich.text import Text  # noqa: PLC0415

    from analyze.report.console import (  # noqa: PLC0415
        buffer_console,
        print_pairs,
        rendered,
    )
    from analyze.report.coverage_text import quality_sentences  # noqa: PLC0415
    from analyze.tables.coverage import coverage, quality  # noqa: PLC0415
    from analyze.trim.words import trim_lines  # noqa: PLC0415
    from analyze.words import printable  # noqa: PLC0415

    console = buffer_console()
    console.print(Text(printable(report.output)))
    notes = [("note", text) for text in quality_sentences(coverage(trace), quality(trace))]
    print_pairs(console, [*trim_lines(report), *notes])
    return rendered(console)
