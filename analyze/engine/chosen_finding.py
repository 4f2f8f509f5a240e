"""Which finding of a report is meant by a word from the command line."""

from analyze.engine.result import Finding, TraceReport
from analyze.errors import AnalyzeError
from analyze.words import closest, counted, printable

_LONGEST_NUMBER = 9
_MOST_NAMED = 10


def chosen_number(report: TraceReport, word: str) -> int:
    """Return the number of a finding in a report, from 1 as in its JSON; of several the first.

    Args:
        report: the findings.
        word: a number, a code, a rule's name, or how a fingerprint begins.

    Raises:
        AnalyzeError: there is none, or several have a fingerprint that begins so.
    """
    numbered = dict(enumerate(report.findings, start=1))
    if word.isascii() and word.isdecimal() and int(word[:_LONGEST_NUMBER]) in numbered:
        return int(word[:_LONGEST_NUMBER])
    for number, finding in numbered.items():
        if word.upper() == finding.code or word == finding.name:
            return number
    begun = [n for n, finding in numbered.items() if word and finding.fingerprint.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    what = "several fingerprints begin with" if begun else "no finding"
    raise AnalyzeError(f"{report.trace}: {what} {printable(word)}: {_those(report.findings, word)}")


def _those(findings: tuple[Finding, ...], word: str) -> str:
    if not findings:
        return "nothing was found in it"
    codes = list(dict.fromkeys(finding.code for finding in findings))
    more = ", ..." if len(codes) > _MOST_NAMED else ""
    close = closest(word.upper(), codes)
    hint = f"; did you mean {close}?" if close else ""
    named = ", ".join(codes[:_MOST_NAMED])
    return f"it has {counted(len(findings), 'finding')}: {named}{more}{hint}"
