"""How a diff is worded, in whatever format: cells of tables, and sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analyze.report.compare_words import Naming, count_word
from analyze.report.diff import SECTIONS, is_changed
from analyze.tables.host import CHAIN_SEPARATOR, ELLIPSIS
from analyze.tables.units import UnitName, common_unit_name, unit_name
from analyze.words import counted, duration, printable, size, whole

Data = Mapping[str, Any]
NOTHING = "-"
_SMALL = 0.01
_MOST_OPS = 4
"""Ops of a chain that are shown whole."""
UNCHANGED = "unchanged"

QUANTITY_LABELS = {
    "gpu_time": "GPU busy time",
    "gpu_idle": "idle, first to last",
    "gpu_span": "GPU first to last",
    "cpu_time": "CPU time",
    "gpu_ops": "GPU ops",
    "kernels": "kernels",
    "copies": "copies",
    "launches": "launches",
    "syncs": "syncs",
    "cpu_ops": "CPU ops",
    "latency": "latency",
    "peak_memory": "peak memory",
    "findings": "findings",
}

SECTION_TITLES = {
    "copies": "Copies and sets, GPU time summed",
    "kernels": "Kernels, GPU time summed",
    "syncs": "Synchronising calls, CPU time summed",
    "ops_gpu": "Ops, GPU time of what they launched themselves, summed",
    "ops_cpu": "Ops, CPU self time summed",
}
ROW_COLUMNS = ("", "count", "before", "after", "change", "what")


def unit_of(data: Data) -> UnitName:
    """Return in a word what a forward is in both traces."""
    return common_unit_name(data[side]["forward_is"] for side in ("before", "after"))


def summary_columns(data: Data) -> tuple[str, ...]:
    """Return the headings of :func:`summary_rows`."""
    unit = unit_of(data)
    amounts = "of the whole trace" if unit == "trace" else f"per {unit}, median"
    return amounts, "before", "after", "change", ""


def side_sentence(side: Data, named: Naming = printable) -> str:
    """Word what one of the traces is; ``named`` writes a name from it, here as below."""
    unit = unit_name(side["forward_is"])
    units = "the whole trace"
    if unit != "trace":
        units = f"{counted(side['forwards'], unit)} ({named(side['forward_is'])})"
    parts = ["SYNTHETIC"] if side["synthetic"] else []
    parts += [named(side["device"])] if side["device"] else []
    capture = side["capture"]
    parts += [f"captured {named(capture['name'])}"] if capture else []
    return "; ".join([named(side["trace"]), *parts, units])


def verdict(data: Data) -> str:
    """Say in a sentence whether anything changed, and how well that is known."""
    if data["identical"]:
        return "Nothing changed"
    unit = unit_of(data)
    if not data["noise_judged"]:
        one = "is compared as a whole" if unit == "trace" else f"has one {unit}"
        doubt = f"each trace {one}, so that noise cannot be judged"
        known = "Changes may be noise" if data["changed"] else "Nothing changed by 1 % or more"
        return f"{known}: {doubt}"
    return "" if data["changed"] else f"Nothing changed beyond the noise of the {unit}s"


def summary_rows(data: Data) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the cells of the summary; an amount that neither trace knows is left out."""
    for row in data["summary"]:
        if row["before"] is None and row["after"] is None:
            continue
        before, after = (_value(row[side], row["unit"]) for side in ("before", "after"))
        yield QUANTITY_LABELS[row["name"]], before, after, _change(row), _state(row)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "unknown"
    return {"us": duration, "bytes": size}.get(unit, count_word)(value)


def _change(row: Data) -> str:
    if not row["change"]:
        return NOTHING
    if row["unit"] == "":
        return f"{'+' if row['change'] > 0 else '-'}{count_word(abs(row['change']))}"
    if row["change_share"] is None:
        return NOTHING
    return _relative(row["change_share"])


def _relative(change: float) -> str:
    """Word a change as a share of what was before; the sign is for numbers only."""
    size = abs(change)
    if size < _SMALL:
        return "less than 1 %"
    if -1 < change < _SMALL - 1:
        return "more than 99 %"
    return f"{'+' if change > 0 else '-'}{whole(size * 100)} %"


