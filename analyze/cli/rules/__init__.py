"""``analyze rules``: what there is to know about rules, and the loop in which they are written."""

import click

from analyze.cli.help_page import WRITE, Group
from analyze.cli.rules.check import check
from analyze.cli.rules.docs import docs
from analyze.cli.rules.list import list_rules
from analyze.cli.rules.new import new
from analyze.cli.rules.schema import schema
from analyze.cli.rules.show import show
from analyze.cli.rules.test import test


@click.group(cls=Group, panel=WRITE)
def rules() -> None:
    """List, read, write, check and test rules."""


rules.add_command(check)
rules.add_command(test)
rules.add_command(list_rules)
rules.add_command(new)
rules.add_command(show)
rules.add_command(schema)
rules.add_command(docs)
