"""``--expect``: guess files that are checked beside the rules."""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analyze.cli.forward import Forward, guessed_forward
from analyze.cli.rule_options import LoadedRules
from analyze.cli.traces import complain
from analyze.errors import AnalyzeError, NothingToCheckError, RuleError

if TYPE_CHECKING:
    from analyze.engine.result import TraceReport
    from analyze.engine.rule import Rule
    from analyze.engine.selection import Selection
    from analyze.guess.loading import GuessFile
    from analyze.tables.build import Trace


class Guesses(NamedTuple):
    """The guess files of one run.

    Attributes:
        files: in the order given.
        forward: the annotation that they are about, if they name one.
        invalid: they were given, but cannot be read.
    """

    files: "tuple[GuessFile, ...]" = ()
    forward: Forward | None = None
    invalid: bool = False

    def beside(self, loaded: LoadedRules) -> LoadedRules:
        """Return the rules with those of the guesses, which run whatever else is selected.

        Raises:
            AnalyzeError: a rule has the code of a guess.
        """
        if self.invalid:
            return dataclasses.replace(loaded, selection=_without_guesses(loaded.selection))
        if not self.files:
            return loaded
        from analyze.guess.rules import CATEGORY  # noqa: PLC0415

        rules = [rule for file in self.files for rule in file.rules]
        codes = {rule.code: rule.file for rule in rules}
        for rule in loaded.rules:
            if rule.code in codes:
                raise AnalyzeError(
                    f"{rule.file}: its code {rule.code} is that of a guess in {codes[rule.code]};"
                    " give the rule another one"
                )
        selection = loaded.selection
        extended = dataclasses.replace(selection, extend=(*selection.extend, CATEGORY))
        return dataclasses.replace(loaded, rules=[*loaded.rules, *rules], selection=extended)

    def explained(self, report: "TraceReport", trace: "Trace") -> "TraceReport":
        """Return the report with what differs from the orders that were guessed."""
        if not self.files:
            return report
        from analyze.guess.order import add_differences  # noqa: PLC0415

        return add_differences(report, [g for file in self.files for g in file.guesses], trace)

    def unanswered(self, report: "TraceReport", rules: "Sequence[Rule]") -> Iterator[int]:
        """Yield the exit code of each file of which a trace can answer nothing, after saying so."""
        reasons = {rule.code: rule.reason for rule in report.not_applicable}
        reasons |= {rule.code: rule.message for rule in report.errors}
        for file in self.files:
            codes = [rule.code for rule in file.rules if rule in rules]
            if codes and all(code in reasons for code in codes):
                why = "; ".join(dict.fromkeys(reasons[code] for code in codes))
                problem = f"{report.trace}: can answer no guess of {file.path}: {why}"
                yield complain(NothingToCheckError(problem))


NO_GUESSES = Guesses()

_SELECTOR = re.compile(r"GUESS\d*|guess|guessed-[\w-]+")
"""Selectors of the rules of guesses."""


def _without_guesses(selection: "Selection") -> "Selection":
    """Return a selection without what would select guesses, had their file been read."""
    return dataclasses.replace(
        selection,
        select=None if selection.select is None else _others(selection.select),
        extend=_others(selection.extend),
        leave_out=_others(selection.leave_out),
    )


def _others(selectors: Sequence[str]) -> tuple[str, ...]:
    return tuple(selector for selector in selectors if not _SELECTOR.fullmatch(selector))


def read_guesses(paths: Sequence[Path], codes: list[int]) -> Guesses:
    """Read the guess files.

    Args:
        paths: as given.
        codes: is given the exit code of invalid files, after saying what is wrong with them; the
            rules are checked all the same.

    Raises:
        AnalyzeError: there are too many, or they are about different annotations.
    """
    if not paths:
        return NO_GUESSES
    from analyze.guess.loading import load_guesses  # noqa: PLC0415

    try:
        files = load_guesses(paths)
    except RuleError as error:
        codes.append(complain(error))
        return Guesses(invalid=True)
    return Guesses(tuple(files), guessed_forward(files))
