"""What the commands share: which traces to read, how to say how far reading is, where to print."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, TypeVar

import click

from analyze.cli.capture_folders import (
    CAPTURE_JSON,
    below,
    capture_folder,
    captures_without_trace,
    in_order_of_capture,
    manifests_below,
    problems,
)
from analyze.cli.completing import complete_files
from analyze.cli.forward import Forward, chosen_forward
from analyze.cli.help_page import OUTPUT, READING, Option
from analyze.cli.lazy_group import LazyGroup
from analyze.errors import AnalyzeError, NoSuchForwardError, RuleError, TraceError

if TYPE_CHECKING:
    from analyze.cache.reading import CacheMode
    from analyze.tables.build import Trace

Command = TypeVar("Command", bound=Callable[..., Any])
Data: TypeAlias = dict[str, Any]

TRACE_SUFFIXES = (".json", ".json.gz", ".json.zst", ".gz", ".zst", ".trace")
STANDARD_INPUT = "-"
PROGRESS_DELAY_SECONDS = 1.0

SEVERITY_OF_EXIT_CODES = (4, 3, 1, 2, 0)
"""Exit codes from worst to best, for runs over several traces."""


def format_option(
    *formats: str, help_text: str = "How to print. JSON of several traces is a list."
) -> Callable[[Command], Command]:
    """Return the option that chooses between output formats; the first is the default."""
    return click.option(
        "--format",
        "output_format",
        cls=Option,
        panel=OUTPUT,
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=help_text,
    )


CACHE_MODE = "analyze.cache"
"""Where a command's context keeps the value of ``--cache`` for :func:`load`."""


def _keep_cache_mode(ctx: click.Context, _: click.Parameter, mode: str) -> None:
    ctx.meta[CACHE_MODE] = mode


cache_option = click.option(
    "--cache",
    cls=Option,
    panel=READING,
    type=click.Choice(["auto", "off", "refresh"]),
    default="auto",
    show_default=True,
    envvar="ANALYZE_CACHE",
    show_envvar=True,
    expose_value=False,
    callback=_keep_cache_mode,
    help="Read large traces faster the second time, from a copy in the user's cache folder."
    " `analyze cache` shows and empties it; refresh writes it anew.",
)
forward_option = click.option(
    "--forward",
    cls=Option,
    panel=READING,
    metavar="NAME",
    help="The record_function annotation that encloses one forward. Default: `forward` of the"
    " configuration, else the annotation that capture writes, the ProfilerStep, the whole trace.",
)
output_option = click.option(
    "-o",
    "--output",
    cls=Option,
    panel=OUTPUT,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file instead of standard output; whole or not at all.",
)
trace_output_option = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The trace to write, whole or not at all: gzip where the name ends in .gz, zstd in .zst.",
)


traces_argument = click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, shell_complete=complete_files
)


def trace_arguments(command: Command) -> Command:
    """Add the arguments that every command over traces takes."""
    command = format_option("text", "json")(command)
    return traces_argument(output_option(forward_option(cache_option(command))))


def command_names(ctx: click.Context) -> list[str]:
    """Return the names of the commands beside the running one, for "did you mean"."""
    group = ctx.parent.command if ctx.parent else None
    return list(group.names) if isinstance(group, LazyGroup) else []


def find_traces(
    arguments: Sequence[str],
    commands: Sequence[str],
    codes: list[int],
    *outputs: Path | None,
    on_error: "Callable[[str, AnalyzeError], int] | None" = None,
) -> Iterator[str]:
    """Yield the trace files that the arguments name.

    A folder stands for the traces in it, and so does the capture.json in a folder.

    Args:
        arguments: as given.
        commands: names of commands, for "did you mean".
        codes: is given the exit code of each argument that names no trace, after saying so.
        outputs: the files that will be written.
        on_error: says that an argument names no trace, instead of :func:`complain`.

    Raises:
        AnalyzeError: a trace is one of the outputs; nothing may be written then.
    """
    for argument in arguments:
        try:
            yield from _traces_of(argument, commands, outputs)
            folder = capture_folder(argument)
            codes += [complain(problem) for problem in problems(folder)] if folder else []
        except TraceError as error:
            codes.append(on_error(argument, error) if on_error else complain(error))


def _traces_of(argument: str, commands: Sequence[str], outputs: Sequence[Path | None]) -> list[str]:
    folder = capture_folder(argument)
    try:
        exists = Path(argument).exists()
    except OSError as error:
        raise TraceError(f"{argument[:80]}: {error.strerror}") from None
    if argument == STANDARD_INPUT:
        return [argument]
    if not argument or not exists:
        raise TraceError(_missing(argument, commands))
    traces = _traces_in(folder) if folder else [argument]
    refuse_overwriting(traces, *outputs)
    if folder:
        refuse_overwriting(manifests_below(folder), *outputs, what=INPUTS)
    return traces


INPUTS = "inputs"
"""What files are that are read beside traces."""


def refuse_overwriting(
    files: "Sequence[str | Path]", *outputs: Path | None, what: str = "traces"
) -> None:
    """Check that no output is one of the files that are read: traces, or ``what`` they are.

    Raises:
        AnalyzeError: one is.
    """
    read = {os.path.realpath(file) for file in files if file != STANDARD_INPUT}
    for output in outputs:
        if output is not None and os.path.realpath(output) in read:
            raise AnalyzeError(f"{output}: is one of the {what}; --output would overwrite it")


def _traces_in(folder: Path) -> list[str]:
    files = in_order_of_capture([path for path in below(folder).files if _is_trace(path, folder)])
    if not files:
        raise TraceError(f"{folder}: the folder holds no traces ({_why_none(folder)})")
    return [str(path) for path in files]


