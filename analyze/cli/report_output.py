"""``--format``, ``--output``, ``--also``: in which formats findings are written, and where."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from analyze.cli.help_page import OUTPUT
from analyze.cli.traces import emit, output_option
from analyze.report.formats import FORMATS, WITH_VIEWS, Rendering, format_of, render

if TYPE_CHECKING:
    from analyze.engine.result import TraceReport


@dataclass(frozen=True)
class ReportOutput:
    """Where reports go.

    Attributes:
        format: of what is printed, or written to ``path``.
        path: the file instead of standard output.
        also: further files with their formats.
        verbose: all evidence.
    """

    format: str
    path: Path | None
    also: tuple[tuple[str, Path], ...]
    verbose: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that will be written."""
        main = (self.path,) if self.path is not None else ()
        return (*main, *(path for _, path in self.also))

    @property
    def needs_views(self) -> bool:
        """Whether a format needs ``TraceReport.views``."""
        return not WITH_VIEWS.isdisjoint({self.format, *(name for name, _ in self.also)})

    def write(self, reports: "Sequence[TraceReport]") -> None:
        """Write the reports in every format.

        Raises:
            AnalyzeError: a file cannot be written.
        """
        from analyze.report.console import wants_color  # noqa: PLC0415

        color = self.path is None and wants_color()
        for name, path in self.also:
            emit(render(name, reports, Rendering(self.verbose)), path)
        emit(render(self.format, reports, Rendering(self.verbose, color)), self.path)


def report_output(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as one :class:`ReportOutput` named ``out``."""

    @functools.wraps(command)
    def bundled(
        *args: Any,
        output_format: str | None,
        output: Path | None,
        also: tuple[tuple[str, Path], ...],
        verbose: bool,
        **rest: Any,
    ) -> Any:
        by_name = format_of(output) if output else None
        out = ReportOutput(output_format or by_name or FORMATS[0], output, also, verbose)
        return command(*args, out=out, **rest)

    for option in reversed(_OPTIONS):
        option(bundled)
    return bundled


def _also(
    _ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, Path], ...]:
    return tuple(map(_format_and_file, given))


def _format_and_file(given: str) -> tuple[str, Path]:
    """Split FORMAT=FILE, or take the format from the name of the file.

    Raises:
        BadParameter: neither says a format.
    """
    name, equals, file = given.partition("=")
    if equals and name in FORMATS and file:
        return name, Path(file)
    by_name = format_of(Path(given))
    if by_name is None:
        formats = ", ".join(FORMATS)
        raise click.BadParameter(f"{given!r}: write FORMAT=FILE, FORMAT one of {formats}")
    return by_name, Path(given)


_OPTIONS = (
    click.option(
        "--format",
        "output_format",
        panel=OUTPUT,
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help=f"How to print: {', '.join(FORMATS)}. Default: what the name of --output says, else"
        " text.",
    ),
    output_option,
    click.option(
        "--also",
        panel=OUTPUT,
        multiple=True,
        metavar="[FORMAT=]FILE",
        callback=_also,
        help="Write this file as well, e.g. report.html or sarif=findings.json. Repeatable.",
    ),
    click.option(
        "-v", "--verbose", panel=OUTPUT, is_flag=True, help="All evidence, and what was as guessed."
    ),
)
