"""Rules are chosen by code, prefix, name or category; the more exact choice wins."""

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.selection import Ignore, Selection, find_rule, stale
from analyze.errors import AnalyzeError

RULES = load_rules(tests=False)


def chosen(selection: Selection) -> set[str]:
    return {rule.code for rule in selection.apply(RULES)}


def family(*prefixes: str) -> set[str]:
    return {rule.code for rule in RULES if rule.code.startswith(prefixes)}


@pytest.mark.parametrize(
    ("selection", "codes"),
    [
        (Selection(), {rule.code for rule in RULES}),
        (Selection(["COPY101"]), {"COPY101"}),
        (Selection(["hidden-memcpy"]), {"COPY101"}),
        (Selection(["OCC"]), family("OCC")),
        (Selection(["OCC1"]), family("OCC1")),
        (Selection(["copies", "PREC"]), family("COPY", "PREC")),
        (Selection(["COPY101"], ["OCC101"]), {"COPY101", "OCC101"}),
        (Selection(["all"], leave_out=["OCC"]), {r.code for r in RULES} - family("OCC")),
        (Selection(["OCC"], leave_out=["OCC102"]), family("OCC") - {"OCC102"}),
        (Selection(["OCC102"], leave_out=["OCC"]), {"OCC102"}),
        (Selection(leave_out=["OCC"]), {r.code for r in RULES} - family("OCC")),
    ],
)
def test_selectors(selection: Selection, codes: set[str]) -> None:
    assert chosen(selection) == codes


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(["COPPY101"]), "'COPPY101' selects no rule; did you mean 'COPY101'"),
        (Selection(["hiden-memcpy"]), "did you mean 'hidden-memcpy'"),
        (Selection(["C"]), "selects no rule"),
        (Selection(leave_out=["ZZZ"]), "selects no rule"),
        (Selection(["OCC"], leave_out=["OCC"]), "no rule is left"),
    ],
)
def test_selectors_that_choose_nothing(selection: Selection, message: str) -> None:
    with pytest.raises(AnalyzeError, match=message) as caught:
        selection.apply(RULES)
    assert caught.value.exit_code == 2


def test_the_most_exact_ignore_gives_the_reason() -> None:
    ignores = [Ignore("copies", "all of them"), Ignore("COPY101", "this one")]
    ignored = Selection(ignores=ignores).ignored(find_rule("COPY101", RULES))
    assert ignored is not None
    assert ignored.reason == "this one"
    assert Selection(ignores=ignores).ignored(find_rule("OCC101", RULES)) is None


def test_an_ignore_that_matches_nothing_is_named() -> None:
    ignores = [Ignore("COPY101", "known"), Ignore("PREC", "old"), Ignore("ZZZ", "gone")]
    words = list(stale(ignores, RULES, {"COPY101": 3, "PREC101": 0}))
    assert words == [
        "the ignore of 'PREC' (old) matches no finding any more",
        "the ignore of 'ZZZ' (gone) matches no rule",
    ]
    # No trace could answer the rule: that proves nothing.
    assert not list(stale([Ignore("PREC", "old")], RULES, {}))


def test_a_rule_is_found_by_code_and_by_name() -> None:
    assert find_rule("copy101", RULES).code == find_rule("hidden-memcpy", RULES).code == "COPY101"
    with pytest.raises(AnalyzeError, match="did you mean 'LAUNCH101'"):
        find_rule("lanch101", RULES)
