"""Read guess files and check them, with the position of every mistake."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyze.engine.document import Document
from analyze.engine.problems import InvalidRulesError, Problem, in_order
from analyze.engine.reporting import Reporter
from analyze.engine.rule import Rule
from analyze.engine.validation import validate
from analyze.engine.yaml_file import read_yaml
from analyze.errors import AnalyzeError
from analyze.guess.amounts import Unit, parse_amount
from analyze.guess.answers import UnreadableAnswerError
from analyze.guess.model import GuessModel
from analyze.guess.quantities import QUANTITIES, Quantity
from analyze.guess.rules import MAX_FILES, Guess, Guessed, make_guess
from analyze.guess.words import joined, parse_families, parse_precisions


@dataclass(frozen=True)
class GuessFile:
    """A guess file that was read.

    Attributes:
        path: the file, as given.
        forward: the annotation that its guesses are about; None where it names none.
        guesses: in the order of the quantities.
    """

    path: str
    forward: str | None
    guesses: tuple[Guessed, ...]

    @property
    def rules(self) -> list[Rule]:
        """The rules that check it."""
        return [guessed.rule for guessed in self.guesses]


def load_guesses(paths: Sequence[Path]) -> list[GuessFile]:
    """Read guess files.

    Raises:
        InvalidRulesError: with every problem of every file.
        AnalyzeError: there are too many.
    """
    if len(paths) > MAX_FILES:
        raise AnalyzeError(f"{len(paths)} guess files; at most {MAX_FILES} can be checked at once")
    files: list[GuessFile] = []
    problems: list[Problem] = []
    for number, path in enumerate(paths):
        try:
            files.append(_load(path, number))
        except InvalidRulesError as error:
            problems += error.problems
    if problems:
        raise InvalidRulesError(problems)
    return files


def forward_of(files: Sequence[GuessFile]) -> str | None:
    """Return the annotation that guess files are about; None where they name none.

    Raises:
        AnalyzeError: they name different ones.
    """
    named = {file.forward: file.path for file in files if file.forward is not None}
    if len(named) > 1:
        (first, one), (second, other) = list(named.items())[:2]
        raise AnalyzeError(
            f"{one} is about the forward '{first}', {other} about '{second}':"
            " check them one at a time"
        )
    return next(iter(named), None)


def parse_guess(quantity: Quantity, written: str) -> Guess:
    """Return what was guessed of a quantity, from an answer or a value of a guess file.

    Raises:
        UnreadableAnswerError: it does not say so.
    """
    if quantity.kind == "families":
        return parse_families(written)
    if quantity.kind == "precisions":
        return parse_precisions(written)
    return parse_amount(written, quantity.unit or Unit.COUNT)


def _load(path: Path, number: int) -> GuessFile:
    document = read_yaml(path)
    reporter = Reporter(document)
    model = validate(GuessModel, document, reporter)
    if model is None:
        raise InvalidRulesError(in_order(reporter.problems))
    parsed = dict(_parsed(model, document, reporter))
    if not parsed and not reporter.problems:
        known = ", ".join(QUANTITIES)
        reporter.add((), "the file holds no guess", f"guess at least one of {known}")
    if reporter.problems:
        raise InvalidRulesError(in_order(reporter.problems))
    guesses = (
        make_guess(
            QUANTITIES[key],
            guess,
            severity=model.severity,
            file_number=number,
            document=document,
        )
        for key, guess in parsed.items()
    )
    return GuessFile(str(path), model.forward, tuple(guesses))


def _parsed(
    model: GuessModel, document: Document, reporter: Reporter
) -> Iterator[tuple[str, Guess]]:
    """Yield the guesses by key, in the order of the quantities; problems go to the reporter."""
    written: Mapping[str, Any] = document.data
    for key, quantity in QUANTITIES.items():
        if getattr(model, key) is None:
            continue
        if quantity.kind == "order":
            _check_order(written[key], reporter)
        try:
            yield key, _guess_of(quantity, written[key])
        except UnreadableAnswerError as error:
            reporter.add((key,), str(error), error.help)


def _check_order(items: Sequence[str], reporter: Reporter) -> None:
    for index, item in enumerate(items):
        if not item.isprintable():
            message = "no name of a kernel holds characters that cannot be printed"
            reporter.add(("order", index), message)


def _guess_of(quantity: Quantity, value: Any) -> Guess:
    if quantity.kind == "order":
        return tuple(value)
    if isinstance(value, bool):
        value = "yes" if value else "none"
    return parse_guess(quantity, joined(value) if isinstance(value, list) else str(value))
