"""Collect the problems of one rule file while its parts are compiled."""

from collections.abc import Collection, Iterable

from analyze.engine.document import Document, KeyPath
from analyze.engine.expressions import Compiled, Place, compile_expression
from analyze.engine.problems import Problem, did_you_mean
from analyze.engine.scope import Scope
from analyze.engine.syntax import BrokenNameError, ExpressionError
from analyze.engine.values import Kind


class Reporter:
    """The problems of one document.

    Attributes:
        document: the file the problems are in.
        problems: in the order they were found, those of reading the document first.
        broken: measures, and parameters as ``params.x``, whose problems are reported already.
    """

    def __init__(self, document: Document, broken: Collection[str] = ()) -> None:
        self.document = document
        self.broken = frozenset(broken)
        self.problems: list[Problem] = list(document.problems)

    def add(
        self, path: KeyPath, message: str, help_text: str | None = None, *, key: bool = False
    ) -> None:
        """Report a problem of the value at ``path``, or of its key."""
        self.problems.append(Problem(self.document.locate(path, key=key), message, help_text))

    def unknown(
        self, path: KeyPath, what: str, word: str, known: Iterable[str], *, key: bool = False
    ) -> None:
        """Report a word that is not one of those known."""
        self.add(path, f"unknown {what} '{word}'", did_you_mean(word, known), key=key)

    def expression(
        self,
        path: KeyPath,
        written: object,
        scope: Scope,
        place: Place = Place.FORMULA,
        want: Kind | None = None,
    ) -> Compiled | None:
        """Compile the expression at ``path``; None when it has a problem, which is reported.

        For the arguments see :func:`analyze.engine.expressions.compile_expression`.
        """
        text = spell(written)
        try:
            return compile_expression(text, scope, place, want)
        except ExpressionError as error:
            self.add_in(path, error)
            return None

    def add_in(self, path: KeyPath, error: ExpressionError) -> None:
        """Report a mistake inside the text at ``path``, unless it was reported already."""
        if isinstance(error, BrokenNameError):
            return
        where = self.document.locate_in(path, error.offset, error.length)
        self.problems.append(Problem(where, error.message, error.help))


def spell(value: object) -> str:
    """Return an expression as text: a YAML number, flag or null is one too."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)
