"""One rule explained as text: what it says, and what became of the rows of a trace."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyze.engine.explain import (
    Documentation,
    Explanation,
    Funnel,
    GroupSeen,
    MeasureRange,
    NamedTest,
    Threshold,
)
from analyze.engine.result import Finding
from analyze.engine.templates import FORMATS
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.words import UNKNOWN, counted, printable, share, visible

_GROUPS_SHOWN = 3
_INDENT = (0, 0, 0, 2)
_OPTIONAL = re.compile(r"\[\?(.*?)\?\]", re.DOTALL)
_FIELD = re.compile(r"(?<!\{)\{([^{}]+)\}")
_STYLES = {"mismatch": "bold red", "intermittent": "yellow", "error": "bold red", "pass": "green"}


def render_explanation(explanation: Explanation, *, color: bool = False) -> str:
    """Return what the rule says, then the way of the rows if there is a trace, else its tests."""
    console = buffer_console(color=color)
    rule = explanation.rule
    heading = Text(f"{rule.code} {printable(rule.name)}", style="bold")
    console.print(heading.append(f"  {printable(rule.title)}", style="not bold"))
    print_pairs(console, ((label, visible(text)) for label, text in _sentences(rule)))
    if explanation.funnel is not None:
        _print_funnel(console, rule, explanation.funnel)
    else:
        _print_tests(console, rule)
    return rendered(console)


def _sentences(rule: Documentation) -> Iterator[tuple[str, str]]:
    yield "expected", rule.guess
    if rule.description:
        yield "about", " ".join(rule.description.split())
    yield from _what_it_looks_at(rule)
    yield from _how_it_judges(rule)
    yield from (("threshold", _threshold(threshold)) for threshold in rule.thresholds)
    yield from _what_follows(rule)
    tests = f", {counted(len(rule.tests), 'test')}" if rule.tests else ""
    told = f"{rule.status}, confidence {rule.confidence}, pack {rule.pack}, {rule.file}{tests}"
    yield "rule", told


def _what_it_looks_at(rule: Documentation) -> Iterator[tuple[str, str]]:
    yield "looks at", f"{rule.table} ({_lowered(rule.table_meaning)}), {_per(rule)}"
    for number, condition in enumerate(rule.where):
        yield "where" if number == 0 else "and", condition
    for requirement in rule.requires:
        yield "requires", f"{requirement.when}, else: {requirement.because}"


def _how_it_judges(rule: Documentation) -> Iterator[tuple[str, str]]:
    for name, written in rule.measures.items():
        yield "measures", f"{name} = {written}"
    if rule.expect is not None:
        yield "expects", rule.expect
        of_units = f"{share(rule.quorum)} of the units must mismatch; fewer is intermittent"
        yield "quorum", of_units
    yield "severity", ", else ".join(rule.severity)
    for benign in rule.benign:
        yield "benign", f"when {benign.when}: {benign.because}"
    for uncertain in rule.uncertain:
        yield "unsure", f"when {uncertain.when}: {uncertain.because}"


def _what_follows(rule: Documentation) -> Iterator[tuple[str, str]]:
    if rule.fix:
        yield from _advice(rule.fix)
    if rule.explains:
        yield "explains", ", ".join(rule.explains)
    yield from (("mind", problem) for problem in rule.known_problems)
    yield from (("see", reference) for reference in rule.references)


def _advice(fix: str) -> Iterator[tuple[str, str]]:
    """Yield what a rule advises always, and what only where it knows what to insert."""
    always = " ".join(_OPTIONAL.sub(" ", fix).split())
    if always:
        yield "do", _without_fields(always)
    for part in _OPTIONAL.findall(fix):
        yield "where so", _without_fields(part.strip())


def _without_fields(template: str) -> str:
    """Return a template as people read it: ``<name>`` for a value, the plural of a noun."""
    words = _FIELD.sub(_in_words, template)
    return words.replace("{{", "{").replace("}}", "}")


def _in_words(field: re.Match[str]) -> str:
    name, _, form = field[1].partition(":")
    return form.rpartition("|")[2] if "|" in form else f"<{name}>"


def _lowered(meaning: str) -> str:
    return meaning[:1].lower() + meaning[1:]


def _per(rule: Documentation) -> str:
    per = "in the whole trace" if rule.per == "trace" else f"per {rule.per}"
    return f"{per} and {', '.join(rule.group_by)}" if rule.group_by else per


def _threshold(threshold: Threshold) -> str:
    value = _constant(threshold.value)
    written = None if threshold.written is None else _constant(threshold.written)
    words = f"{threshold.name} = {value}"
    if threshold.changed_by is not None:
        words += f", set by {threshold.changed_by}"
        words += f" (the rule has {written})" if written else ""
    elif written not in (None, value):
        words += f", written as {written}"
    return f"{words}; {threshold.comment}" if threshold.comment else words


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(_constant, value))
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:g}"
    return str(value)


def _print_tests(console: Console, rule: Documentation) -> None:
    """Print the names of the rule's tests with the state that each asserts."""
    if not rule.tests:
        return
    console.print(Text("\nTests, which `analyze rules test` runs", style="bold"))
    print_pairs(console, ((_asserted(test), visible(test.name)) for test in rule.tests))


