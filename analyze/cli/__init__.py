"""The ``analyze`` command. Heavy imports happen inside the commands, so that --help is instant."""

import atexit
import gc
import os
import sys
from collections.abc import Mapping

import click
from click.exceptions import NoArgsIsHelpError

from analyze.__main__ import INTERRUPTED
from analyze.cli.closed_output import notice_closed_output
from analyze.cli.default_command import DefaultCommandGroup
from analyze.cli.help_page import CHECK_CODES, TRACE_ENVIRONMENT, Example, Page
from analyze.cli.traces import complain
from analyze.errors import AnalyzeError

COMMANDS: Mapping[str, str] = {
    "check": "analyze.cli.check:check",
    "summary": "analyze.cli.summary:summary",
    "compare": "analyze.cli.compare:compare",
    "diff": "analyze.cli.diff:diff",
    "columns": "analyze.cli.columns:columns",
    "explain": "analyze.cli.explain:explain",
    "guess": "analyze.cli.guess:guess",
    "kernels": "analyze.cli.kernels:kernels",
    "calls": "analyze.cli.calls:calls",
    "ops": "analyze.cli.ops:ops",
    "gaps": "analyze.cli.gaps:gaps",
    "memory": "analyze.cli.memory:memory",
    "regions": "analyze.cli.regions:regions",
    "trim": "analyze.cli.trim:trim",
    "annotate": "analyze.cli.annotate:annotate",
    "open": "analyze.cli.open:open_",
    "rules": "analyze.cli.rules:rules",
    "baseline": "analyze.cli.baseline:baseline",
    "cache": "analyze.cli.cache:cache",
    "schema": "analyze.cli.schema:schema",
    "completion": "analyze.cli.completion:completion",
}
"""Where each command is, as ``module:attribute``, by name."""

CANNOT_WRITE = 2

_THREADS = "POLARS_MAX_THREADS"
_MOST_THREADS = 256
"""polars itself stops the program at 0, and takes a minute to start a thousand."""

_OBJECTS_BETWEEN_COLLECTIONS = 500_000
"""Hardly anything a run makes is garbage in cycles; looking for it as often as Python does, and
once more at exit, takes a sixth of a short run."""


@click.group(
    cls=DefaultCommandGroup,
    default_command="check",
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    page=Page(
        examples=(
            Example("analyze trace.json.gz", "what is wrong with a trace"),
            Example("analyze summary trace.json.gz", "what it holds"),
            Example("analyze check --help", "options and examples of a command"),
        ),
        exit_codes=CHECK_CODES,
        environment=TRACE_ENVIRONMENT,
        see_also=("capture --help",),
    ),
)
@click.version_option(package_name="kinetolint", prog_name="analyze")
def analyze() -> None:
    """Read PyTorch-profiler traces and say what is wrong, where, what it costs, what to do.

    `analyze TRACE...` is short for `analyze check TRACE...`. A trace is what
    torch.profiler's export_chrome_trace writes: plain, gzip or zstd; `-` is standard input; a
    folder stands for the traces in it.
    """


def main() -> None:
    """Run the command line; every expected failure is one line on standard error."""
    _collect_garbage_rarely()
    _start_no_idle_threads()
    notice_closed_output()
    try:
        sys.exit(_run())
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "analyze"
        click.echo(f"analyze: {error.format_message()} (see `{command} --help`)", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"analyze: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("analyze: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except AnalyzeError as error:
        sys.exit(complain(error))
    except BrokenPipeError:
        if sys.stderr is not None:
            sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        what = error.filename or "the output cannot be written"
        click.echo(f"analyze: {what}: {error.strerror}", err=True)
        sys.exit(CANNOT_WRITE)


def _run() -> int | None:
    """Run the command; a group that is told none shows its help and fails."""
    try:
        exit_code: int | None = analyze(standalone_mode=False)
    except NoArgsIsHelpError as error:
        click.echo(error.message, color=True)
        return error.exit_code
    return exit_code


def _start_no_idle_threads() -> None:
    """Give polars one thread unless the user asks for another sensible number.

    Its steps are short and most of a run is Python: to hand them to more threads, which spin while
    they wait, costs a tenth of the CPU time. On two cores it spares 4 % of the wall time of a trace
    of 500 MB of text, and nothing of smaller ones.
    """
    wanted = os.environ.get(_THREADS, "")
    if not (wanted.isdecimal() and 0 < int(wanted) <= _MOST_THREADS):
        os.environ[_THREADS] = "1"


def _collect_garbage_rarely() -> None:
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
