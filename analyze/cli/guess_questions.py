"""Ask what is guessed of a trace, on a terminal or from lines on standard input."""

import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from analyze.errors import AnalyzeError

if TYPE_CHECKING:
    from analyze.guess.quantities import Quantity

_SKIPPED = ("", "?", "skip", "-", "dunno", "unknown", "don't know")


@dataclass(frozen=True)
class Answers:
    """What was answered.

    Attributes:
        given: the answers by key, as given; those skipped are left out.
        unread: titles of the questions whose answer could not be read.
    """

    given: dict[str, str]
    unread: list[str]


def ask_all(quantities: "Sequence[Quantity]", forward: str) -> Answers:
    """Ask for guesses.

    Questions go to standard error, so that standard output holds the report alone. On a terminal a
    question is asked again until its answer can be read. A line of other input is the answer to
    one question: where it cannot be read, that is said, and the next line answers the next one.

    Args:
        quantities: what to ask for, in order.
        forward: what a forward is in this trace, in words.

    Raises:
        Abort: the input ended on a terminal.
        AnalyzeError: the input is no text.
    """
    is_terminal = sys.stdin.isatty()
    _let_ctrl_c_interrupt()
    _say(f"Guess first, then look. A forward is {forward}.")
    _say("Press Enter to skip a question; ~5, 3-6 and 'at most 4' are guesses, too.\n")
    answers, unread = {}, []
    for number, quantity in enumerate(quantities, start=1):
        _say(f"{number}/{len(quantities)}  {quantity.question}")
        _say(f"     {quantity.explanation}")
        answer = _ask(quantity) if is_terminal else _next_line()
        problem = None if answer is None else _problem(quantity, answer)
        if problem is not None:
            _say(f"     {problem}")
            unread.append(quantity.title)
        elif answer is not None:
            answers[quantity.key] = answer
    return Answers(answers, unread)


def _let_ctrl_c_interrupt() -> None:
    """Put Python's own handler first again.

    Once polars is imported, a read is restarted after Ctrl-C, which is then seen only at the next
    Enter.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _prompt() -> None:
    click.echo("   > ", err=True, nl=False)


def _ask(quantity: "Quantity") -> str | None:
    while True:
        _prompt()
        line = _read_line()
        if not line:
            _say("")
            raise click.Abort
        if line.strip().lower() in _SKIPPED:
            return None
        problem = _problem(quantity, line.strip())
        if problem is None:
            return line.strip()
        _say(f"     {problem}; or press Enter to skip")


def _next_line() -> str | None:
    """Return the answer in the next line; a question without a line is skipped."""
    line = _read_line().strip()
    return None if line.lower() in _SKIPPED else line


def _read_line() -> str:
    try:
        return sys.stdin.readline()
    except UnicodeDecodeError:
        raise AnalyzeError("standard input is not UTF-8 text") from None


def _problem(quantity: "Quantity", answer: str) -> str | None:
    """Return what is wrong with an answer, in words."""
    from analyze.guess.answers import UnreadableAnswerError  # noqa: PLC0415
    from analyze.guess.loading import parse_guess  # noqa: PLC0415
    from analyze.words import visible  # noqa: PLC0415

    try:
        parse_guess(quantity, answer)
    except UnreadableAnswerError as error:
        return visible("; ".join(_sentences(error.args[0], error.help)))
    return None


def _sentences(message: str, help_text: str | None) -> Iterator[str]:
    yield message
    if help_text:
        yield help_text
