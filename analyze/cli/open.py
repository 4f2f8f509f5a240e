"""``analyze open``: show a trace with its findings in the Perfetto viewer."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from analyze.cli.completing import complete_files, complete_rule
from analyze.cli.help_page import RULE_CODES, SHARE, TRACE_ENVIRONMENT, Command, Example, Page
from analyze.cli.one_trace import check_one, one_file
from analyze.cli.rule_options import FINDING_WORDS, RuleOptions, rule_options
from analyze.cli.traces import cache_option, forward_option, reading
from analyze.viewer.link import PORT, VIEWER, link_to, safe_name

if TYPE_CHECKING:
    from threading import Event

    from analyze.engine.result import TraceReport
    from analyze.viewer.link import Moment
    from analyze.viewer.server import TraceServer

_ANNOTATED = ".annotated.json.gz"
_TURN_SECONDS = 0.5

_IN_THE_BROWSER = "Opening the link in the browser.\n"
_BY_HAND = (
    "Open the link in a browser on this machine. Where you sit at another one, first run\n"
    "there `ssh -L {port}:127.0.0.1:{port} HOST`, with this machine as HOST.\n"
)
_ANYHOW = (
    "Where the browser asks whether the page may reach this machine, allow it. Or write a\n"
    "copy with `analyze annotate` and drop it on the page."
)


@dataclass(frozen=True)
class _Shown:
    """What the viewer is given.

    Attributes:
        file: to be served.
        name: under which.
        moment: to be shown; None is the whole trace.
        sentence: says so.
    """

    file: Path
    name: str
    moment: "Moment | None"
    sentence: str


@click.command(
    "open",
    cls=Command,
    panel=SHARE,
    page=Page(
        examples=(
            Example("analyze open trace.json.gz --finding COPY101", "the viewer, at a finding"),
        ),
        exit_codes=RULE_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=("analyze annotate",),
    ),
)
@click.argument("trace", shell_complete=complete_files)
@click.option(
    "--finding",
    metavar="FINDING",
    shell_complete=complete_rule,
    help=f"Show this finding: {FINDING_WORDS}. Default: the first.",
)
@click.option("--plain", is_flag=True, help="The file as it is, without findings drawn into it.")
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser.")
@click.option("--keep", is_flag=True, help="Go on serving after the viewer has read the trace.")
@click.option(
    "--viewer",
    default=VIEWER,
    show_default=True,
    metavar="URL",
    help="Another copy of the Perfetto viewer.",
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(1, 65535),
    help=f"The viewer lets a trace be read from port {PORT} alone; another needs another viewer.",
)
@forward_option
@cache_option
@rule_options
@click.pass_context
def open_(
    ctx: click.Context,
    trace: str,
    finding: str | None,
    plain: bool,
    browser: bool,
    keep: bool,
    viewer: str,
    port: int,
    forward: str | None,
    options: RuleOptions,
) -> None:
    """Show TRACE with its findings in the Perfetto viewer, at a finding.

    The viewer is a web page, https://ui.perfetto.dev. It runs in your browser and reads the trace
    from this machine, where it is served to that page alone until it has been read; the trace does
    not leave the machine. Without a browser here, copy the link that is printed.
    """
    from analyze.temporary import temporary_folder, termination_raises  # noqa: PLC0415

    path = one_file(ctx, trace)
    page = _page(viewer)
    with termination_raises(), _serving(port, page) as server, temporary_folder() as folder:
        if plain and finding is None:
            shown = _Shown(Path(path), safe_name(Path(path).name), None, "the whole trace")
        else:
            shown = _prepare(path, finding, forward, options, None if plain else folder)
        link = link_to(server.offer(shown.file, shown.name), shown.moment, page)
        click.echo(f"{_visible(path)}: {shown.sentence}\n\n{link}\n")
        _tell_how(link, port, browser=browser)
        _wait(server, keep=keep)
    click.echo(f"read by the viewer: {shown.name}")


def _page(viewer: str) -> str:
    """Return the viewer's address without a slash at its end.

    Raises:
        BadParameter: it is none.
    """
    try:
        parts = urlsplit(viewer)
        is_page = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_page = is_page and not (parts.query or parts.fragment) and parts.port != 0
    except ValueError:
        is_page = False
    if not is_page:
        raise click.BadParameter(f"{viewer!r} is no address of a page", param_hint="--viewer")
    return viewer.rstrip("/")


@contextmanager
def _serving(port: int, page: str) -> Iterator["TraceServer"]:
    """Serve in a thread of its own, so that a browser that keeps us waiting is served too."""
    from threading import Thread  # noqa: PLC0415

    from analyze.viewer.server import TraceServer  # noqa: PLC0415

    parts = urlsplit(page)
    with TraceServer(port, f"{parts.scheme}://{parts.netloc.lower()}") as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def _prepare(
    path: str, chosen: str | None, forward: str | None, options: RuleOptions, folder: Path | None
) -> _Shown:
    """Find what is to be shown; annotate the trace into ``folder`` where there is one."""
    from analyze.annotate.copying import annotate  # noqa: PLC0415
    from analyze.viewer.shown import describe, moment_of  # noqa: PLC0415

    trace, report = check_one(path, forward, options)
    number = _number(report, chosen)
    file, name, threads = Path(path), safe_name(Path(path).name), None
    if folder is not None:
        name = safe_name(Path(path).name, _ANNOTATED)
        file = folder / name
        with reading(path) as progress:
            threads = annotate(path, file, trace, report, progress).threads
    if number is None:
        return _Shown(file, name, None, describe(report))
    part, moment = moment_of(number, report, trace, threads)
    return _Shown(file, name, moment, describe(report, part))


def _number(report: "TraceReport", chosen: str | None) -> int | None:
    """Return the number of the finding to show: the first unless one is chosen."""
    from analyze.engine.chosen_finding import chosen_number  # noqa: PLC0415

    if chosen is None:
        return 1 if report.findings else None
    return chosen_number(report, chosen)


def _tell_how(link: str, port: int, *, browser: bool) -> None:
    """Open the link, or say what to do with it."""
    from analyze.viewer.browser import open_in_browser  # noqa: PLC0415

    opened = browser and open_in_browser(link)
    click.echo((_IN_THE_BROWSER if opened else _BY_HAND).format(port=port) + _ANYHOW)
    click.echo(f"Serving on 127.0.0.1:{port} until the page has read it; Ctrl-C ends that.")


def _wait(server: "TraceServer", *, keep: bool) -> None:
    """Wait until the trace has been read, or with ``keep`` until Ctrl-C."""
    from threading import Event  # noqa: PLC0415

    _wait_for(server.was_read)
    if keep:
        with suppress(KeyboardInterrupt):
            click.echo("read by the viewer; still serving (--keep)")
            _wait_for(Event())


def _wait_for(event: "Event") -> None:
    """Wait in short turns: where another thread is given the signal, a long one never ends."""
    while not event.wait(_TURN_SECONDS):
        pass


def _visible(text: str) -> str:
    from analyze.words import printable  # noqa: PLC0415

    return printable(text)
