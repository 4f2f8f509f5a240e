"""Names that stand for other names: numbered in the order in which they first appear.

Numbers and not hashes: whoever guesses a name can hash the guess and compare.
"""

from collections import defaultdict


class Placeholders:
    """Gives every text of a kind its own number; the same text always gets the same."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        """Begin with no text.

        Args:
            taken: names that must not stand for anything.
        """
        self._taken = taken
        self._numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._last: defaultdict[str, int] = defaultdict(int)

    def number(self, noun: str, text: str) -> int:
        """Return the number of a text among those of its kind, from 1."""
        numbers = self._numbers[noun]
        if text not in numbers:
            numbers[text] = self._next(noun)
        return numbers[text]

    def name(self, noun: str, text: str) -> str:
        """Return what stands for a text, e.g. ``kernel_7``."""
        return f"{noun}_{self.number(noun, text)}"

    def counts(self) -> dict[str, int]:
        """Return how many distinct texts of each kind were replaced."""
        return {noun: len(numbers) for noun, numbers in self._numbers.items()}

    def _next(self, noun: str) -> int:
        number = self._last[noun] + 1
        while f"{noun}_{number}" in self._taken:
            number += 1
        self._last[noun] = number
        return number
