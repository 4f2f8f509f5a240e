"""A command group that runs one of its commands when none is named."""

from typing import Any

import click
from click.shell_completion import CompletionItem

from analyze.cli.lazy_group import LazyGroup


class DefaultCommandGroup(LazyGroup):
    """``analyze trace.json`` is ``analyze check trace.json``."""

    def __init__(self, *args: Any, default_command: str, **kwargs: Any) -> None:
        """Create the group; other arguments are click's."""
        super().__init__(*args, **kwargs)
        self._default_command = default_command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front when the first argument is neither command nor help."""
        group_options = {name for option in self.get_params(ctx) for name in option.opts}
        if args and args[0] not in self.names and args[0] not in group_options:
            args = [self._default_command, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete commands, and what may follow where none is named: files, or its options."""
        if incomplete.startswith("-"):
            default = self.get_command(ctx, self._default_command)
            assert default is not None  # noqa: S101 - it is one of the commands
            with default.make_context("", [], parent=ctx, resilient_parsing=True) as of_default:
                options = default.shell_complete(of_default, incomplete)
            own = super().shell_complete(ctx, incomplete)
            return list({item.value: item for item in [*options, *own]}.values())
        # A file first: bash offers files only where no command fits.
        return [CompletionItem(incomplete, type="file"), *super().shell_complete(ctx, incomplete)]
