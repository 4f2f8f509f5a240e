"""``analyze cache``: the copies of decoded traces in the user's cache folder."""

from typing import TYPE_CHECKING

import click

from analyze.cli.help_page import PRINT_CODES, SETUP, Command, Example, Group, Page
from analyze.cli.traces import format_option
from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.cache.store import Store, Usage

SCHEMA_VERSION = 1


@click.group(
    cls=Group,
    panel=SETUP,
)
def cache() -> None:
    """Show or empty the cache of traces that were read before."""


@cache.command(
    cls=Command,
    page=Page(
        examples=(Example("analyze cache info", "where it is, and how large"),),
        exit_codes=PRINT_CODES,
        environment={"XDG_CACHE_HOME": "where the cache lies, ~/.cache by default"},
        see_also=("analyze cache clear",),
    ),
)
@format_option("text", "json")
def info(output_format: str) -> None:
    """Print where the cache is, what it holds and how large it may become."""
    store = _store()
    usage = store.usage()
    if output_format == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        data = {
            "schema_version": SCHEMA_VERSION,
            "folder": str(store.folder),
            "entries": usage.entries,
            "size_bytes": usage.size_bytes,
            "max_bytes": store.max_bytes,
        }
        click.echo(to_json([data]), nl=False)
        return
    from analyze.words import size, visible  # noqa: PLC0415

    click.echo(f"folder  {visible(str(store.folder))}")
    click.echo(f"holds   {_worded(usage)} of at most {size(store.max_bytes)}")


@cache.command(
    cls=Command,
    page=Page(
        examples=(Example("analyze cache clear", "free the space"),),
        exit_codes={0: "emptied", 2: "usage error, or it cannot be emptied"},
        environment={"XDG_CACHE_HOME": "where the cache lies, ~/.cache by default"},
        see_also=("analyze check --cache",),
    ),
)
def clear() -> None:
    """Remove everything that is cached."""
    store = _store()
    try:
        removed = store.clear()
    except OSError as error:
        raise AnalyzeError(f"{store.folder}: cannot be emptied: {error.strerror}") from None
    click.echo(f"removed {_worded(removed)}")


def _store() -> "Store":
    from analyze.cache.store import Store, default_folder  # noqa: PLC0415

    folder = default_folder()
    if folder is None:
        raise AnalyzeError("there is no cache: the user has no home folder; set XDG_CACHE_HOME")
    return Store(folder)


def _worded(usage: "Usage") -> str:
    from analyze.words import counted, size  # noqa: PLC0415

    return f"{counted(usage.entries, 'trace')}, {size(usage.size_bytes)}"
