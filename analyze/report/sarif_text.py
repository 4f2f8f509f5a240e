"""Texts in SARIF: shown as they are, whatever a trace or a rule holds.

In a SARIF message ``{0}`` is a placeholder and ``[text](target)`` a link (SARIF 2.1.0, sections
3.11.5 and 3.11.6), in the plain form as well as in Markdown.
"""

from typing import Any

from analyze.report.markdown_words import plain
from analyze.words import printable

Data = dict[str, Any]


def message(*paragraphs: str) -> Data:
    """Return a message, plain, of paragraphs made printable and cut where they are long."""
    return {"text": "\n".join(map(_plain_text, paragraphs))}


def labelled(first: str, pairs: list[tuple[str, str]]) -> Data:
    """Return a message, plain and as Markdown: a first sentence, then labelled ones.

    Args:
        first: what a viewer shows where there is little room.
        pairs: (label, sentence); labels are words of this program.
    """
    sentences = [f"{label}: {sentence}" for label, sentence in pairs]
    items = [f"- **{label}** {_markdown(sentence)}" for label, sentence in pairs]
    return {
        **message(_with_full_stop(first), *sentences),
        "markdown": "\n".join([_markdown(_with_full_stop(first)), "", *items]),
    }


def first_said(*texts: str) -> str:
    """Return the first of the texts that is not blank; code scanning takes no blank ones."""
    return next(filter(str.strip, texts), "")


def bounded(value: Any) -> Any:
    """Return a value of a property bag with its texts made printable and cut."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {printable(key): bounded(item) for key, item in value.items()}
        case list() | tuple():
            return [bounded(item) for item in value]
        case _:
            return value


def _with_full_stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _plain_text(paragraph: str) -> str:
    return _without_placeholders(printable(paragraph).replace("](", "] ("))


def _markdown(sentence: str) -> str:
    return _without_placeholders(plain(sentence))


def _without_placeholders(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
