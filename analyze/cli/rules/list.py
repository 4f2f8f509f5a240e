"""``analyze rules list``: the rules there are."""

from pathlib import Path

import click

from analyze.cli.help_page import LOADED_CODES, Command, Example, Page
from analyze.cli.rule_options import rules_option
from analyze.cli.rules.choosing import load_all
from analyze.cli.traces import format_option


@click.command(
    "list",
    cls=Command,
    page=Page(
        examples=(
            Example("analyze rules list", "every rule with its title"),
            Example(
                "analyze rules list --rules softmax.yaml --format json",
                "with one of your own, as JSON",
            ),
        ),
        exit_codes=LOADED_CODES,
        see_also=(
            "analyze rules show",
            "analyze explain",
        ),
    ),
)
@rules_option
@format_option("text", "json")
def list_rules(rule_paths: tuple[Path, ...], output_format: str) -> None:
    """Print code, name, category, status and title of every rule."""
    from analyze.report.rule_list import rules_as_json, rules_as_text  # noqa: PLC0415

    rules = load_all(rule_paths).rules
    as_wanted = rules_as_json if output_format == "json" else rules_as_text
    click.echo(as_wanted(rules), nl=False)
