"""``analyze rules show``: a rule file as it was written."""

from pathlib import Path

import rich_click as click

from analyze.cli.rule_options import rules_option
from analyze.cli.rules.choosing import load_all


@click.command()
@click.argument("rule", metavar="CODE")
@rules_option
def show(rule: str, rule_paths: tuple[Path, ...]) -> None:
    """Print the file of the rule CODE (or of that name), its path in a comment above."""
    from analyze.engine.selection import find_rule  # noqa: PLC0415
    from analyze.words import visible  # noqa: PLC0415

    file = find_rule(rule, load_all(rule_paths).rules).file
    text = Path(file).read_text(encoding="utf-8-sig")
    for line in (f"# {file}", *text.splitlines()):
        click.echo(visible(line))
