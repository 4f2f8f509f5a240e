"""The option of the commands that write one file."""

from pathlib import Path

import rich_click as click

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file instead of standard output; whole or not at all.",
)
