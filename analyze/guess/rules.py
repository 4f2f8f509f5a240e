"""Compile guesses to ordinary rules: plain data of the rule format, checked and run as any rule.

Every rule measures ``observed``, what the guess is about, and ``surprise``: how many times the
number would have to double, or to halve, to be as guessed. A number is moved by a little (1 op,
1 us, 5 points) first, so that nothing and something compare. Where a word is wrong, it is 4 (a
number 16 times off) times the share of the GPU time that is at stake.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analyze.engine.document import Document
from analyze.engine.keys import filled
from analyze.engine.matchers import Shared
from analyze.engine.model import RuleModel
from analyze.engine.result import Level
from analyze.engine.rule import Rule
from analyze.guess.amounts import Amount, Unit
from analyze.guess.quantities import PRODUCTS, Quantity
from analyze.guess.words import ATTENTION, GROUPS, PRECISIONS, joined, members
from analyze.tables.catalogue import GPU_CUT_OFF, Need

CATEGORY = "guess"
"""Category and pack of the rules that guesses compile to."""

WRONG_WORD = 4
"""Surprise of a word that is wrong about all GPU time."""

OTHER_PRECISION = 0.05
"""Share of the multiplying kernels' time that may be in a precision that was not guessed."""

MAX_FILES = 10
"""Guess files of one run: the hundreds of their codes tell them apart."""

Guess = Amount | tuple[str, ...]
"""A guessed amount; or the words, or the order, that were guessed."""

Keys = dict[str, Any]

_MOVED_BY = {Unit.COUNT: "1", Unit.TIME: "1", Unit.SHARE: "0.05"}
_GPU_WORK = (
    {"that": "trace.has_gpu or not trace.truncated", "else": GPU_CUT_OFF},
    {"that": "trace.has_gpu", "else": Need.GPU.value},
)
_WHOLE_TRACE = (
    {
        "that": "not trace.truncated",
        "else": "the file is cut short, and this is asked of the whole trace",
    },
)
_WHOLE_FORWARDS = (
    {
        "that": "not trace.truncated or trace.forward_is != 'trace'",
        "else": "the file is cut short, and nothing in it marks a forward",
    },
)
WORK_OF_UNIT = "forward.launches"
"""A column that is null exactly in forwards of which the file may hold only a part."""

_HOLDS_ALL = f"not is_null({WORK_OF_UNIT})"
_CHUNK = 900
_ITEMS_IN_CHUNK = 8


@dataclass(frozen=True)
class Guessed:
    """One guess.

    Attributes:
        quantity: what it is about.
        guess: what is expected.
        rule: the rule that checks it.
    """

    quantity: Quantity
    guess: Guess
    rule: Rule

    @property
    def words(self) -> str:
        """What was guessed, in words."""
        return guess_in_words(self.quantity, self.guess)


def make_guess(
    quantity: Quantity,
    guess: Guess,
    *,
    severity: Level = "error",
    file_number: int = 0,
    document: Document | None = None,
) -> Guessed:
    """Return a guess with its rule.

    Args:
        quantity: what it is about.
        guess: what is expected.
        severity: of the rule's findings.
        file_number: position of its file among those of one run, from 0.
        document: the guess file, for positions; None for a guess that is in no file yet.
    """
    guessed = guess_in_words(quantity, guess)
    name = f"guessed-{quantity.key.replace('_', '-')}"
    keys = {
        "version": 1,
        "code": f"GUESS{file_number * 100 + quantity.number:03}",
        "name": f"{name}-{file_number + 1}" if file_number else name,
        "title": f"{quantity.title[:1].upper()}{quantity.title[1:]} not as guessed",
        "guess": f"{quantity.title[:1].upper()}{quantity.title[1:]}: {guessed}",
        "message": quantity.message.replace("{guessed}", guessed),
        "from": quantity.table,
        "per": "trace" if quantity.per_trace else "forward",
        "severity": severity,
        "confidence": "high",
        "evidence": _evidence(quantity),
        "requires": _requirements(quantity),
        **_where_known(quantity, _judgement(quantity, guess)),
    }
    model = filled(RuleModel, keys)
    shown = document or Document("guess")
    return Guessed(quantity, guess, Rule(model, model.params, CATEGORY, CATEGORY, shown, Shared()))


def guess_in_words(quantity: Quantity, guess: Guess) -> str:
    """Return what was guessed, in words."""
    if isinstance(guess, Amount):
        return guess.text
    if quantity.kind == "order":
        return f"{len(guess)} listed"
    return joined(guess)


def _evidence(quantity: Quantity) -> Keys:
    distinct = {"distinct": list(quantity.distinct)} if quantity.distinct else {}
    return {"columns": list(quantity.evidence), **distinct}


def _requirements(quantity: Quantity) -> list[Keys]:
    of_gpu = _GPU_WORK if quantity.about_gpu else ()
    return [*of_gpu, *(_WHOLE_TRACE if quantity.per_trace else _WHOLE_FORWARDS)]


def _where_known(quantity: Quantity, keys: Keys) -> Keys:
    """Leave unknown what is observed in a forward of which the file may hold only a part."""
    if not quantity.is_of_work:
        return keys
    observed = f"({keys['measure']['observed']}) if {_HOLDS_ALL} else null"
    return {
        **keys,
        "measure": {**keys["measure"], "observed": observed},
        "expect": f"({keys['expect']}) if {_HOLDS_ALL} else null",
    }