def _state(row: Data) -> str:
    if row["state"] is None:
        return row["unknown_before"] or row["unknown_after"] or ""
    if row["state"] == UNCHANGED and row["change"]:
        is_judged = row["before_spread"] is not None or row["after_spread"] is not None
        return "within noise" if is_judged else "noise unknown"
    return str(row["state"])


def changed_rows(data: Data, section: str) -> list[Data]:
    """Return the rows of a section that changed, those of :func:`headlines` left out."""
    return [row for row in data[section] if is_changed(row) and not _makes_headline(section, row)]


def _makes_headline(section: str, row: Data) -> bool:
    return section in ("copies", "syncs") and row["state"] in ("new", "gone")


def row_cells(
    data: Data, row: Data, named: Naming = printable
) -> tuple[str, str, str, str, str, str]:
    """Return the cells of aligned work."""
    before, after = row["before"], row["after"]
    return (
        row["state"] if row["state"] != UNCHANGED else "same time",
        _counts(before, after),
        _time(before),
        _time(after),
        _change_of_work(row),
        ", ".join([work_name(row, named), *_occurrences(data, row)]),
    )


def _change_of_work(row: Data) -> str:
    is_hidden = not row["change_us"] and (_is_rare(row["before"]) or _is_rare(row["after"]))
    return NOTHING if is_hidden else _signed(row["change_us"])


def _time(side: Data | None) -> str:
    return NOTHING if side is None or _is_rare(side) else duration(side["time_us"])


def _is_rare(side: Data | None) -> bool:
    """Whether work takes its time in so few forwards that the median is 0."""
    if side is None or side["time_us"]:
        return False
    return not side["count"] or bool(side["time_where_it_occurs_us"])


def _occurrences(data: Data, row: Data) -> Iterator[str]:
    """Yield in how many forwards rare work occurs, and its time there."""
    for key in ("before", "after"):
        if _is_rare(row[key]):
            words = _occurrence(data, key, row[key])
            yield words if row["state"] in ("new", "gone") else f"{key} {words}"


def _occurrence(data: Data, key: str, side: Data) -> str:
    units = counted(data[key]["forwards"], unit_of(data))
    return f"in {side['in_forwards']:,} of {units}, {duration(side['time_where_it_occurs_us'])}"


def _signed(microseconds: float) -> str:
    return f"{'+' if microseconds > 0 else ''}{duration(microseconds)}"


def _counts(before: Data | None, after: Data | None) -> str:
    if not any(side and side["count"] for side in (before, after)):
        return NOTHING
    counts = [count_word(side["count"]) if side else "0" for side in (before, after)]
    return counts[0] if counts[0] == counts[1] else f"{counts[0]} -> {counts[1]}"


def work_name(row: Data, named: Naming = printable) -> str:
    """Name aligned work: what it is, by which other kernel it is done, and where."""
    sides = [side for side in (row["before"], row["after"]) if side]
    names = [_first_of(side["names"], named) for side in sides]
    chains = [_first_of(side["op_chains"], named) for side in sides]
    parts = [names[-1]]
    if row["kernel"] is not None:
        parts = [" -> ".join(dict.fromkeys([names[0], names[-1]])), row["kernel"]]
    is_op = names[-1] == chains[-1]
    if chains[-1] and not is_op and (row["kernel"] or row["state"] in ("new", "gone")):
        parts.append(f"in {chains[-1]}")
    elif row["matched_by"] == "elsewhere":
        parts.append(f"was {'' if is_op else 'in '}{chains[0]}")
    inside = sum(side["inside"] for side in sides)
    parts += [f"with {counted(inside, 'op chain')} inside"] if inside else []
    return ", ".join(parts)


def _first_of(names: Sequence[str], named: Naming) -> str:
    """Return the first name, op chains without their middle, and how many more there are."""
    if not names:
        return ""
    ops = names[0].split(CHAIN_SEPARATOR)
    if len(ops) > _MOST_OPS:
        ops = [ops[0], ELLIPSIS, *ops[-2:]]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return named(CHAIN_SEPARATOR.join(ops)) + more


