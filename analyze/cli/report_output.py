"""``--format``, ``--output``, ``--also``: in which formats findings are written, and where."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyze.cli.completing import complete_also
from analyze.cli.help_page import OUTPUT, Option
from analyze.cli.traces import STEP_SUMMARY, emit, output_option
from analyze.report.formats import (
    FORMATS,
    SUFFIXES,
    WITH_VIEWS,
    Rendering,
    format_of,
    format_of_suffix,
    render,
)
from analyze.words import visible

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
        if self.path is not None:
            _say_where([(self.format, self.path), *self.also])

    def write_none(self, failures: Mapping[str, str]) -> None:
        """Say that nothing is written, since no trace could be checked.

        A report without results would be taken for a clean one: code scanning, for one, closes
        every alert that a new upload does not hold.

        Args:
            failures: why, by trace.
        """
        for path in self.files:
            click.echo(f"analyze: {path}: not written, since no trace could be checked", err=True)
        if self.format == "github" and self.path is None:
            from analyze.report.github import annotate_unread  # noqa: PLC0415

            emit(annotate_unread(list(failures.values())), None)


def _say_where(written: Sequence[tuple[str, Path]]) -> None:
    """Say on stderr which files were written, where one of them is a page for people.

    Files for programs alone are written without a word.
    """
    files = [(name, path) for name, path in written if path.is_file()]
    if all(name != "html" for name, _ in files):
        return
    for name, path in files:
        hint = "; open it in a browser" if name == "html" else ""
        click.echo(f"analyze: wrote {visible(str(path))}{hint}", err=True)


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
        out = ReportOutput(output_format or _by_name(output), output, also, verbose)
        _refuse_twice(out.files)
        return command(*args, out=out, **rest)

    for option in reversed(_OPTIONS):
        option(bundled)
    return bundled


def _refuse_twice(files: Sequence[Path]) -> None:
    """Check that no file is to be written twice; to a pipe, a device or the step summary one may.

    Raises:
        UsageError: one is.
    """
    seen: dict[str, Path] = {}
    for file in files:
        is_replaced = file.is_file() or not file.exists()
        if not is_replaced or str(file) == os.environ.get(STEP_SUMMARY):
            continue
        first = seen.setdefault(os.path.realpath(file), file)
        if first is not file:
            raise click.UsageError(
                f"{file} is written twice, by --output and --also or two of --also: name two files"
            )


def _by_name(output: Path | None) -> str:
    """Return the format that the name of an output asks for; of no name, or a plain one, text.

    Raises:
        UsageError: its suffix is that of no format.
    """
    if output is None:
        return FORMATS[0]
    found = format_of(output)
    if found is None:
        raise click.UsageError(
            f"--output {output}: {output.suffix} is the suffix of no format; end the name in"
            f" {', '.join(SUFFIXES)}, or say --format"
        )
    return found


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
    by_name = format_of_suffix(Path(given))
    if by_name is None:
        formats = ", ".join(FORMATS)
        raise click.BadParameter(f"{given!r}: write FORMAT=FILE, FORMAT one of {formats}")
    return by_name, Path(given)


_OPTIONS = (
    click.option(
        "--format",
        "output_format",
        cls=Option,
        panel=OUTPUT,
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help=f"How to print: {', '.join(FORMATS)}. Default: what the name of --output says, else"
        " text.",
    ),
    output_option,
    click.option(
        "--also",
        cls=Option,
        panel=OUTPUT,
        multiple=True,
        metavar="[FORMAT=]FILE",
        callback=_also,
        shell_complete=complete_also,
        help="Write this file as well, e.g. report.html or sarif=findings.json. Repeatable."
        f" To the file that {STEP_SUMMARY} names it is added.",
    ),
    click.option(
        "-v",
        "--verbose",
        cls=Option,
        panel=OUTPUT,
        is_flag=True,
        help="All evidence, and the rules that hold.",
    ),
)
