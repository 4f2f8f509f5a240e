"""``analyze rules test``: run the tests inside rules."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.help_page import COLOURS, VALID_CODES, Command, Example, Page
from analyze.cli.traces import format_option
from analyze.errors import NothingToCheckError, RuleError

if TYPE_CHECKING:
    from analyze.engine.rule import Rule

FAILED = RuleError.exit_code


@click.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze rules test softmax.yaml", "the tests in a rule"),
            Example(
                "analyze rules test softmax.yaml --mutate", "thresholds that no test notices, too"
            ),
        ),
        exit_codes=VALID_CODES,
        environment=COLOURS,
        see_also=(
            "analyze rules check",
            "analyze explain",
        ),
    ),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--require-tests",
    is_flag=True,
    help="Every rule must have a test in which it fires and one in which it stays silent; with"
    " --mutate, some test must also notice every threshold.",
)
@click.option(
    "--mutate",
    is_flag=True,
    help="Nudge every threshold up and down by half and name those that no test notices. It does"
    " not change the exit code without --require-tests.",
)
@format_option("text", "json")
@click.pass_context
def test(
    ctx: click.Context,
    paths: tuple[Path, ...],
    require_tests: bool,
    mutate: bool,
    output_format: str,
) -> None:
    """Run the tests inside the rules of PATH (files or folders); of the built-in ones without it.

    A test fails, too, that passes although it is marked as a known gap.
    """
    from analyze.engine.mutation import thresholds, unnoticed_thresholds  # noqa: PLC0415
    from analyze.engine.rule_tests import Samples, missing_tests, run_rule_tests  # noqa: PLC0415
    from analyze.report.console import wants_color  # noqa: PLC0415
    from analyze.report.rule_tests import (  # noqa: PLC0415
        RuleTestReport,
        rule_tests_as_json,
        rule_tests_as_text,
    )

    rules, samples = _rules_in(paths), Samples()
    report = RuleTestReport(
        names={rule.code: rule.name for rule in rules},
        outcomes=run_rule_tests(rules, samples),
        missing=[problem for rule in rules if require_tests for problem in missing_tests(rule)],
        thresholds=sum(len(thresholds(rule)) for rule in rules) if mutate else None,
        unnoticed=unnoticed_thresholds(rules, samples) if mutate else (),
    )
    if output_format == "json":
        click.echo(rule_tests_as_json(report), nl=False)
    else:
        click.echo(rule_tests_as_text(report, color=wants_color()), nl=False, color=True)
    lacking = require_tests and bool(report.missing or report.unnoticed)
    ctx.exit(FAILED if report.failed or lacking else 0)


def _rules_in(paths: tuple[Path, ...]) -> "list[Rule]":
    """Return the rules of files and folders, without those of packs that they extend.

    Raises:
        NothingToCheckError: there are none.
    """
    from analyze.engine.loading import lies_in, load_rules  # noqa: PLC0415

    rules = load_rules(paths, builtin=not paths)
    if paths:
        rules = [rule for rule in rules if lies_in(rule.file, paths)]
    if not rules:
        named = ", ".join(map(str, paths))
        raise NothingToCheckError(f"{named}: there are no rules to test")
    return rules
