"""A command group that runs one of its commands when none is named."""

from typing import Any

import rich_click as click


class DefaultCommandGroup(click.RichGroup):
    """``analyze trace.json`` is ``analyze check trace.json``."""

    def __init__(self, *args: Any, default_command: str, **kwargs: Any) -> None:
        """Create the group; other arguments are click's."""
        super().__init__(*args, **kwargs)
        self._default_command = default_command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front when the first argument is neither command nor help."""
        group_options = {name for option in self.get_params(ctx) for name in option.opts}
        if args and args[0] not in self.commands and args[0] not in group_options:
            args = [self._default_command, *args]
        return super().parse_args(ctx, args)
