"""Which command shows more of what a report found, so that nobody has to know them all."""

import shlex

from analyze.engine.result import TraceReport
from analyze.report.gpu_time_words import unexplained_idle, what_dominates
from analyze.report.verdict import order_of
from analyze.trace.source import STDIN_NAME

_COMMANDS = {
    "attention": ("calls", "each attention call, what ran and why"),
    "copies": ("ops", "which ops copy"),
    "idle": ("gaps", "when the GPU waits, and why"),
    "memory": ("memory", "who allocates"),
    "occupancy": ("kernels", "each kernel, its grid and its occupancy"),
    "precision": ("kernels", "each kernel and its precision"),
    "sync": ("gaps", "when the GPU waits, and why"),
}
"""By category of the top finding: the command, and what it shows."""

_WHAT_DOMINATES = ("kernels", "what the GPU's time goes to")


def next_command(report: TraceReport) -> tuple[str, str] | None:
    """Return the command to run next, and what it shows.

    None where nothing was found and no GPU work recorded, and for a trace that came through a pipe.
    """
    chosen = _command(report)
    if chosen is None or report.trace == STDIN_NAME:
        return None
    command, shows = chosen
    return f"analyze {command} {shlex.quote(report.trace)}", shows


def _command(report: TraceReport) -> tuple[str, str] | None:
    if unexplained_idle(report):
        return _COMMANDS["idle"]
    problems = order_of(report).problems
    if all(finding.severity == "info" for finding in problems) and what_dominates(report):
        return _WHAT_DOMINATES
    if not problems:
        return None
    top = problems[0]
    explain = (f"explain {top.code}", "the rule, and how it came to this")
    return _COMMANDS.get(top.category, explain)