def _why_none(folder: Path) -> str:
    unread = below(folder).unread
    if unread:
        path, why = unread[0]
        return f"{path} cannot be read: {why}"
    absent = captures_without_trace([str(folder)])
    if absent:
        return f"{absent[0].name} {absent[0].status}: {absent[0].reason}"
    return f"files ending in {', '.join(TRACE_SUFFIXES)}"


def _is_trace(path: Path, folder: Path) -> bool:
    """Tell traces from what lies beside them: notes of ``capture``, hidden and half-done files."""
    is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    is_named_so = path.name.endswith(TRACE_SUFFIXES) and path.name != CAPTURE_JSON
    return is_named_so and not is_hidden and path.is_file()


def _missing(argument: str, commands: Sequence[str]) -> str:
    from analyze.words import closest  # noqa: PLC0415

    close = closest(argument, commands)
    hint = f"; did you mean the command {close!r}?" if close else ""
    return f"{argument}: no such file{hint}"


@contextmanager
def reading(path: str) -> Iterator[Callable[[int], None]]:
    """Yield a progress callback that shows a bar on a terminal when reading takes long."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # noqa: PLC0415

    console = Console(stderr=True)
    size = Path(path).stat().st_size if path != STANDARD_INPUT else None
    name = TextColumn("{task.description}", markup=False)
    bar = Progress(name, BarColumn(), DownloadColumn(), console=console, transient=True)
    task = bar.add_task(Path(path).name, total=size)
    started = monotonic()

    def advance(done: int) -> None:
        if monotonic() - started >= PROGRESS_DELAY_SECONDS:
            bar.start()
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar.live.is_started:  # otherwise it prints an empty line on a dumb terminal
            bar.stop()


def load(path: str, forward: Forward | None) -> "Trace":
    """Read one trace, with a progress bar where that helps.

    Raises:
        TraceError: the file cannot be read as a PyTorch trace.
        NoSuchForwardError: the trace has no annotation of the name of ``forward``.
    """
    from analyze.tables.build import load_trace  # noqa: PLC0415

    cache = _cache_mode()
    name = None if forward is None else forward.name
    with reading(path) as progress:
        try:
            return load_trace(path, forward=name, progress=progress, cache=cache)
        except NoSuchForwardError as error:
            from analyze.words import visible  # noqa: PLC0415

            assert forward is not None  # noqa: S101 - only a name can be missing
            raise NoSuchForwardError(forward.words, error.hint, visible(path)) from None


def _cache_mode() -> "CacheMode":
    """Return the value of ``--cache``; outside a command nothing is cached."""
    ctx = click.get_current_context(silent=True)
    mode: CacheMode = ctx.meta.get(CACHE_MODE, "off") if ctx else "off"
    return mode


def load_recorded(path: str, forward: Forward | None) -> "Trace":
    """Read one trace in which something was recorded; otherwise see :func:`load`.

    Raises:
        NothingToCheckError: nothing was recorded in it.
    """
    trace = load(path, forward)
    if trace.is_empty:
        raise trace.nothing_recorded()
    return trace


class _Text(Protocol):
    def __call__(self, data: Data, /, *, color: bool) -> str: ...


def show_each(
    ctx: click.Context,
    describe: "Callable[[Trace], Data]",
    text: _Text,
    json: Callable[[Data], Data] = lambda data: data,
    *,
    empty_too: bool = False,
) -> NoReturn:
    """Print what a command shows of each trace, and end with the exit code of all.

    Args:
        ctx: of a command with :func:`trace_arguments`.
        describe: makes plain data of a trace; an ``AnalyzeError`` of it costs only that trace.
        text: renders the data of one trace; no colours go to a file.
        json: chooses what of it stands in the JSON.
        empty_too: show a trace in which nothing was recorded as well, beside saying so.
    """
    given, results, codes = ctx.params, [], [0]
    output: Path | None = given["output"]
    forward = chosen_forward(given["forward"])
    for path in find_traces(given["traces"], command_names(ctx), codes, output):
        try:
            trace = (load if empty_too else load_recorded)(path, forward)
            results.append(describe(trace))
            if trace.is_empty:
                codes.append(complain(trace.nothing_recorded()))
        except AnalyzeError as error:
            codes.append(complain(error))
    if results and given["output_format"] == "json":
        from analyze.report.json_writer import to_json  # noqa: PLC0415

        emit(to_json([json(data) for data in results]), output)
    elif results:
        from analyze.report.console import wants_color  # noqa: PLC0415

        color = output is None and wants_color()
        emit("\n".join(text(data, color=color) for data in results), output)
    ctx.exit(worst_exit_code(codes))


STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable that names the file to which the commands of a step of GitHub Actions add Markdown."""


def emit(text: str, output: Path | None) -> None:
    """Print a report, or write it to a file; to the summary of a CI step it is added.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    if output is None:
        click.echo(text, nl=False, color=True)  # colours are in the text only where wanted
        return
    from analyze.report.files import add_whole, write_whole  # noqa: PLC0415

    if str(output) == os.environ.get(STEP_SUMMARY):
        add_whole(output, text)
    else:
        write_whole(output, text)


def complain(error: AnalyzeError) -> int:
    """Print an error on standard error, in one line unless it is about rules; return its code."""
    from analyze.words import inert_to_ci, visible  # noqa: PLC0415

    is_about_rules = isinstance(error, RuleError)
    text = str(error) if is_about_rules else f"analyze: {visible(str(error))}"
    click.echo(inert_to_ci(text), err=True)
    return error.exit_code


def worst_exit_code(codes: Sequence[int]) -> int:
    """Return the exit code of a run from those of its parts."""
    return next((code for code in SEVERITY_OF_EXIT_CODES if code in codes), 0)
