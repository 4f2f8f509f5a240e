"""What the shell can complete: codes, parameters, columns, files.

A shell asks on every press of TAB, so nothing here reads rules or traces as a command does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from analyze.cli.rule_index import IndexedRule

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]

_MAX_HELP = 70


def complete_files(_c: click.Context, _p: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Let the shell complete the name of a file or folder."""
    return [CompletionItem(word, type="file")]


def complete_rule(ctx: click.Context, _: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Complete the code or the name of one rule."""
    rules = _rules(ctx)
    by_code = _fitting(word.upper(), ((rule.code, rule.title) for rule in rules))
    return by_code or _fitting(word, ((rule.name, rule.title) for rule in rules))


def complete_rules(ctx: click.Context, _: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Complete selectors with commas: codes, families and categories; names where none fits."""
    before, comma, last = word.rpartition(",")
    rules = _rules(ctx)
    codes = [(rule.code, rule.title) for rule in rules]
    families = {rule.code.rstrip("0123456789") for rule in rules}
    whole = [*((f, "every rule of this family") for f in families)]
    whole += [(rule.category, "every rule of this category") for rule in rules]
    names = [(rule.name, rule.title) for rule in rules]
    found = _fitting(last, sorted({*codes, *whole})) or _fitting(last, names)
    return [CompletionItem(before + comma + item.value, help=item.help) for item in found]


def complete_setting(
    ctx: click.Context, _: click.Parameter, word: str
) -> list[CompletionItem[str]]:
    """Complete ``CODE.PARAM=``."""
    return _fitting(
        word,
        (
            (f"{rule.code}.{name}=", f"now {value}")
            for rule in _rules(ctx)
            for name, value in rule.params
        ),
    )


def complete_tables(_c: click.Context, _p: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Complete the name of a table."""
    from analyze.tables.catalogue import TABLES  # noqa: PLC0415

    return _fitting(word, ((name, "") for name in TABLES))


def complete_also(_c: click.Context, _p: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Complete ``FORMAT=``, and the name of a file otherwise."""
    from analyze.report.formats import FORMATS  # noqa: PLC0415

    formats = _fitting(word, ((f"{name}=", "") for name in FORMATS))
    return formats or complete_files(_c, _p, word)


def complete_gate(_c: click.Context, _p: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Complete the amount that a condition of ``diff --fail-if`` ends in."""
    from analyze.diff.quantities import QUANTITIES  # noqa: PLC0415

    name = _last_name(word)
    before = word[: len(word) - len(name)]
    return _fitting(word, ((before + each.name, each.meaning) for each in QUANTITIES))


def complete_columns(table: str) -> Completer:
    """Return what completes the column that an expression over a table ends in."""

    def complete(
        _ctx: click.Context, _param: click.Parameter, word: str
    ) -> list[CompletionItem[str]]:
        from analyze.tables.catalogue import TABLES  # noqa: PLC0415

        column = _last_name(word)
        before = word[: len(word) - len(column)]
        columns = ((before + c.name, c.meaning) for c in TABLES[table].columns)
        return _fitting(word, columns)

    return complete


def complete_words(place: str, *, with_commas: bool = False) -> Completer:
    """Return what completes the words of a collection.

    Args:
        place: ``module:name`` of the collection; imported only when a shell asks.
        with_commas: several of them may be given.
    """

    def complete(
        _ctx: click.Context, _param: click.Parameter, word: str
    ) -> list[CompletionItem[str]]:
        module, name = place.split(":")
        words: Iterable[str] = getattr(import_module(module), name)
        before, comma, _last = word.rpartition(",") if with_commas else ("", "", word)
        return _fitting(word, ((before + comma + each, "") for each in words))

    return complete


def _rules(ctx: click.Context) -> "Sequence[IndexedRule]":
    from analyze.cli.rule_index import index_rules  # noqa: PLC0415

    return index_rules(
        ctx.params.get("rule_paths") or (), isolated=bool(ctx.params.get("isolated"))
    )


def _fitting(word: str, known: Iterable[tuple[str, str]]) -> list[CompletionItem[str]]:
    return [
        CompletionItem(name, help=_one_line(meaning) or None)
        for name, meaning in dict.fromkeys(known)
        if name.startswith(word)
    ]


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_HELP else line[: _MAX_HELP - 1] + "\u2026"


def _last_name(expression: str) -> str:
    """Return the name that an expression ends in; nothing where it ends in something else."""
    return "".join(_reversed_name(expression))[::-1]


def _reversed_name(expression: str) -> Iterator[str]:
    for char in reversed(expression):
        if not (char.isalnum() or char == "_"):
            return
        yield char
