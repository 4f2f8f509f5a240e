"""``analyze completion``: the script that lets a shell complete what is typed."""

import click
from click.shell_completion import get_completion_class

from analyze.cli.help_page import PRINT_CODES, SETUP, Command, Example, Page

PROGRAM = "analyze"
VARIABLE = "_ANALYZE_COMPLETE"
"""What click names the variable by which a shell asks ``analyze`` for completions."""

_SPLIT_ONCE = ('string split "," ', 'string split --max 1 "," ')
"""click's script for fish cuts a completion, or its description, at the first comma in it."""

_NO_SPACE_AFTER_EQUALS = """
_analyze_completion_open_ended() {
    _analyze_completion "$@"
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}

complete -o nosort -F _analyze_completion_open_ended analyze
"""
"""After ``--set CODE.PARAM=`` the value follows at once."""


@click.command(
    cls=Command,
    panel=SETUP,
    page=Page(
        examples=(
            Example('eval "$(analyze completion bash)"', "bash: in ~/.bashrc"),
            Example('eval "$(analyze completion zsh)"', "zsh: in ~/.zshrc, after compinit"),
            Example(
                "analyze completion fish > ~/.config/fish/completions/analyze.fish", "fish: once"
            ),
        ),
        exit_codes=PRINT_CODES,
        see_also=("capture completion",),
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for SHELL that completes commands, options, files, rule codes and columns.

    bash (4.4 or newer) and zsh read it at start-up, fish from a folder; see the examples.
    """
    script_for = get_completion_class(shell)
    if script_for is None:
        raise click.UsageError(f"this version of click cannot complete in {shell}")
    script = script_for(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    # click's own source() first runs bash to learn its version; whoever asks may sit elsewhere.
    template = script.source_template.replace(*_SPLIT_ONCE)
    click.echo(template % script.source_vars(), nl=False)
    if shell == "bash":
        click.echo(_NO_SPACE_AFTER_EQUALS, nl=False)
