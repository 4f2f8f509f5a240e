"""``analyze rules check``: validate rule files without a trace."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.help_page import VALID_CODES, Command, Example, Page
from analyze.cli.traces import complain

if TYPE_CHECKING:
    from analyze.engine.problems import InvalidRulesError


@click.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze rules check softmax.yaml", "a rule of your own"),
            Example("analyze rules check", "the built-in ones"),
        ),
        exit_codes=VALID_CODES,
        see_also=(
            "analyze rules test",
            "analyze rules new",
        ),
    ),
)
@click.argument("paths", metavar="[PATH...]", nargs=-1, type=click.Path(path_type=Path))
@click.pass_context
def check(ctx: click.Context, paths: tuple[Path, ...]) -> None:
    """Check rule files and folders without a trace: keys, names, types, on empty tables.

    Every problem is shown at once, with file, line, column and what to do. Without PATH the
    built-in rules are checked.
    """
    from analyze.engine.loading import lies_in, load_rules  # noqa: PLC0415
    from analyze.engine.problems import InvalidRulesError  # noqa: PLC0415
    from analyze.words import counted  # noqa: PLC0415

    try:
        rules = load_rules(paths, installed=True)
    except InvalidRulesError as error:
        complain(error)
        click.echo(_tally(error), err=True)
        ctx.exit(error.exit_code)
    checked = sum(not paths or lies_in(rule.file, paths) for rule in rules)
    if not checked:
        raise click.UsageError("there are no rules: " + " ".join(map(str, paths)))
    click.echo(f"{counted(checked, 'rule')} checked, no problems")


def _tally(error: "InvalidRulesError") -> str:
    from analyze.words import counted  # noqa: PLC0415

    files = len({problem.where.file for problem in error.problems})
    return f"{counted(len(error.problems), 'problem')} in {counted(files, 'file')}"