def _asserted(test: NamedTest) -> str:
    state = (test.state or "").replace("_", " ")
    return f"{state} (known gap)".lstrip() if test.todo else state


def _print_funnel(console: Console, rule: Documentation, funnel: Funnel) -> None:
    state = funnel.state.replace("_", " ")
    console.print(Text(f"\nIn {printable(funnel.trace)}: {state}", style="bold"))
    if funnel.state != "error":
        _print_rows(console, rule, funnel)
    for number, group in enumerate(funnel.groups[:_GROUPS_SHOWN], start=1):
        _print_group(console, rule, funnel, group, number)
    verdicts = [(label, printable(sentence)) for label, sentence in _verdicts(funnel)]
    if verdicts:
        console.print()
        print_pairs(console, verdicts)
    style = _STYLES.get(funnel.state, "bold")
    console.print(Text(f"\n{rule.code}: {printable(_conclusion(rule, funnel))}", style=style))


def _grid(first: str, *others: str) -> Table:
    grid = Table(box=None, pad_edge=False)
    grid.add_column(Text(first), overflow="fold")
    for heading in others:
        grid.add_column(Text(heading), justify="right", no_wrap=True)
    return grid


def _print_rows(console: Console, rule: Documentation, funnel: Funnel) -> None:
    """Print how many rows every condition leaves over."""
    grid = _grid("rows", "alone", "unknown", "so far", "")
    left = [funnel.rows, funnel.rows_in_units, *(step.so_far for step in funnel.conditions)]
    first_empty = left.index(0) if 0 in left else None
    marks = ["<- nothing left" if number == first_empty else "" for number in range(len(left))]
    grid.add_row(Text(rule.table), "", "", f"{funnel.rows:,}", marks[0])
    units = counted(funnel.units, printable(funnel.unit))
    inside = "in the trace" if funnel.unit == "trace" else f"in any of {units}"
    grid.add_row(Text(inside), "", "", f"{funnel.rows_in_units:,}", marks[1])
    for step, mark in zip(funnel.conditions, marks[2:], strict=True):
        numbers = (f"{count:,}" for count in (step.alone, step.unknown, step.so_far))
        grid.add_row(Text(printable(step.words)), *numbers, mark)
    console.print(Padding(grid, _INDENT))


def _print_group(
    console: Console, rule: Documentation, funnel: Funnel, group: GroupSeen, number: int
) -> None:
    console.print()
    if group.group:
        heading = f"group {number} of {funnel.group_count:,}: {_named(group.group)}"
        console.print(Padding(Text(heading), _INDENT))
    grid = _grid(f"per {printable(funnel.unit)}", "lowest", "median", "highest", "unknown")
    texts = [measure for measure in group.measures if isinstance(measure.middle, str)]
    numbers = [measure for measure in group.measures if measure not in texts]
    for measure in numbers:
        values = (measure.lowest, measure.middle, measure.highest)
        shown = (Text(printable(_value(measure, value))) for value in values)
        grid.add_row(Text(measure.name), *shown, f"{measure.unknown:,}")
    if numbers:
        console.print(Padding(grid, _INDENT))
    print_pairs(console, ((measure.name, _commonest(measure)) for measure in texts))
    if rule.expect is not None:
        print_pairs(console, [("expects", visible(f"{rule.expect}: {_counts(funnel, group)}"))])


