"""Names of kernels that are shortened to the same, told apart by a part of the full name."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from analyze.kernels.display import shorten

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
"""Of a name without template arguments, such as the generated ones of GEMMs."""

_LONGEST_PART = 40
_MOST_PARTS = 3


def told_apart(names: Collection[str]) -> dict[str, str]:
    """Return how different names are shown in one list: no two of them alike.

    Args:
        names: full names, all different.

    Returns:
        The short name of each, with the parts of the full name that its namesakes have not behind
        it where there are any; where no part tells, a number.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(shorten(name), []).append(name)
    return {name: shown for short, group in alike.items() for name, shown in _shown(short, group)}


def _shown(short: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(names) == 1:
        yield names[0], short
        return
    parts = {name: _parts(name) for name in names}
    words = {
        name: [part for part in found if not part[0].isdigit()] for name, found in parts.items()
    }
    for number, name in enumerate(names, 1):
        telling = _telling(name, words) or _telling(name, parts)
        telling = telling or [f"name {number} of {len(names)}"]
        yield name, f"{short} ({', '.join(telling)})"


def _parts(name: str) -> list[str]:
    """Return the distinct words and numbers of a name in order."""
    return list(dict.fromkeys((_WORD if "<" in name else _PART).findall(name)))


def _place(others: Sequence[Collection[str]], part: str) -> tuple[int, int]:
    """Order parts: first what the fewest other names have, of these the longest words."""
    return sum(part in words for words in others), -len(part)


def _telling(name: str, parts: Mapping[str, Collection[str]]) -> list[str]:
    """Return the fewest parts of a name, one by one, that no other name has all of."""
    telling: list[str] = []
    others = [words for other, words in parts.items() if other != name]
    while others and len(telling) < _MOST_PARTS:
        best = min(parts[name], key=partial(_place, others), default="")
        left = [words for words in others if best in words]
        if len(left) == len(others):
            return []
        telling.append(best[:_LONGEST_PART])
        others = left
    return [] if others else telling