def left_out(data: Data, section: str, shown: int) -> str:
    """Say what a list leaves out: changes beyond the limit, and what is unchanged."""
    changed = changed_rows(data, section)
    unchanged = sum(not is_changed(row) for row in data[section])
    parts = []
    if len(changed) > shown:
        rest = sum(row["change_us"] for row in changed[shown:])
        parts.append(f"{len(changed) - shown:,} more changed, {_signed(rest)} in all")
    if unchanged:
        parts.append(f"{unchanged:,} {UNCHANGED}")
    return f"and {'; '.join(parts)}" if parts else ""


def headlines(data: Data, limit: int, named: Naming = printable) -> Iterator[str]:
    """Yield a sentence for each copy, set and synchronising call that is new or gone."""
    rows = [row for section in SECTIONS for row in data[section] if _makes_headline(section, row)]
    for row in rows[:limit]:
        key = "before" if row["before"] else "after"
        side = row[key]
        name, chain = (_first_of(side[names], named) for names in ("names", "op_chains"))
        work = (
            f"{count_word(side['count'])} {name} per {unit_of(data)}, {duration(side['time_us'])}"
        )
        if _is_rare(side):
            work = f"{name} {_occurrence(data, key, side)}"
        yield f"{row['state']}: {work}{f', in {chain}' if chain else ''}"
    if len(rows) > limit:
        yield f"and {len(rows) - limit:,} more copies, sets and synchronising calls new or gone"


def finding_rows(data: Data, limit: int) -> Iterator[tuple[str, str]]:
    """Yield (what became of it, the finding); findings that stay the same are counted only.

    Args:
        data: the diff.
        limit: findings that are shown of each sort.
    """
    found = data["findings"]
    kept = found["kept"]
    reworded = [finding for finding in kept if finding["message"] != finding["message_before"]]
    sorts = (
        ("new", found["new"], "{message}"),
        ("gone", found["gone"], "{message}"),
        ("still", reworded, "now {message}"),
        ("unknown", found["unanswered"], "the other trace cannot answer this rule"),
    )
    for state, findings, words in sorts:
        for finding in findings[:limit]:
            yield state, _finding(finding, words.replace("{message}", finding["message"]))
        if len(findings) > limit:
            yield state, f"and {len(findings) - limit:,} more"
    if len(kept) > len(reworded):
        yield "still", counted(len(kept) - len(reworded), "finding") + " with the same words"


def _finding(finding: Data, message: str) -> str:
    return printable(f"{finding['code']} {finding['title']}: {message}")


def gate_sentences(data: Data, named: Naming = printable) -> Iterator[tuple[str, str]]:
    """Yield (state, sentence) of each gate."""
    for gate in data["gates"]:
        sentence = named(gate["condition"])
        if gate["state"] == "unanswered":
            reasons = ", ".join(_why_unknown(data, name) for name in gate["unknown"])
            sentence += f": {reasons or 'it divides by zero'}"
        elif gate["state"] == "failed":
            sentence += f": {', '.join(_gate_amount(data, name) for name in gate['amounts'])}"
        yield gate["state"], sentence


def _why_unknown(data: Data, name: str) -> str:
    row = _summary_row(data, name.removeprefix("before."))
    side = "before" if name.startswith("before.") else "after"
    return f"{name} is unknown ({row[f'unknown_{side}']})"


def _gate_amount(data: Data, name: str) -> str:
    row = _summary_row(data, name)
    before, after = (_value(row[side], row["unit"]) for side in ("before", "after"))
    return f"{name} {before} -> {after}"


def _summary_row(data: Data, name: str) -> Data:
    row: Data = next(row for row in data["summary"] if row["name"] == name)
    return row


def shown_sections(data: Data) -> Sequence[str]:
    """Return the sections in which something changed."""
    return [section for section in SECTIONS if changed_rows(data, section)]