def _judgement(quantity: Quantity, guess: Guess) -> Keys:
    """Return the keys that differ between kinds of guesses."""
    if isinstance(guess, Amount):
        return _amount(quantity, guess)
    if quantity.kind == "families":
        return _families(guess)
    if quantity.kind == "precisions":
        return _precisions(guess)
    return _order(guess)


def _amount(quantity: Quantity, guess: Amount) -> Keys:
    moved_by = _MOVED_BY[quantity.unit or Unit.COUNT]
    above = f"log2((observed + {moved_by}) / (params.high + {moved_by}))"
    below = f"log2((params.low + {moved_by}) / (observed + {moved_by}))"
    return {
        "params": {"low": guess.low, "high": guess.high},
        "measure": {
            "observed": quantity.observed,
            "surprise": f"{above} if observed > params.high else"
            f" {below} if observed < params.low else 0",
        },
        "expect": "params.low <= observed <= params.high",
    }


def _families(guess: Sequence[str]) -> Keys:
    """Return the keys for the families of which one takes the most time, ties to the first.

    Who guesses attention is right about one that is written out as ops, too: its products and its
    softmax, which are families of their own to those who guess them.
    """
    times = {group: f"sum(when({_belongs(group, guess)}, dur_us, 0))" for group in GROUPS}
    guessed = " + ".join(_time_of(group) for group in guess)
    return {
        "measure": {
            **{_time_of(group): expression for group, expression in times.items()},
            "all_us": "sum(dur_us)",
            "most_us": f"greatest({', '.join(map(_time_of, GROUPS))})",
            **_name_of_largest(list(GROUPS), "most_us"),
            "observed_share": "most_us / all_us",
            "guessed_share": f"({guessed}) / all_us",
            "surprise": f"{WRONG_WORD} * greatest(observed_share - guessed_share, 0)",
        },
        "expect": f"observed in {list(guess)!r}",
    }


def _belongs(group: str, guess: Sequence[str]) -> str:
    of_group = f"coalesce(family, kind) in {list(GROUPS[group])!r}"
    written_out = group == ATTENTION and group in guess
    return f"{of_group} or not is_null(by_hand)" if written_out else of_group


def _precisions(guess: Sequence[str]) -> Keys:
    """Return the keys for the precisions that kernels' names tell.

    Where the names of less than half of the time tell, the answer is unknown.
    """
    guessed = " + ".join(_time_of(precision) for precision in guess)
    return {
        "where": {"family": list(PRODUCTS)},
        "measure": {
            **{
                _time_of(precision): f"sum(when(coalesce(precision, '') == {precision!r}, dur_us,"
                " 0))"
                for precision in PRECISIONS
            },
            "all_us": "sum(dur_us)",
            "told_us": "sum(when(is_null(precision), 0, dur_us))",
            "most_us": f"greatest({', '.join(map(_time_of, PRECISIONS))})",
            **_name_of_largest(PRECISIONS, "most_us"),
            "other_share": f"(told_us - ({guessed})) / told_us if told_us >= all_us / 2 else null",
            "surprise": f"{WRONG_WORD} * (told_us - ({guessed})) / forward.gpu_sum_us",
        },
        "params": {"most_other_share": OTHER_PRECISION},
        "expect": "other_share <= params.most_other_share",
    }


def _name_of_largest(words: Sequence[str], largest: str) -> dict[str, str]:
    """Return measures that name the largest time, in two steps to keep expressions short."""
    half = len(words) // 2
    return {
        "first_half": _chain(words[:half], largest),
        "second_half": _chain(words[half:], largest),
        "observed": f"coalesce(first_half, second_half) if {largest} > 0 else null",
    }


def _chain(words: Sequence[str], largest: str) -> str:
    chain = "null"
    for word in reversed(words):
        chain = f"{word!r} if {_time_of(word)} == {largest} else {chain}"
    return chain


def _time_of(word: str) -> str:
    return f"{word}_us"


def _order(items: Sequence[str]) -> Keys:
    conditions = [_in_place(number, item) for number, item in enumerate(items)]
    fits: dict[str, str] = {}
    for number, chunk in enumerate(_chunks(conditions)):
        before = f"fit_{number - 1} + " if number else ""
        fits[f"fit_{number}"] = f"{before}count({chunk})"
    return {
        "params": {"expected": len(items)},
        "measure": {
            "observed": "count()",
            **fits,
            "fit": f"fit_{len(fits) - 1}",
            "surprise": f"{WRONG_WORD} * (1 - fit / greatest(observed, params.expected))",
        },
        "expect": "observed == params.expected and fit == params.expected",
    }


def _in_place(position: int, item: str) -> str:
    """Return the condition that a GPU op is what the order has at a position."""
    families = members(item)
    name = f"short_name == {item!r}"
    if families:
        name = f"{name} or coalesce(family, kind) in {list(families)!r}"
    elif item.lower().startswith(("memcpy ", "memset ")):
        name = f"startswith(short_name, {item!r})"
    return f"position == {position} and ({name})"


def _chunks(conditions: Sequence[str]) -> Iterator[str]:
    """Yield the conditions joined by ``or``, as many as an expression may hold."""
    chunk: list[str] = []
    for condition in conditions:
        length = sum(len(other) + 6 for other in chunk)
        if chunk and (len(chunk) == _ITEMS_IN_CHUNK or length + len(condition) > _CHUNK):
            yield " or ".join(f"({other})" for other in chunk)
            chunk = []
        chunk.append(condition)
    yield " or ".join(f"({other})" for other in chunk)
