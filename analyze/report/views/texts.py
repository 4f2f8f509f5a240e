"""Texts of a view: cut where they are long, and each kept once."""

from collections.abc import Iterable

from analyze.words import MAX_NAME

UNNAMED = "(unnamed)"
MAX_LABEL = 60
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def cut(text: str, most: int = MAX_NAME) -> str:
    """Return a text of at most ``most`` characters; an ellipsis says that there is more."""
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def label(text: str | None) -> str | None:
    """Return the id of a process, thread, device or stream, cut where it is long."""
    return None if text is None else cut(text, MAX_LABEL)


class Texts:
    """Distinct texts in the order they were met, and the place of each."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def places(self, texts: Iterable[str | None]) -> list[int | None]:
        """Return the place of each text; None stays None."""
        return [None if text is None else self.place(text) for text in texts]

    def known_places(self, texts: Iterable[str]) -> list[int]:
        """Return the place of each text, none of which is None."""
        return [self.place(text) for text in texts]

    def place(self, text: str) -> int:
        """Return the place of a text, which is kept."""
        return self._places.setdefault(cut(text), len(self._places))

    def as_list(self) -> list[str]:
        """Return the texts by their places."""
        return list(self._places)
