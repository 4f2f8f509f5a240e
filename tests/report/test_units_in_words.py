"""Every writer calls what a forward is in a trace by one word: a forward, a step or the trace."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.run import run_rules
from analyze.report.compare import compare
from analyze.report.compare_markdown import compare_markdown
from analyze.report.compare_text import render_compare
from analyze.report.diff import Side, diff
from analyze.report.diff_markdown import diff_markdown
from analyze.report.diff_text import render_diff
from analyze.report.formats import Rendering, render
from tests.conftest import MakeTrace
from tests.report.test_html import parsed, text_of
from tests.tables.test_attribution import kernel, launch, mark

RULES = load_rules(tests=False)

Data = dict[str, Any]
Unit = Callable[[int], list[Data]]
"""Returns what marks the unit that holds the launches of one forward."""

UNITS: dict[str, Unit] = {
    "forward": lambda number: [mark("attn_fwd", 1000 * number, 900)],
    "step": lambda number: [mark(f"ProfilerStep#{number}", 1000 * number, 900)],
    "trace": lambda _number: [],
}
WORDS = {
    "forward": ("medians of a forward", "per forward, median", "3 forwards (attn_fwd)"),
    "step": ("medians of a step", "per step, median", "3 steps (ProfilerStep)"),
    "trace": ("amounts of the whole trace", "of the whole trace", "the whole trace"),
}


def side(make_trace: MakeTrace, unit: str, dur: float) -> Side:
    """Three forwards of one kernel each, whose times differ a little."""
    events = []
    for number in range(1, 4):
        start = 1000 * number
        events += UNITS[unit](number)
        events += [launch(number, start + 10), kernel(number, start + 50, dur + number)]
    trace = make_trace(events)
    return trace, run_rules(trace, RULES)


def other_words(text: str, unit: str) -> set[str]:
    """Return the words of other units with which ``text`` says what an amount is of."""
    others = set(UNITS) - {unit}
    said = (f"{before} {other}" for other in others for before in ("of a", "of one", "per"))
    return {words for words in said if words in text}


@pytest.mark.parametrize("unit", UNITS)
def test_compare_and_diff(unit: str, make_trace: MakeTrace) -> None:
    before, after = side(make_trace, unit, 100.0), side(make_trace, unit, 200.0)
    of_each, per_each, units = WORDS[unit]
    compared, differing = compare([before, after]), diff(before, after)
    for text in (render_compare(compared), compare_markdown(compared)):
        assert of_each in text
        assert not other_words(text, unit)
    for text in (render_diff(differing), diff_markdown(differing, limit=8)):
        assert per_each in text
        assert units in " ".join(text.replace("`", "").split())
        assert not other_words(text, unit)


@pytest.mark.parametrize("unit", UNITS)
def test_reports_side_by_side(unit: str, make_trace: MakeTrace) -> None:
    reports = [
        dataclasses.replace(side(make_trace, unit, dur)[1], trace=f"{number}.json")
        for number, dur in enumerate((100.0, 200.0, 300.0, 400.0))
    ]
    for name in ("text", "markdown"):
        assert WORDS[unit][0] in render(name, reports, Rendering())
    page = text_of(parsed(render("html", reports[:2], Rendering())))
    assert f"{WORDS[unit][0].capitalize()}." in page
    assert not other_words(page, unit)


def test_where_units_differ_each_is_a_forward_and_that_is_said(make_trace: MakeTrace) -> None:
    before, after = side(make_trace, "forward", 100.0), side(make_trace, "step", 100.0)
    data = compare([before, after])
    for text in (render_compare(data), compare_markdown(data)):
        assert "medians of a forward" in text
        assert "a forward is not the same thing in all: " in text
    text = " ".join(render_diff(diff(before, after)).split())
    assert "per forward, median" in text
    assert "3 steps (ProfilerStep)" in text
    assert "a forward is not the same thing in both" in text
