"""Which command shows more of what a report found, so that nobody has to know them all."""

import shlex

from analyze.engine.result import TraceReport
from analyze.report.verdict import order_of

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

_NEEDS_A_FILE = "<stdin>"


def next_command(report: TraceReport) -> str | None:
    """Return the command to run next and what it shows; None where nothing was found."""
    problems = order_of(report).problems
    if not problems or report.trace == _NEEDS_A_FILE:
        return None
    top = problems[0]
    explain = (f"explain {top.code}", "the rule, and how it came to this")
    command, shows = _COMMANDS.get(top.category, explain)
    return f"analyze {command} {shlex.quote(report.trace)}: {shows}"
