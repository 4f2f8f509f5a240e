"""The report of one trace as text: coverage, the verdict, then findings ranked.

By default it is about a screen: as many findings in full as fit, of the others a line. ``verbose``
shows everything there is.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyze.engine.result import Checked, Finding, Level, TraceReport, uncaptured
from analyze.report.baseline_words import REMOVE, baseline_lines, shown_findings
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.report.coverage_text import coverage_in_short, coverage_lines, reservations
from analyze.report.finding_words import (
    MARKS,
    Pair,
    closing_line,
    minor_title,
    savings_in_short,
    sentences,
    short_sentences,
    state_word,
    tally,
    unanswered,
    unanswered_in_short,
)
from analyze.report.formats import Rendering
from analyze.report.next_command import next_command
from analyze.report.verdict import Group, Order, groups, order_of, verdict
from analyze.words import counted, printable, visible

SCREEN_LINES = 40
"""Lines that a report of one trace should not exceed, findings in full included."""

MOST_IN_FULL = 5
MOST_IN_A_LINE = 12
_MOST_RESERVATIONS = 4
_LABEL = len("not applicable")

MOST_REPORTS = 3
"""Traces whose reports are printed one below the other; of more each gets its verdict."""

_STYLES: dict[Level, str] = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_ONE_LINE = frozenset({"explains", "not applicable", "note"})
"""Labels of sentences that a short report cuts to one line."""


def write_text(reports: Sequence[TraceReport], rendering: Rendering) -> str:
    """Return reports of findings as text, traces side by side below them; the format ``text``."""
    verbose, color = rendering.verbose, rendering.color
    if len(reports) == 1 and not uncaptured(reports):
        return render_report(reports[0], verbose=verbose, color=color)
    # Most runs show one trace and need nothing of this.
    from analyze.report.captures_text import render_captures, render_traces  # noqa: PLC0415

    if verbose or len(reports) <= MOST_REPORTS:
        texts = [render_report(report, verbose=verbose, color=color) for report in reports]
        return "\n".join(texts) + render_captures(reports, color=color)
    verdicts = [_render_verdict(report, color=color) for report in reports]
    table = render_traces(reports, color=color)
    return "\n".join(verdicts) + table + _render_tally(reports, color=color)


def render_report(report: TraceReport, *, verbose: bool = False, color: bool = False) -> str:
    """Return the report as text.

    Args:
        report: the result to render.
        verbose: all evidence, all columns, and the rules that passed; otherwise about a screen.
        color: use terminal colours; the text says the same without them.
    """
    if verbose:
        return _laid_out(partial(_print_everything, report=report), color=color)
    return _on_a_screen(report, color=color)


def _laid_out(show: Callable[[Console], None], *, color: bool) -> str:
    console = buffer_console(color=color)
    show(console)
    return rendered(console)


def _on_a_screen(report: TraceReport, *, color: bool) -> str:
    """Return the report with as many of the first findings in full as a screen has room for."""
    order = order_of(report)
    leading = order.problems or order.benign
    top = _laid_out(partial(_print_top, report=report), color=color)
    in_full = [
        _laid_out(partial(_print_in_full, finding=finding), color=color)
        for finding in leading[:MOST_IN_FULL]
    ]
    end = _laid_out(partial(_print_end, report=report), color=color)
    while True:
        others = partial(_print_rest, order=order, leading=leading[len(in_full) :])
        text = "".join((top, *in_full, _laid_out(others, color=color), end))
        if text.count("\n") <= SCREEN_LINES or len(in_full) < 2:
            return text
        in_full.pop()


def _print_title(console: Console, report: TraceReport) -> None:
    console.print(Text(printable(report.trace), style="bold"), soft_wrap=True)


def _print_everything(console: Console, report: TraceReport) -> None:
    _print_title(console, report)
    lines = coverage_lines(report.coverage, report.quality)
    print_pairs(console, [*lines, ("verdict", printable(verdict(report)))])
    for finding in shown_findings(report, verbose=True):
        console.print()
        print_finding(console, finding, verbose=True)
    unsaid = [*baseline_lines(report), *unanswered(report)]
    if unsaid:
        console.print()
        print_pairs(console, (pair for pair in unsaid if pair[0] != REMOVE))
        _print_commands(console, unsaid)
    if report.passed:
        passed = ", ".join(map(_passed, report.passed))
        console.print(Text(f"\nRules that hold: {passed}"))
    _print_closing_line(console, report)


def _passed(rule: Checked) -> str:
    undecided = f" ({rule.undecided_rows:,} rows undecided)" if rule.undecided_rows else ""
    return f"{printable(f'{rule.code} {rule.name}')}{undecided}"


def print_finding(console: Console, finding: Finding, *, verbose: bool) -> None:
    """Print one finding: what was expected, observed and is to do, with its evidence."""
    _print_heading(console, finding)
    print_pairs(console, sentences(finding, verbose=verbose))


def _print_heading(console: Console, finding: Finding) -> None:
    heading = Text.assemble(_state(finding), "  ", _rule(finding), f"  {printable(finding.title)}")
    console.print(heading)


def _state(finding: Finding) -> Text:
    return Text(f"{MARKS[finding.severity]} {state_word(finding)}", _STYLES[finding.severity])


def _rule(finding: Finding, count: int = 1) -> Text:
    text = Text(printable(f"{finding.code} {finding.name}"), style="bold")
    return text.append(f" x{count:,}", style="not bold") if count > 1 else text


def _print_top(console: Console, report: TraceReport) -> None:
    _print_title(console, report)
    lines = coverage_in_short(report.coverage, report.quality)
    _print_short_pairs(console, [*lines, ("verdict", printable(verdict(report)))])


def _print_in_full(console: Console, finding: Finding) -> None:
    console.print()
    _print_heading(console, finding)
    _print_short_pairs(console, short_sentences(finding))


def _print_rest(console: Console, order: Order, leading: Sequence[Finding]) -> None:
    """Print a line for each of the findings that are not shown in full."""
    benign = order.benign if order.problems else ()
    _print_lines(console, "", leading)
    _print_lines(console, minor_title(order.bound_by), order.minor)
    _print_lines(console, "", benign)


def _print_lines(console: Console, title: str, findings: Sequence[Finding]) -> None:
    """Print a paragraph with a line for each rule that found something, below a title if any."""
    if not findings:
        return
    console.print()
    if title:
        console.print(Text(title))
    _print_groups(console, findings)


def _print_groups(console: Console, findings: Sequence[Finding], indent: str = "") -> None:
    in_lines = groups(findings)
    shown = in_lines[:MOST_IN_A_LINE]
    says_savings = any(savings_in_short(group.first) for group in shown)
    grid = _grid(4 if says_savings else 3)
    for group in shown:
        state = Text(indent).append_text(_state(group.first))
        saved = [savings_in_short(group.first)] if says_savings else []
        grid.add_row(state, _rule(group.first, group.count), *saved, _line(group))
    if in_lines:
        console.print(grid)
    if len(in_lines) > MOST_IN_A_LINE:
        more = counted(len(in_lines) - MOST_IN_A_LINE, "more rule")
        console.print(Text(f"{indent}and {more}"))


def _line(group: Group) -> Text:
    return _cut_to_line(group.first.because or group.first.message)


def _print_end(console: Console, report: TraceReport) -> None:
    console.print()
    _print_short_pairs(console, [*baseline_lines(report), *unanswered_in_short(report)])
    everything = "--verbose shows all there is"
    step = next_command(report)
    words = f"{step[1]} ({everything}):" if step else everything
    grid = _grid(2)
    grid.add_row(Text(f"  {'next':<{_LABEL}}"), Text(words))
    console.print(grid)
    if step:
        _print_command(console, "", step[0], _LABEL)
    _print_closing_line(console, report)


def _print_closing_line(console: Console, report: TraceReport) -> None:
    console.print(Text("\n" + closing_line(report), style="bold"))


def _render_verdict(report: TraceReport, *, color: bool) -> str:
    """Return the report of one of many traces: its verdict, and a line for each finding."""
    console = buffer_console(color=color)
    _print_title(console, report)
    unsure = islice(reservations(report.coverage, report.quality), _MOST_RESERVATIONS)
    pairs = [("verdict", printable(verdict(report))), *unsure, *baseline_lines(report)]
    _print_short_pairs(console, pairs)
    order = order_of(report)
    _print_groups(console, (*order.problems, *order.minor), indent="  ")
    return rendered(console)


def _render_tally(reports: Sequence[TraceReport], *, color: bool) -> str:
    console = buffer_console(color=color)
    words = f"\n{counted(len(reports), 'trace')}: {tally(reports)}; --verbose shows each in full"
    console.print(Text(words, style="bold"))
    return rendered(console)


def _print_short_pairs(console: Console, pairs: Iterable[Pair]) -> None:
    """Print labelled sentences as :func:`print_pairs` does, those of ``_ONE_LINE`` cut."""
    grid, pairs = _grid(2), list(pairs)
    grid.columns[0].style = "dim"
    for label, sentence in pairs:
        if label == REMOVE:
            continue
        style = "bold" if label == "verdict" else ""
        words = _cut_to_line(sentence) if label in _ONE_LINE else Text().append(sentence, style)
        grid.add_row(Text(f"  {label}"), words)
    console.print(grid)
    _print_commands(console, pairs)


def _print_commands(console: Console, pairs: Sequence[Pair]) -> None:
    """Print those of labelled sentences that are commands, below the others."""
    width = max((len(label) for label, _ in pairs), default=0)
    for label, command in pairs:
        if label == REMOVE:
            _print_command(console, label, command, width)


def _print_command(console: Console, label: str, command: str, width: int) -> None:
    """Print a command; one that is longer than a line stays in one piece, to be copied."""
    line = Text(f"  {label:<{width}}", style="dim").append(f"  {visible(command)}", style="not dim")
    console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _grid(columns: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    for _ in range(columns - 1):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _cut_to_line(text: str) -> Text:
    return Text(printable(text), no_wrap=True, overflow="ellipsis")
