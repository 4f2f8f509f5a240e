"""A group of commands that are imported when they are first needed."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from analyze.cli.help_page import Group


class LazyGroup(Group):
    """A group that knows its commands by name: running one imports no other.

    Attributes:
        names: of all its commands.
    """

    def __init__(self, *args: Any, places: Mapping[str, str], **kwargs: Any) -> None:
        """Create the group; ``places`` has ``module:attribute`` of each command by its name."""
        super().__init__(*args, **kwargs)
        self._places = places
        self.names = tuple(places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of this name."""
        self._load(cmd_name)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, which are ready to be shown."""
        for name in self._places:
            self._load(name)
        return super().list_commands(ctx)

    def _load(self, name: str) -> None:
        if name in self._places and name not in self.commands:
            module, attribute = self._places[name].split(":")
            self.add_command(getattr(import_module(module), attribute), name)
