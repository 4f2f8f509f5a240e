"""Choose rules by code, code prefix, name or category; the more exact choice wins."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analyze.engine.problems import did_you_mean
from analyze.errors import AnalyzeError

if TYPE_CHECKING:  # the configuration is read where no rule is
    from analyze.engine.rule import Rule

ALL = "all"

_EXACT = 100
"""Rank of a whole code or name: above any prefix."""


class Ignore(NamedTuple):
    """Rules whose findings are known and not wanted, and why.

    Attributes:
        selector: code, code prefix, name or category.
        reason: why they are ignored.
    """

    selector: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """Which rules are run.

    Attributes:
        select: selectors; None for all rules that are not deprecated.
        extend: further ones.
        leave_out: selectors of rules that are not run at all.
        ignores: of rules that are run, but whose findings are only counted.
    """

    select: Sequence[str] | None = None
    extend: Sequence[str] = ()
    leave_out: Sequence[str] = ()
    ignores: Sequence[Ignore] = ()

    def apply(self, rules: "Sequence[Rule]") -> "list[Rule]":
        """Return the rules that are run.

        Raises:
            AnalyzeError: a selector fits no rule, or no rule is left.
        """
        for selector in (*(self.select or ()), *self.extend, *self.leave_out):
            _check(selector, rules)
        chosen = [rule for rule in rules if self._is_chosen(rule)]
        if not chosen:
            raise AnalyzeError("no rule is left to run: check --select and --ignore")
        return chosen

    def ignored(self, rule: "Rule") -> Ignore | None:
        """Return the most exact entry that ignores a rule's findings."""
        fitting = [ignore for ignore in self.ignores if rank(ignore.selector, rule) is not None]
        return max(fitting, key=lambda ignore: rank(ignore.selector, rule) or 0, default=None)

    def _is_chosen(self, rule: "Rule") -> bool:
        wanted = _best([*(self.select or ()), *self.extend], rule)
        if wanted is None and self.select is None and rule.model.status != "deprecated":
            wanted = 0
        unwanted = _best(self.leave_out, rule)
        return wanted is not None and (unwanted is None or wanted > unwanted)


EVERYTHING = Selection()
"""All rules, none ignored."""


def stale(
    ignores: Iterable[Ignore], rules: "Sequence[Rule]", counts: Mapping[str, int]
) -> Iterator[str]:
    """Yield, in words, the ignores that no longer match anything.

    Args:
        ignores: as configured.
        rules: all rules.
        counts: per code of an ignored rule that came to a verdict on any trace, its findings.
            A rule that no trace could answer is not among them, and proves nothing.
    """
    for ignore in ignores:
        codes = [rule.code for rule in rules if rank(ignore.selector, rule) is not None]
        name = f"the ignore of '{ignore.selector}' ({ignore.reason})"
        if not codes:
            yield f"{name} matches no rule"
        elif any(code in counts for code in codes) and not any(map(counts.get, codes)):
            yield f"{name} matches no finding any more"


def rank(selector: str, rule: "Rule") -> int | None:
    """Return how exactly a selector names a rule; None when it does not."""
    if selector in (rule.code, rule.name):
        return _EXACT
    if selector == ALL:
        return 0
    if selector == rule.category:
        return 1
    is_prefix = bool(re.fullmatch(r"[A-Z]{1,6}[0-9]{0,3}", selector))
    if is_prefix and _has_prefix(rule.code, selector):
        return 1 + len(selector)
    return None


def find_rule(word: str, rules: "Iterable[Rule]") -> "Rule":
    """Return the rule with a code or name.

    Raises:
        AnalyzeError: there is none.
    """
    by_word = {name: rule for rule in rules for name in (rule.code, rule.name)}
    rule = by_word.get(word) or by_word.get(word.upper())
    if rule is None:
        known = did_you_mean(word.upper() if word[-1:].isdigit() else word, by_word)
        hint = f"; {known}" if known else ""
        raise AnalyzeError(f"no rule '{word}'{hint} (rules of your own need --rules PATH)")
    return rule


def _has_prefix(code: str, prefix: str) -> bool:
    """Whether a code starts with a family, or with a family and the first digits of its number."""
    family = code.rstrip("0123456789")
    return prefix == family or (len(prefix) > len(family) and code.startswith(prefix))


def _best(selectors: Iterable[str], rule: "Rule") -> int | None:
    ranks = [found for selector in selectors if (found := rank(selector, rule)) is not None]
    return max(ranks, default=None)


def _check(selector: str, rules: "Sequence[Rule]") -> None:
    if selector != ALL and all(rank(selector, rule) is None for rule in rules):
        words = {word for rule in rules for word in (rule.code, rule.name, rule.category)}
        known = did_you_mean(selector, words)
        raise AnalyzeError(f"'{selector}' selects no rule" + (f"; {known}" if known else ""))
