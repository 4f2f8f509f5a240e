"""A guess against a trace, as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from analyze.guess.words import GROUPS
from analyze.kernels.display import shorten
from analyze.report.chains import short_chain
from analyze.report.console import buffer_console, plain_table, print_pairs, rendered
from analyze.report.summary_text import print_opening
from analyze.words import counted, duration, printable, share, size

DEFAULT_LIMIT = 6
"""Rows of evidence, differences and families that are shown."""

Row = Mapping[str, Any]

_MARKS = {"missing": "-", "unexpected": "+", "moved": "~"}
_WRONG = ("mismatch", "intermittent")


def render_guesses(data: Row, *, limit: int = DEFAULT_LIMIT, color: bool = False) -> str:
    """Return the text of what :func:`analyze.report.guess.compare_guesses` made.

    Args:
        data: the comparison.
        limit: rows of evidence for each guess, and families, that are shown.
        color: use terminal colours; the text says the same without them.
    """
    console = buffer_console(color=color)
    print_opening(console, data)
    _print_wrong(console, data["guesses"], limit)
    _print_others(console, data["guesses"])
    _print_not_guessed(console, data["not_guessed"], limit)
    return rendered(console)


def _of(guesses: Sequence[Row], *states: str) -> list[Row]:
    return [row for row in guesses if row["state"] in states]


def _print_wrong(console: Console, guesses: Sequence[Row], limit: int) -> None:
    wrong = _of(guesses, *_WRONG)
    if not wrong:
        return
    title = f"\nNot as guessed, {len(wrong)} of {len(guesses)}: the most surprising first"
    console.print(Text(title, style="bold"))
    for number, row in enumerate(wrong, start=1):
        heading = Text(f"{number}. ")
        heading.append(row["title"], style="bold yellow")
        heading.append(f": guessed {_guessed(row)}, observed {_observed(row)}")
        heading.append(f"  (surprise {row['surprise']:.1f})", style="dim")
        console.print(heading)
        print_pairs(console, _details(row, limit))
    console.print(Text("surprise: how often the number doubles or halves to be as guessed", "dim"))


def _guessed(row: Row) -> str:
    """Return what was guessed, of a family with the time that it takes."""
    if row["key"] == "dominant":
        return f"{row['guess']} ({share(row['measures']['guessed_share'])} of the GPU time)"
    return printable(row["guess"])


def _observed(row: Row) -> str:
    """Return what was seen, in short, and in how many units where it was not in all."""
    words = printable(_seen(row))
    if row["units_mismatching"] == row["units_total"]:
        return words
    return f"{words} in {row['units_mismatching']:,} of {counted(row['units_total'], row['per'])}"


def _seen(row: Row) -> str:
    measures = row["measures"]
    match row["key"]:
        case "dominant":
            return f"{row['observed']} ({share(measures['observed_share'])})"
        case "precision":
            return f"mostly {row['observed']}, {share(measures['other_share'])} not as guessed"
        case "order":
            return str(row["message"])
        case _:
            return _value(row)


def _value(row: Row) -> str:
    """Return an observed value in words."""
    value = row["observed"]
    if value is None or isinstance(value, str):
        return value or "unknown"
    match row["unit"]:
        case "time":
            return duration(value)
        case "share":
            return share(value)
        case _:
            return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _details(row: Row, limit: int) -> Iterator[tuple[str, str]]:
    if row["key"] not in _SHOWN_WHOLE:
        label = "longest" if row["unit"] != "share" else ""
        yield from ((label, _evidence(line)) for line in _telling(row)[:_MOST_LONGEST])
        return
    is_order = row["key"] == "order"
    shown = row["evidence"][:limit]
    yield from (("", _difference(line) if is_order else _evidence(line)) for line in shown)
    total = _differences(row) if is_order else len(row["evidence"])
    if total > len(shown):
        yield "", f"and {total - len(shown):,} more; --limit shows more of them"


def _differences(row: Row) -> int:
    return sum(row["measures"][change] for change in _MARKS)


_SHOWN_WHOLE = ("copies", "syncs", "order")
"""Guesses whose evidence is what nobody expected; that of others is only what took longest."""

_MOST_LONGEST = 2


def _telling(row: Row) -> list[Row]:
    """Return the rows of evidence that speak against the guess."""
    evidence: list[Row] = row["evidence"]
    match row["key"]:
        case "dominant":
            group = GROUPS[row["observed"]]
            return [line for line in evidence if (line["family"] or line["kind"]) in group]
        case "precision":
            others = (None, *row["expected"])
            return [line for line in evidence if line["precision"] not in others]
        case _:
            return evidence


def _difference(line: Row) -> str:
    """Return one difference of an order: a mark, the places counted from 1, what it is."""
    mark, change = _MARKS[line["change"]], line["change"]
    if change == "missing":
        return f"{mark} {printable(line['guessed'])}, missing: guessed as number" + _number(
            line["guessed_position"]
        )
    where = f"number{_number(line['position'])}"
    if change == "moved":
        where += f" instead of{_number(line['guessed_position'])}"
    seen = {name: line[name] for name in ("short_name", "op_chain", "dur_us")}
    return f"{mark} {where}, {change}: {_evidence(seen)}"


def _number(position: int) -> str:
    return f" {position + 1:,}"


def _evidence(line: Row) -> str:
    shown = (_cell(name, value) for name, value in line.items() if name not in _UNSAID and value)
    return "; ".join(shown)


_UNSAID = ("kind", "family")
"""Columns of evidence that the line above says already."""


def _cell(name: str, value: Any) -> str:
    if name in ("short_name", "name"):
        return printable(shorten(value))
    if name == "op_chain":
        return short_chain(value)
    if name.endswith("_us"):
        return _TIMES.get(name, "{}").format(duration(value))
    if name == "bytes":
        return size(value)
    return printable(str(value))


_TIMES = {
    "gpu_busy_us": "{} busy",
    "gpu_span_us": "{} from the first to the last work",
    "cpu_us": "{} on the CPU",
    "op_self_us": "{} of it in ops",
}


def _print_others(console: Console, guesses: Sequence[Row]) -> None:
    confirmed = _of(guesses, "confirmed")
    if confirmed:
        sentence = "; ".join(map(_confirmed, confirmed))
        print_pairs(console, [("", ""), ("as guessed", sentence)])
    unanswered = _of(guesses, "unanswerable", "failed")
    if unanswered:
        by_reason: dict[str, list[str]] = {}
        for row in unanswered:
            by_reason.setdefault(printable(row["reason"]), []).append(row["title"])
        lines = (f"{', '.join(titles)}: {reason}" for reason, titles in by_reason.items())
        print_pairs(console, [("", ""), *(("cannot tell", line) for line in lines)])


def _confirmed(row: Row) -> str:
    """Return a guess that was right, with what was seen where the guess left room."""
    guess, expected = printable(row["guess"]), row["expected"]
    if isinstance(expected, list):
        leaves_room = len(expected) > 1 and row["key"] != "order"
    else:
        leaves_room = expected["low"] < expected["high"]
    if not leaves_room:
        return f"{row['title']} {guess}"
    return f"{row['title']} {guess} ({printable(_value(row))})"


def _print_not_guessed(console: Console, rest: Row, limit: int) -> None:
    families = rest["families"]
    if not families:
        return
    whole = rest["gpu_sum_us"]
    part = share(rest["time_us"] / whole) if whole else "unknown"
    title = f"\nWhat no guess is about: {part} of {duration(whole)} of GPU time, durations summed"
    console.print(Text(title, style="bold"))
    table = plain_table("", "family", "GPU ops", "time", "share", "longest")
    table.title = None
    for row in families[:limit]:
        table.add_row(
            Text(row["family"]),
            f"{row['count']:,}",
            duration(row["time_us"]),
            share(row["share"]),
            Text(printable(row["longest"] or "unknown")),
        )
    table.columns[-1].justify = "left"
    console.print(table)
    if len(families) > limit:
        console.print(Text(f"and {len(families) - limit:,} more; --limit shows them"))
