"""``analyze rules show``: a rule file as it was written."""

from pathlib import Path

import click

from analyze.cli.completing import complete_rule
from analyze.cli.help_page import LOADED_CODES, Command, Example, Page
from analyze.cli.rule_options import rules_option
from analyze.cli.rules.choosing import load_all


@click.command(
    cls=Command,
    page=Page(
        examples=(Example("analyze rules show COPY101", "a built-in rule, as an example"),),
        exit_codes=LOADED_CODES,
        see_also=(
            "analyze explain",
            "analyze rules list",
        ),
    ),
)
@click.argument("rule", metavar="CODE", shell_complete=complete_rule)
@rules_option
def show(rule: str, rule_paths: tuple[Path, ...]) -> None:
    """Print the file of the rule CODE (or of that name), its path in a comment above."""
    from analyze.engine.selection import find_rule  # noqa: PLC0415
    from analyze.words import visible  # noqa: PLC0415

    file = find_rule(rule, load_all(rule_paths).rules).file
    text = Path(file).read_text(encoding="utf-8-sig")
    for line in (f"# {file}", *text.splitlines()):
        click.echo(visible(line))
