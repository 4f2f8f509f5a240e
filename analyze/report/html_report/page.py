"""What the page says, in words, from the results alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from analyze.engine.result import Finding, TraceReport, uncaptured, unread
from analyze.report.baseline_words import baseline_lines, known_findings, shown_findings
from analyze.report.captures_text import side_by_side
from analyze.report.compare_words import count_word
from analyze.report.coverage_text import coverage_lines
from analyze.report.finding_words import Pair, closing_line, minor_title, unanswered
from analyze.report.html_report.budget import drawn
from analyze.report.html_report.comparison import Comparison, comparison_of
from analyze.report.html_report.families import Families, families_of
from analyze.report.html_report.findings import MAX_FINDINGS, FindingCard, cards
from analyze.report.html_report.kernels import Kernels, kernels_of
from analyze.report.html_report.timeline import TimelineView, timeline_of, window_of
from analyze.report.next_command import next_command
from analyze.report.verdict import order_of, verdict
from analyze.report.views.model import Views, views_of
from analyze.tables.units import unit_name
from analyze.words import counted, duration, printable, share

_GUESS = "GUESS"
_MOST_UNREAD = 20


@dataclass(frozen=True)
class Tile:
    """A number at the top, and what it is."""

    value: str
    label: str


@dataclass(frozen=True)
class TracePage:
    """Everything about one trace.

    Attributes:
        findings, minor, benign: what is wrong, what hardly matters and what only looks wrong.
        why_minor: why some hardly matter.
        more_guesses, more_findings, more_known: how many have no card; empty for none.
    """

    id: str
    name: str
    path: str
    css: str
    verdict: str
    tally: str
    next_command: tuple[str, str] | None
    tiles: list[Tile]
    coverage: list[Pair]
    guesses: list[FindingCard]
    more_guesses: str
    findings: list[FindingCard]
    why_minor: str
    minor: list[FindingCard]
    benign: list[FindingCard]
    more_findings: str
    known: list[FindingCard]
    more_known: str
    known_title: str
    rules: list[Pair]
    has_views: bool
    is_drawn: bool
    timeline: TimelineView | None
    families: Families | None
    kernels: Kernels | None


@dataclass(frozen=True)
class Page:
    """The page.

    Attributes:
        title: the name of the trace, or how many there are.
        unread: traces that could not be read, and why; the first says how many.
        traces: in the order of the reports.
        left_out: of how many traces timeline and kernels are not on it; empty for none.
        comparison: the traces side by side.
    """

    title: str
    unread: list[str]
    traces: list[TracePage]
    left_out: str
    comparison: Comparison | None


def page_of(reports: Sequence[TraceReport]) -> Page:
    """Return the page of at least one report.

    Args:
        reports: in the order of the page.

    Raises:
        AnalyzeError: a stored result holds views that this version does not write.
    """
    columns, rows = side_by_side(reports)
    views = [views_of(report) for report in reports]
    is_drawn = drawn(reports)
    names = [printable(row["name"]) for row in rows]
    traces = [
        _trace_page(f"trace-{number}", name, report, view, is_drawn=is_drawn[number - 1])
        for number, (name, report, view) in enumerate(zip(names, reports, views, strict=True), 1)
    ]
    title = names[0] if len(names) == 1 else f"{len(names)} traces"
    left_out = _left_out(is_drawn.count(False), len(names))
    return Page(
        title,
        _unread(reports),
        traces,
        left_out,
        comparison_of(columns, rows, views, uncaptured(reports)),
    )


def _unread(reports: Sequence[TraceReport]) -> list[str]:
    failed = unread(reports)
    if not failed:
        return []
    title = f"Not checked: {counted(len(failed), 'trace')}"
    more = len(failed) - _MOST_UNREAD
    rest = [f"and {more:,} more"] if more > 0 else []
    return [title, *(printable(entry.message) for entry in failed[:_MOST_UNREAD]), *rest]


def _left_out(traces: int, of_all: int) -> str:
    if not traces:
        return ""
    return (
        f"Timeline and kernels of {traces:,} of {of_all:,} traces are left out, to keep this page"
        " small; those with the gravest findings have them."
    )


def _trace_page(
    id_: str, name: str, report: TraceReport, views: Views | None, *, is_drawn: bool
) -> TracePage:
    known, news = known_findings(report), shown_findings(report, verbose=False)
    guesses = [finding for finding in news if finding.code.startswith(_GUESS)]
    order = order_of(report)
    findings = _without_guesses((*order.problems, *order.minor, *order.benign))
    unit = unit_name(report.unit.name)
    listed = findings[:MAX_FINDINGS]
    problems = [finding for finding in listed if finding in order.problems]
    minor = [finding for finding in listed if finding in order.minor]
    benign = [finding for finding in listed if finding in order.benign]
    shown = [*guesses[:MAX_FINDINGS], *problems, *minor, *benign, *known[:MAX_FINDINGS]]
    numbers = count()
    timeline = views.timeline if views and is_drawn else None
    window = window_of(timeline) if timeline else None
    return TracePage(
        id=id_,
        name=name,
        path=printable(report.trace),
        css=_css(report),
        verdict=_sentence(printable(verdict(report))),
        tally=closing_line(report),
        next_command=next_command(report),
        tiles=_tiles(report, unit),
        coverage=list(coverage_lines(report.coverage, report.quality)),
        guesses=cards(guesses[:MAX_FINDINGS], window, numbers),
        more_guesses=_more(guesses, "finding"),
        findings=cards(problems, window, numbers),
        why_minor=minor_title(order.bound_by),
        minor=cards(minor, window, numbers, most_open=0),
        benign=cards(benign, window, numbers),
        more_findings=_more(findings, "finding"),
        known=cards(known[:MAX_FINDINGS], window, numbers, most_open=0),
        more_known=_more(known, "known finding"),
        known_title=_known_title(report, len(known)),
        rules=[*baseline_lines(report), *unanswered(report), *_passed(report)],
        has_views=views is not None,
        is_drawn=is_drawn,
        timeline=timeline_of(timeline, shown, unit) if timeline else None,
        families=families_of(views.families) if views else None,
        kernels=kernels_of(views.kernels, unit) if views and is_drawn else None,
    )


def _without_guesses(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if not finding.code.startswith(_GUESS)]


def _more(findings: Sequence[Finding], noun: str) -> str:
    """Say how many findings have no card; nothing where all have one."""
    more = len(findings) - MAX_FINDINGS
    return f"and {counted(more, f'more {noun}')}" if more > 0 else ""


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _css(report: TraceReport) -> str:
    """Return the class of the verdict: the severest finding that is neither benign nor known."""
    news = [finding for finding in report.findings if not finding.is_known]
    found = [finding.severity for finding in news if finding.state != "benign"]
    for level in ("error", "warning", "info"):
        if level in found:
            return level
    return "unknown" if report.why_nothing is not None else "ok"


def _known_title(report: TraceReport, count: int) -> str:
    words = counted(count, "known finding")
    return f"{words}, in the baseline {printable(report.baseline or '')}"


def _passed(report: TraceReport) -> list[Pair]:
    if not report.passed:
        return []
    return [("hold", printable(", ".join(f"{r.code} {r.name}" for r in report.passed)))]


def _tiles(report: TraceReport, unit: str) -> list[Tile]:
    """Return the amounts of a median forward; what the trace does not know is left out."""
    coverage = report.coverage
    median = coverage["forward_median"]
    per = "of the whole trace" if unit == "trace" else f"/ {unit}, median"
    tiles = [Tile(duration(median["cpu_us"]), f"CPU {per}")] if median["cpu_us"] else []
    if not coverage["gpu_ops"]:
        return tiles
    span, busy = coverage["gpu_span_us"], coverage["gpu_busy_us"]
    if median["gpu_busy_us"] is not None:
        tiles.append(Tile(duration(median["gpu_busy_us"]), f"GPU busy {per}"))
    tiles += [
        Tile(count_word(median[key]), f"{key} / {unit}")
        for key in ("kernels", "copies", "launches", "syncs")
        if median[key] is not None
    ]
    tiles.append(Tile(share(busy / span if span else None), "GPU busy, first to last work"))
    tiles.append(Tile(share(coverage["linked_share"]), "of GPU ops linked to a launch"))
    return tiles
