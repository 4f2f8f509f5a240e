"""``capture completion``: the script that lets a shell complete options and variants."""

import re
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

PROGRAM, VARIABLE = "capture", "_CAPTURE_COMPLETE"
"""The command, and what click names the variable by which a shell asks it for completions."""

_VARIANT = re.compile(r'^    Variant\(\s*"([\w-]+)"', re.MULTILINE)


def complete_variant(
    _ctx: click.Context, _parameter: click.Parameter, word: str
) -> list[CompletionItem[str]]:
    """Complete the name of a variant, or a file with one; without the seconds torch takes."""
    source = Path(__file__).with_name("variants.py").read_text(encoding="utf-8")
    names = [CompletionItem(name) for name in _VARIANT.findall(source) if name.startswith(word)]
    return [CompletionItem(word, type="file"), *names]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for SHELL that completes options, their values and variants.

    \b
    eval "$(capture completion bash)"          in ~/.bashrc, zsh likewise
    capture completion fish > ~/.config/fish/completions/capture.fish
    """  # noqa: D301 - \b is click's mark, the backspace itself
    script_for = get_completion_class(shell)
    if script_for is None:
        raise click.UsageError(f"this version of click cannot complete in {shell}")
    script = script_for(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    # click's own source() first runs bash to learn its version; whoever asks may sit elsewhere.
    click.echo(script.source_template % script.source_vars(), nl=False)