def _counts(funnel: Funnel, group: GroupSeen) -> str:
    words = f"holds in {group.holds:,}, fails in {group.fails:,}, unknown in {group.unknown:,}"
    return f"{words} of {counted(funnel.units, funnel.unit)}"


def _named(group: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {printable(_cell(value))}" for key, value in group.items())


def _cell(value: Any) -> str:
    return UNKNOWN if value is None else str(value)


def _commonest(measure: MeasureRange) -> str:
    """Return a text as it is in most units, and in how many it is not known."""
    unknown = f" ({UNKNOWN} in {measure.unknown:,})" if measure.unknown else ""
    return f"{printable(str(measure.middle))}{unknown}"


def _value(measure: MeasureRange, value: Any) -> str:
    if value is None:
        all_flags = measure.lowest is None and measure.middle is not None
        return "" if all_flags else UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if measure.format in FORMATS:
        return FORMATS[measure.format](value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def _verdicts(funnel: Funnel) -> Iterator[tuple[str, str]]:
    if funnel.group_count > len(funnel.groups[:_GROUPS_SHOWN]):
        yield "groups", f"{funnel.group_count:,}; {_GROUPS_SHOWN} are shown, those that fail first"
    for seen in funnel.verdicts if funnel.matched else ():
        label = "benign" if seen.kind == "benign" else "unsure"
        if seen.rows is None:
            yield label, f"when {seen.when}: {seen.because}"
        else:
            needed = "; it takes all of a finding's rows" if seen.kind == "benign" else ""
            holds = f"holds for {seen.rows:,} of {seen.of_rows:,} matching rows{needed}"
            yield label, f"{seen.when}: {holds}"
    for finding in funnel.findings[:_GROUPS_SHOWN]:
        yield from _of_finding(finding)
    more = len(funnel.findings) - _GROUPS_SHOWN
    if more > 0:
        yield "found", f"{more:,} more"


def _of_finding(finding: Finding) -> Iterator[tuple[str, str]]:
    units = counted(finding.units_total, finding.per)
    state = f"{finding.severity}, {finding.state} in {finding.units_mismatching} of {units}"
    group = _named(finding.group)
    yield "found", f"{f'{group}: ' if group else ''}{state}: {finding.message}"
    if finding.because:
        yield "benign", f"because {finding.because}"
    for reason in finding.uncertain:
        yield "unsure", f"because {reason}; confidence {finding.confidence}"


def _conclusion(rule: Documentation, funnel: Funnel) -> str:
    """Return the answer in a sentence: why it fired, or why it did not."""
    if funnel.state == "not_applicable":
        return f"not applicable, because {funnel.reason}"
    if funnel.state == "error":
        return f"could not be evaluated: {funnel.reason}"
    if funnel.findings:
        first = funnel.findings[0]
        found = counted(len(funnel.findings), "finding")
        partly = f"; not applicable in part: {funnel.reason}" if funnel.reason else ""
        return f"{funnel.state}, {first.severity}, {found}{partly}"
    if funnel.matched == 0:
        return "pass, because no row matches" + _where_lost(funnel)
    if rule.expect is None:
        return "pass, because it expects nothing"
    return f"pass, because what it expects holds in every {funnel.unit}"


def _where_lost(funnel: Funnel) -> str:
    """Return which condition leaves nothing over, or that there was nothing to begin with."""
    if funnel.rows == 0:
        return ": the table has no rows"
    if funnel.rows_in_units == 0:
        return f": none belongs to a {funnel.unit}"
    lost = next(step for step in funnel.conditions if step.so_far == 0)
    unknown = f" ({lost.unknown:,} unknown)" if lost.unknown else ""
    return f": nothing is left after '{lost.words}'{unknown}"
