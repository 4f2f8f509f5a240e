"""What the page says, in words, from the results alone."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from analyze.engine.result import TraceReport, Uncaptured, uncaptured
from analyze.report.baseline_words import baseline_lines
from analyze.report.captures_text import side_by_side
from analyze.report.compare import add_relative
from analyze.report.compare_words import NUMBERS, Cell, absence, count_word, notes, paths
from analyze.report.coverage_text import coverage_lines
from analyze.report.finding_words import Pair, closing_line, unanswered
from analyze.report.html_report.families import Families, Part, families_of, parts_of
from analyze.report.html_report.findings import MAX_FINDINGS, FindingCard, cards, top_level
from analyze.report.html_report.groups import Group
from analyze.report.html_report.kernels import Kernels, kernels_of
from analyze.report.html_report.timeline import TimelineView, timeline_of, window_of
from analyze.report.verdict import verdict
from analyze.report.views.model import Views, views_of
from analyze.words import counted, duration, printable, share

_GUESS = "GUESS"
_UNITS = {"ProfilerStep": "step", "trace": "trace"}


@dataclass(frozen=True)
class Tile:
    """A number at the top, and what it is."""

    value: str
    label: str


@dataclass(frozen=True)
class TracePage:
    """Everything about one trace."""

    id: str
    name: str
    path: str
    css: str
    verdict: str
    tally: str
    tiles: list[Tile]
    coverage: list[Pair]
    guesses: list[FindingCard]
    findings: list[FindingCard]
    more_findings: str
    rules: list[Pair]
    has_views: bool
    timeline: TimelineView | None
    families: Families | None
    kernels: Kernels | None


@dataclass(frozen=True)
class Bar:
    """GPU busy time of a forward of one trace, to the scale of all."""

    name: str
    parts: list[Part]
    words: str


@dataclass(frozen=True)
class Comparison:
    """Traces side by side.

    Attributes:
        headings, rows: the table; the first cell of a row is the name.
        bars: one for each trace; none where a trace has no GPU busy time.
        groups: those in the bars, for the legend.
        notes: what to know before comparing.
        absent: captures without a trace, and why.
    """

    headings: list[str]
    rows: list[list[str]]
    bars: list[Bar]
    groups: list[Group]
    notes: list[str]
    absent: list[str]


@dataclass(frozen=True)
class Page:
    """The page."""

    title: str
    traces: list[TracePage]
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
    names = [printable(row["name"]) for row in rows]
    traces = [
        _trace_page(f"trace-{number}", name, report, view)
        for number, (name, report, view) in enumerate(zip(names, reports, views, strict=True), 1)
    ]
    title = names[0] if len(names) == 1 else f"{len(names)} traces"
    return Page(title, traces, _comparison(columns, rows, views, uncaptured(reports)))


def _trace_page(id_: str, name: str, report: TraceReport, views: Views | None) -> TracePage:
    guesses = [finding for finding in report.findings if finding.code.startswith(_GUESS)]
    findings = [finding for finding in report.findings if finding not in guesses]
    unit = _UNITS.get(report.unit.name, "forward")
    more = len(top_level(findings)) - MAX_FINDINGS
    timeline = views.timeline if views else None
    window = window_of(timeline) if timeline else None
    return TracePage(
        id=id_,
        name=name,
        path=printable(report.trace),
        css=_css(report),
        verdict=_sentence(printable(verdict(report))),
        tally=closing_line(report),
        tiles=_tiles(report, unit),
        coverage=list(coverage_lines(report.coverage, report.quality)),
        guesses=cards(guesses, window),
        findings=cards(findings, window),
        more_findings=f"and {counted(more, 'more finding')}" if more > 0 else "",
        rules=[*baseline_lines(report), *unanswered(report), *_passed(report)],
        has_views=views is not None,
        timeline=timeline_of(timeline, report.findings, unit) if timeline else None,
        families=families_of(views.families) if views else None,
        kernels=kernels_of(views.kernels) if views else None,
    )


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


def _passed(report: TraceReport) -> list[Pair]:
    if not report.passed:
        return []
    return [("as guessed", printable(", ".join(f"{r.code} {r.name}" for r in report.passed)))]


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


def _comparison(
    columns: dict[str, Cell],
    rows: list[dict[str, Any]],
    views: Sequence[Views | None],
    absent: Sequence[Uncaptured],
) -> Comparison | None:
    if len(rows) + len(absent) < 2:
        return None
    relative = add_relative(rows, None)
    if relative is not None:
        columns = {**columns, "relative": NUMBERS["relative"]}
    compared = [view.compared for view in views if view is not None]
    said: list[str] = []
    if len(compared) == len(rows):
        for row, more in zip(rows, compared, strict=True):
            row.update(asdict(more))
        columns = {**columns, **paths()}
        said = list(notes({"traces": rows, "relative_to": relative}))
    bars = _bars(rows, views)
    return Comparison(
        headings=list(columns),
        bars=bars,
        groups=list(dict.fromkeys(part.group for bar in bars for part in bar.parts)),
        rows=[[printable(row["name"]), *(cell(row) for cell in columns.values())] for row in rows],
        notes=said,
        absent=[absence(entry.name, entry.status, entry.reason) for entry in absent],
    )


def _bars(rows: Sequence[dict[str, Any]], views: Sequence[Views | None]) -> list[Bar]:
    known = [view for view in views if view is not None]
    if len(known) < len(rows) or not all(row["gpu_busy_us"] for row in rows):
        return []
    longest = max(row["gpu_busy_us"] for row in rows)
    return [
        Bar(
            name=printable(row["name"]),
            parts=parts_of(view.families, row["gpu_busy_us"] / longest),
            words=duration(row["gpu_busy_us"]),
        )
        for row, view in zip(rows, known, strict=True)
    ]
