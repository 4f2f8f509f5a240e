"""``analyze rules new``: write a starter rule to begin with."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.completing import complete_tables
from analyze.cli.help_page import PRINT_CODES, Command, Example, Page
from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.tables.catalogue import Table

_MAX_NAME = 60


@click.command(
    cls=Command,
    page=Page(
        examples=(
            Example("analyze rules new slow-softmax --from kernels", "a rule to begin with"),
        ),
        exit_codes=PRINT_CODES,
        see_also=(
            "analyze rules check",
            "analyze columns",
        ),
    ),
)
@click.argument("name")
@click.option(
    "--from",
    "table",
    metavar="TABLE",
    shell_complete=complete_tables,
    default="kernels",
    show_default=True,
    help="The table or view that the rule looks at; `analyze columns` lists them.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="The folder to write to; made if there is none. Default: the current one.",
)
def new(name: str, table: str, folder: Path) -> None:
    """Write the starter rule NAME.yaml: valid, commented, with a test that fires and a silent one.

    NAME is made of lower-case words joined by hyphens, e.g. slow-softmax. A file that exists is
    never overwritten.
    """
    from analyze.engine.starter import free_code, starter_rule  # noqa: PLC0415

    _check_name(name)
    chosen = _table(table)
    file = folder / f"{name}.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        code = free_code(_read(other) for other in folder.glob("*.y*ml"))
        with file.open("x", encoding="utf-8") as stream:
            stream.write(starter_rule(name, code, chosen))
    except FileExistsError:
        raise AnalyzeError(f"{file}: exists already; choose another name or remove it") from None
    except OSError as error:
        raise AnalyzeError(f"{file}: cannot be written: {error.strerror}") from None
    click.echo(_what_next(file, code, table))


def _check_name(name: str) -> None:
    import re  # noqa: PLC0415

    from analyze.engine.model import NAME_PATTERN  # noqa: PLC0415

    if not re.fullmatch(NAME_PATTERN, name) or len(name) > _MAX_NAME:
        message = f"{name!r} is not a rule name: write lower-case words joined by hyphens"
        raise click.UsageError(f"{message}, {_MAX_NAME} characters at most")


def _table(name: str) -> "Table":
    from analyze.engine.problems import did_you_mean  # noqa: PLC0415
    from analyze.tables.catalogue import TABLES  # noqa: PLC0415

    if name not in TABLES:
        raise click.UsageError(f"no table {name!r}; {did_you_mean(name, TABLES)}")
    return TABLES[name]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _what_next(file: Path, code: str, table: str) -> str:
    from analyze.words import visible  # noqa: PLC0415

    shown = visible(str(file))
    steps = (
        f"edit it; `analyze columns {table}` lists what it can match and measure",
        f"analyze rules check {shown}",
        f"analyze rules test {shown}",
        f"analyze explain {code} TRACE --rules {shown}",
    )
    numbered = (f"  {number}. {step}" for number, step in enumerate(steps, start=1))
    return "\n".join((f"Wrote {shown}, rule {code}. What to do next:", *numbered))
