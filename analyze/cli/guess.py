"""``analyze guess``: guess what a trace holds, then see where that was wrong."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.completing import complete_files
from analyze.cli.forward import Forward, chosen_forward, guessed_forward
from analyze.cli.guess_questions import ask_all
from analyze.cli.help_page import FIND, GUESS_CODES, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.one_trace import one_trace
from analyze.cli.traces import (
    STANDARD_INPUT,
    cache_option,
    emit,
    format_option,
    forward_option,
    load_recorded,
)
from analyze.errors import AnalyzeError, NothingToCheckError

if TYPE_CHECKING:
    from analyze.guess.rules import Guessed
    from analyze.tables.build import Trace

DEFAULT_FILE = Path("guess.yaml")


def _print_schema(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted or ctx.resilient_parsing:
        return
    from analyze.guess.schema import guess_schema  # noqa: PLC0415
    from analyze.report.json_writer import to_json  # noqa: PLC0415

    emit(to_json([guess_schema()]), None)
    ctx.exit()


@click.command(
    cls=Command,
    panel=FIND,
    page=Page(
        examples=(
            Example("analyze guess trace.json.gz --expect good.yaml", "compare with a guess file"),
            Example(
                "analyze guess after.json.gz --accept -o accepted.yaml",
                "take the guesses from a known-good trace",
            ),
        ),
        exit_codes=GUESS_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=(
            "analyze check --expect",
            "analyze diff",
        ),
    ),
)
@click.argument("trace", metavar="TRACE", shell_complete=complete_files)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The guess file to write; one that exists is never overwritten. Default: {DEFAULT_FILE}.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="Ask nothing: write what TRACE holds, as one that is known to be good.",
)
@click.option(
    "--expect",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Ask nothing and write nothing: compare TRACE with this guess file.",
)
@forward_option
@cache_option
@format_option("text", "json", help_text="How to print.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Rows of each list as text. Default: 6.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of a guess file and exit.",
)
@click.pass_context
def guess(
    ctx: click.Context,
    trace: str,
    output: Path | None,
    accept: bool,
    expect: Path | None,
    forward: str | None,
    output_format: str,
    limit: int | None,
) -> None:
    """Ask what TRACE should hold, note it in guess.yaml, and show where the guess was wrong.

    Every question can be skipped. What is shown first is what surprises most: how often a number
    would have to double or halve to be as guessed; a wrong word counts by the GPU time at stake.
    Guesses that were right take one line; then comes the GPU time that no guess was about.

    Where standard input is not a terminal, its lines are the answers, one for each question. One
    that cannot be read is left out, and the exit code is 2.

    `analyze TRACE --expect guess.yaml` checks a guess file among the other rules, for CI.
    """
    if accept and expect is not None:
        raise click.UsageError("--accept writes a guess file, --expect reads one: choose one")
    if expect is not None and output is not None:
        raise click.UsageError("--expect writes no guess file; leave out --output")
    if trace == STANDARD_INPUT and not accept and expect is None:
        raise click.UsageError("standard input holds the trace, so nobody can answer: use --expect")
    if expect is not None:
        _compare_with_file(ctx, trace, expect, forward, output_format, limit)
        return
    file = output or DEFAULT_FILE
    _refuse_to_overwrite(file)
    encloses = chosen_forward(forward)
    loaded = load_recorded(one_trace(ctx, trace), encloses)
    if accept:
        _accept(loaded, file, encloses)
        return
    guesses, unread = _ask_and_write(loaded, file, encloses)
    _show(loaded, guesses, str(file), output_format, limit)
    click.echo(f"Written to {file}; check it with `analyze TRACE --expect {file}`.", err=True)
    if unread:
        raise AnalyzeError(
            f"answers that could not be read are not in {file}: {', '.join(unread)}; write them"
            " into it by hand"
        )


def _compare_with_file(
    ctx: click.Context,
    trace: str,
    expect: Path,
    forward: str | None,
    output_format: str,
    limit: int | None,
) -> None:
    from analyze.guess.loading import load_guesses  # noqa: PLC0415

    (file,) = load_guesses([expect])
    encloses = chosen_forward(forward, guessed=guessed_forward([file]))
    loaded = load_recorded(one_trace(ctx, trace), encloses)
    _show(loaded, list(file.guesses), file.path, output_format, limit)


def _refuse_to_overwrite(file: Path) -> None:
    """Check that the guess file can be written, before anybody has answered a question.

    Raises:
        AnalyzeError: it exists, or its folder does not.
    """
    if file.exists() or file.is_symlink():
        raise AnalyzeError(
            f"{file}: exists already; choose another file with -o, remove it, or compare the trace"
            f" with it by --expect {file}"
        )
    if not file.parent.is_dir():
        raise AnalyzeError(f"{file}: there is no folder {file.parent}")


def _accept(trace: "Trace", file: Path, forward: Forward | None) -> None:
    from analyze.guess.accepting import accept as take  # noqa: PLC0415
    from analyze.guess.writing import accepted_as_yaml  # noqa: PLC0415
    from analyze.words import counted  # noqa: PLC0415

    accepted = take(trace)
    if not accepted.values:
        reasons = "; ".join(dict.fromkeys(accepted.left_out.values()))
        raise NothingToCheckError(f"{trace.name}: there is nothing to accept: {reasons}")
    name = None if forward is None else forward.name
    _write_new(file, accepted_as_yaml(accepted, trace, date.today().isoformat(), name))
    left_out = f"; left out: {', '.join(accepted.left_out)}" if accepted.left_out else ""
    click.echo(f"Wrote {file}: {counted(len(accepted.values), 'guess', 'guesses')}{left_out}")


def _ask_and_write(
    trace: "Trace", file: Path, forward: Forward | None
) -> "tuple[list[Guessed], list[str]]":
    """Ask, write the guess file, and return the guesses and what unreadable answers were about.

    Raises:
        AnalyzeError: nothing was guessed, or the input is no text.
    """
    from analyze.guess.loading import parse_guess  # noqa: PLC0415
    from analyze.guess.quantities import QUANTITIES  # noqa: PLC0415
    from analyze.guess.rules import make_guess  # noqa: PLC0415
    from analyze.guess.writing import guesses_as_yaml, what_a_forward_is  # noqa: PLC0415

    has_gpu = not trace.facts.gpu_ops.is_empty()
    if not has_gpu:
        click.echo("No GPU work was recorded in this trace; guess about the CPU.", err=True)
    asked = [q for q in QUANTITIES.values() if q.question and q.about_gpu == has_gpu]
    answers = ask_all(asked, what_a_forward_is(trace))
    if not answers.given:
        raise AnalyzeError(
            "nothing was guessed, so there is nothing to compare and nothing was written; without"
            " a terminal, give the answers as lines on standard input or a file with --expect"
        )
    guesses = [
        make_guess(QUANTITIES[key], parse_guess(QUANTITIES[key], text))
        for key, text in answers.given.items()
    ]
    name = None if forward is None else forward.name
    _write_new(file, guesses_as_yaml(answers.given, trace, date.today().isoformat(), name))
    return guesses, answers.unread


def _write_new(file: Path, text: str) -> None:
    """Write a file that does not exist, whole or not at all.

    Raises:
        AnalyzeError: it has come to exist, or cannot be written.
    """
    from analyze.report.files import write_whole  # noqa: PLC0415

    _refuse_to_overwrite(file)
    write_whole(file, text)


def _show(
    trace: "Trace",
    guesses: "list[Guessed]",
    file: str,
    output_format: str,
    limit: int | None,
) -> None:
    """Print the comparison.

    Raises:
        NothingToCheckError: the trace can answer none of the guesses.
    """
    from analyze.report.guess import compare_guesses  # noqa: PLC0415

    data = compare_guesses(trace, guesses, file)
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        emit(to_json([data]), None)
    else:
        from analyze.report.console import wants_color  # noqa: PLC0415
        from analyze.report.guess_text import DEFAULT_LIMIT, render_guesses  # noqa: PLC0415

        emit(render_guesses(data, limit=limit or DEFAULT_LIMIT, color=wants_color()), None)
    if all(row["state"] in ("unanswerable", "failed") for row in data["guesses"]):
        raise NothingToCheckError(f"{trace.name}: it can answer none of the guesses")
