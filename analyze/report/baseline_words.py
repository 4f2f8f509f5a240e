"""What a report says beside a baseline, in words."""

import shlex
from collections.abc import Iterator, Sequence

from analyze.engine.result import Finding, TraceReport, Vanished
from analyze.trace.source import STDIN_NAME
from analyze.words import counted, printable, visible

REMOVE = "remove"
"""Label of a command: what is there to be copied is not broken into lines."""

_CODES_SHOWN = 8
_VANISHED_SHOWN = 20


def shown_findings(report: TraceReport, *, verbose: bool) -> list[Finding]:
    """Return the findings to show in full: consequences are shown with their cause, if that is.

    Args:
        report: the result.
        verbose: those that a baseline knows as well.
    """
    if verbose:
        return [finding for finding in report.findings if finding.explained_by is None]
    known = {finding.fingerprint for finding in report.findings if finding.is_known}
    return [
        finding
        for finding in report.findings
        if not finding.is_known and (finding.explained_by is None or finding.explained_by in known)
    ]


def known_findings(report: TraceReport) -> list[Finding]:
    """Return the findings that a baseline knows and that are no worse."""
    return [finding for finding in report.findings if finding.is_known]


def baseline_lines(report: TraceReport) -> Iterator[tuple[str, str]]:
    """Yield (label, sentence) pairs: how many findings are known, which are better, or gone.

    The last, labelled :data:`REMOVE`, is the command that removes what is gone.
    """
    if report.baseline is None:
        return
    known = known_findings(report)
    if known:
        of = f"{counted(len(known), 'known finding')} (baseline {printable(report.baseline)})"
        yield "known", f"{of}: {_codes([finding.code for finding in known])}"
    for finding in known:
        if finding.baseline == "better":
            yield "better", f"{_rule(finding)}: {_changes(finding)}"
    yield from (("gone", _is_gone(gone)) for gone in report.vanished[:_VANISHED_SHOWN])
    if len(report.vanished) > _VANISHED_SHOWN:
        yield "gone", f"and {len(report.vanished) - _VANISHED_SHOWN:,} more"
    if report.vanished:
        yield REMOVE, _update_command(report)


def vanished_sentence(gone: Vanished, report: TraceReport) -> str:
    """Say that a finding of the baseline is found no more, and the command that removes it.

    Args:
        gone: the finding.
        report: the report that says so.
    """
    return f"{_is_gone(gone)}; remove it with `{_update_command(report)}`"


def _is_gone(gone: Vanished) -> str:
    scope = f" in {printable(gone.scope)}" if gone.scope else ""
    return f"{_rule(gone)}{scope} is no longer found ({printable(gone.message)})"


def _rule(found: Finding | Vanished) -> str:
    return printable(f"{found.code} {found.name}")


def _update_command(report: TraceReport) -> str:
    trace = "TRACE" if report.trace == STDIN_NAME else shlex.quote(report.trace)
    file = shlex.quote(report.baseline or "FILE")
    return visible(f"analyze baseline update {trace} -o {file}")


def beside_baseline(finding: Finding) -> str | None:
    """Say what a baseline knows of one finding; None where there is no baseline."""
    accepted = finding.baseline_reason
    reason = f"; accepted because: {printable(accepted)}" if accepted else ""
    match finding.baseline:
        case "worse":
            return f"worse than known: {_changes(finding)}{reason}"
        case "better":
            return f"known, now better: {_changes(finding)}{reason}"
        case "known":
            return f"known{reason}"
        case "new":
            return "new"
        case _:
            return None


def _changes(finding: Finding) -> str:
    return printable(", ".join(finding.baseline_changes))


def _codes(codes: Sequence[str]) -> str:
    counts = {code: codes.count(code) for code in dict.fromkeys(codes)}
    words = [
        f"{printable(code)} ({count})" if count > 1 else printable(code)
        for code, count in counts.items()
    ]
    more = len(words) - _CODES_SHOWN
    return ", ".join(words[:_CODES_SHOWN]) + (f" and {more} more" if more > 0 else "")
