"""What a report comes to, in one sentence, and in which order a short report tells it.

Savings of several findings overlap: what ends a copy may also end the wait behind it. They are
named one by one, each with the time it is a share of, and never added up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from analyze.engine.result import Finding, TraceReport
from analyze.report.baseline_words import known_findings, shown_findings
from analyze.report.finding_words import called, savings, state_word
from analyze.report.gpu_time_words import (
    idle_share,
    mostly_communication,
    unexplained_idle,
    what_dominates,
)
from analyze.words import counted

_WAITING = "idle"
"""Category of the rules that find a GPU waiting for its host."""

_MOST = 0.5
"""Share of the GPU's time that is most of it."""

_GUESSED = "guess"
"""Category of the rules that guess files are compiled to."""

_OF_THE_DEVICE = "occupancy"
"""Category of the rules that ask how well a kernel fills the GPU."""


@dataclass(frozen=True)
class Group:
    """Findings that a short report tells in one line: of one rule, state and reason.

    Attributes:
        first: the highest ranked of them.
        count: how many there are.
    """

    first: Finding
    count: int


@dataclass(frozen=True)
class Order:
    """The findings of a report in the order a short report tells them.

    Consequences are left out, and what a baseline knows.

    Attributes:
        problems: what is wrong, ranked.
        minor: what hardly matters while ``bound_by`` holds.
        benign: what only looks wrong.
        bound_by: the finding that the GPU mostly waits; None where it does not.
    """

    problems: tuple[Finding, ...]
    minor: tuple[Finding, ...]
    benign: tuple[Finding, ...]
    bound_by: Finding | None


def order_of(report: TraceReport) -> Order:
    """Return the findings of a report in the order a short report tells them.

    Where the GPU is idle for most of the time and an error of the rules on idle time says so, how
    well its kernels fill it hardly matters: such findings come last.
    """
    top = shown_findings(report, verbose=False)
    found = [finding for finding in top if finding.state != "benign"]
    waits = idle_share(report) >= _MOST
    bound_by = next((finding for finding in found if waits and _is_waiting(finding)), None)
    minor = [f for f in found if bound_by is not None and f.category == _OF_THE_DEVICE]
    return Order(
        problems=tuple(finding for finding in found if finding not in minor),
        minor=tuple(minor),
        benign=tuple(finding for finding in top if finding.state == "benign"),
        bound_by=bound_by,
    )


def groups(findings: Iterable[Finding]) -> list[Group]:
    """Return findings grouped by rule, state and reason, in the order of the first of each."""
    found: dict[tuple[str, str, str | None], list[Finding]] = {}
    for finding in findings:
        key = finding.code, state_word(finding), finding.because
        found.setdefault(key, []).append(finding)
    return [Group(members[0], len(members)) for members in found.values()]


def verdict(report: TraceReport) -> str:
    """Return what a report comes to: how much was found, and where most could be saved.

    It says too what no finding tells: that the GPU is idle for much of the time; where nothing was
    found, what its time goes to; which guesses hold.
    """
    found, held = _found(report), _guesses_held(report)
    return f"{found.removesuffix('.')}. {held}." if held else found


def _guesses_held(report: TraceReport) -> str:
    """Say how many guesses hold; nothing where none does."""
    held = sum(rule.category == _GUESSED for rule in report.passed)
    wrong = len({finding.code for finding in report.findings if finding.category == _GUESSED})
    if not held:
        return ""
    if wrong:
        return f"{held:,} of {held + wrong:,} guesses hold"
    return counted(held, "guess holds", "guesses hold")


def _found(report: TraceReport) -> str:
    found = [f for f in report.findings if f.state != "benign" and not f.is_known]
    if found:
        return f"{'. '.join(_sentences(report, found))}."
    if report.why_nothing is not None:
        return report.why_nothing
    of_the_gpu = unexplained_idle(report) or what_dominates(report)
    said = [_nothing_found(report), *filter(None, (of_the_gpu, mostly_communication(report)))]
    return f"{'. '.join(said)}." if len(said) > 1 else said[0]


def _nothing_found(report: TraceReport) -> str:
    known = len(known_findings(report))
    nothing = f"nothing but {counted(known, 'known finding')}" if known else "nothing found"
    held = f"{nothing}: {counted(len(report.passed), 'rule holds', 'rules hold')}"
    benign = sum(finding.state == "benign" for finding in report.findings)
    looks = "1 thing looks wrong and is" if benign == 1 else f"{benign} things look wrong and are"
    return f"{held}; {looks} benign" if benign else held


def _sentences(report: TraceReport, found: Sequence[Finding]) -> Iterator[str]:
    yield f"{counted(len(found), 'finding')}: {_tally(found)}{_explained(found)}"
    of_the_gpu = unexplained_idle(report)
    if of_the_gpu is None and all(finding.severity == "info" for finding in found):
        of_the_gpu = what_dominates(report)  # nothing found is worth much: say what is
    yield from filter(None, (of_the_gpu, mostly_communication(report)))
    order = order_of(report)
    first = (*order.problems, *order.minor, *found)[0]
    if first.is_about_recording:
        yield f"The recording itself comes first: {called(first)}"
    saving = [f for f in (*order.problems, *order.minor) if savings(f) is not None]
    if not saving:
        if not first.is_about_recording:
            yield f"Begin with {called(first)}; what it costs is unknown"
        return
    waiting = order.bound_by is not None
    bases = ("cpu",) if waiting else ("cpu", "gpu")
    most = [_most(saving, base) for base in bases]
    named = sorted((finding for finding in most if finding is not None), key=lambda f: f.rank)
    told = named or saving[:1]
    yield "Most to save: " + "; ".join(f"{called(f)}, {savings(f)}" for f in told)
    if waiting:
        yield "While the GPU waits, less work for it saves little"
    elif len(saving) > 1:
        yield "Savings overlap: do not add them up"


def _tally(found: Sequence[Finding]) -> str:
    words = [state_word(finding) for finding in found]
    return ", ".join(_count(word, words.count(word)) for word in dict.fromkeys(words))


def _count(word: str, count: int) -> str:
    return counted(count, word) if word in ("error", "warning") else f"{count:,} {word}"


def _explained(found: Sequence[Finding]) -> str:
    consequences = sum(finding.explained_by is not None for finding in found)
    if not consequences:
        return ""
    causes = ", ".join(dict.fromkeys(called(finding) for finding in found if finding.folded))
    return f", {consequences} explained by {causes}"


def _most(saving: Sequence[Finding], base: str) -> Finding | None:
    """Return the finding with the most savings of one base; times of two cannot be compared."""
    of_base = [finding for finding in saving if (finding.savings_of or "gpu") == base]
    return max(of_base, key=lambda finding: finding.savings_us or 0.0, default=None)


def _is_waiting(finding: Finding) -> bool:
    is_error = finding.severity == "error" and finding.state == "mismatch"
    return finding.category == _WAITING and is_error
