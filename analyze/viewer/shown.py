"""Which moment of a trace the viewer is to show for a finding."""

from collections.abc import Mapping
from difflib import get_close_matches

from analyze.annotate.arrows import Thread
from analyze.annotate.slices import Slice, recorded_time, slices_of
from analyze.engine.result import Finding, TraceReport
from analyze.errors import AnalyzeError
from analyze.kernels.display import shorten
from analyze.report.finding_words import closing_line
from analyze.tables.build import Trace
from analyze.viewer.link import Moment
from analyze.words import duration, printable

_MOST_NAMED = 10
_LONG_NAME = 60


def choose_finding(report: TraceReport, chosen: str | None) -> int | None:
    """Return the number of a finding in the report, from 1; None where nothing was found.

    Args:
        report: the findings.
        chosen: a number, or a code, or a rule's name; None is the first finding.

    Raises:
        AnalyzeError: there is no such finding.
    """
    if chosen is None:
        return 1 if report.findings else None
    if chosen.isascii() and chosen.isdigit():
        number = int(chosen[:9])
        found = number if 1 <= number <= len(report.findings) else None
    else:
        numbered = enumerate(report.findings, start=1)
        found = next((n for n, finding in numbered if _is_called(finding, chosen)), None)
    if found is None:
        raise AnalyzeError(f"no finding {chosen[:80]} in {report.trace}: {_those(report, chosen)}")
    return found


def moment_of(
    number: int, report: TraceReport, trace: Trace, threads: Mapping[int, Thread] | None = None
) -> tuple[Slice, Moment]:
    """Return the first place of a finding, and the moment to show.

    Args:
        number: of the finding, from 1.
        report: the findings.
        trace: what they were found in.
        threads: where annotations are, by the number of the finding.
    """
    part = next(part for part in slices_of(report, trace).kept if part.number == number)
    first_ns, last_ns = recorded_time(trace)
    thread = (threads or {}).get(number, Thread(None, None))
    return part, Moment(part.start_ns, part.dur_ns, first_ns, last_ns, thread.pid, thread.tid)


def _is_called(finding: Finding, word: str) -> bool:
    return word.upper() == finding.code or word == finding.name


def _those(report: TraceReport, chosen: str) -> str:
    if not report.findings:
        return "nothing was found in it"
    codes = list(dict.fromkeys(finding.code for finding in report.findings))
    close = get_close_matches(chosen[:80].upper(), codes, n=1)
    more = ", ..." if len(codes) > _MOST_NAMED else ""
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"it has 1 to {len(report.findings)}, {', '.join(codes[:_MOST_NAMED])}{more}{hint}"


def describe(report: TraceReport, part: Slice | None = None) -> str:
    """Say what the viewer shows, in one line."""
    if part is None:
        return f"{closing_line(report)}; the whole trace"
    finding = part.finding
    sentence = f"finding {part.number} of {len(report.findings)}, {finding.code} {finding.name}"
    if part.place is None:
        return f"{sentence}, about the whole trace"
    total = max(finding.places_total, len(finding.places))
    at_us = duration(part.place.start_us)
    name = part.place.name
    shown = printable(shorten(name) if len(name) > _LONG_NAME else name)
    return f"{sentence}, place 1 of {total:,}: {shown} at {at_us}"
