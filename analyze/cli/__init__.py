"""The ``analyze`` command. Heavy imports happen inside the commands, so that --help is instant."""

import atexit
import gc
import sys

import rich_click as click

from analyze.cli.annotate import annotate
from analyze.cli.baseline import baseline
from analyze.cli.cache import cache
from analyze.cli.calls import calls
from analyze.cli.check import check
from analyze.cli.closed_output import notice_closed_output
from analyze.cli.columns import columns
from analyze.cli.compare import compare
from analyze.cli.completion import completion
from analyze.cli.default_command import DefaultCommandGroup
from analyze.cli.diff import diff
from analyze.cli.explain import explain
from analyze.cli.gaps import gaps
from analyze.cli.guess import guess
from analyze.cli.help_page import (
    CHECK_CODES,
    HELP_CONFIG,
    TRACE_ENVIRONMENT,
    Example,
    Page,
    in_panels,
)
from analyze.cli.kernels import kernels
from analyze.cli.memory import memory
from analyze.cli.open import open_
from analyze.cli.ops import ops
from analyze.cli.regions import regions
from analyze.cli.rules import rules
from analyze.cli.schema import schema
from analyze.cli.summary import summary
from analyze.cli.traces import complain
from analyze.cli.trim import trim
from analyze.errors import AnalyzeError

CANNOT_WRITE = 2
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells expect it."""

_OBJECTS_BETWEEN_COLLECTIONS = 500_000
"""Hardly anything a run makes is garbage in cycles; looking for it as often as Python does, and
once more at exit, takes a sixth of a short run."""


@click.group(
    cls=DefaultCommandGroup,
    default_command="check",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "rich_help_config": HELP_CONFIG,
    },
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
@in_panels
@click.version_option(package_name="kinetolint", prog_name="analyze")
def analyze() -> None:
    """Read PyTorch-profiler traces and say what is wrong, where, what it costs, what to do.

    `analyze TRACE...` is short for `analyze check TRACE...`. A trace is what
    torch.profiler's export_chrome_trace writes: plain, gzip or zstd; `-` is standard input; a
    folder stands for the traces in it.
    """


analyze.add_command(check)
analyze.add_command(summary)
analyze.add_command(compare)
analyze.add_command(diff)
analyze.add_command(columns)
analyze.add_command(explain)
analyze.add_command(guess)
analyze.add_command(kernels)
analyze.add_command(calls)
analyze.add_command(ops)
analyze.add_command(gaps)
analyze.add_command(memory)
analyze.add_command(regions)
analyze.add_command(trim)
analyze.add_command(annotate)
analyze.add_command(open_)
analyze.add_command(rules)
analyze.add_command(baseline)
analyze.add_command(cache)
analyze.add_command(schema)
analyze.add_command(completion)


def main() -> None:
    """Run the command line; every expected failure is one line on standard error."""
    _collect_garbage_rarely()
    notice_closed_output()
    try:
        sys.exit(analyze(standalone_mode=False))
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
        click.echo(f"analyze: the output cannot be written: {error.strerror}", err=True)
        sys.exit(CANNOT_WRITE)


def _collect_garbage_rarely() -> None:
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
