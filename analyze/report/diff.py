"""What changed between two traces, as plain data; amounts are medians of a forward."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from analyze.diff.alignment import Pair, align_calls, align_kernels, align_ops
from analyze.diff.comparability import differences
from analyze.diff.findings import FindingChanges, compare_findings
from analyze.diff.gates import Gate, Outcome, evaluate
from analyze.diff.groups import (
    Group,
    copy_groups,
    kernel_groups,
    op_groups,
    per_forward,
    sync_groups,
)
from analyze.diff.noise import Amount, judge
from analyze.diff.quantities import QUANTITIES, Known, Quantity, measure, state_of, values
from analyze.engine.result import Finding, TraceReport
from analyze.tables.build import Trace

SCHEMA_VERSION = 1

SECTIONS = ("copies", "kernels", "syncs", "ops_gpu", "ops_cpu")
"""The lists of aligned work, each ranked by the change of its time."""

_MOST_NAMES = 5
_TIME_STATES = {"more": "slower", "less": "faster"}
_IDLE_STATES = {"more": "longer", "less": "shorter"}
_COUNT_STATES = {"more": "more", "less": "fewer"}

Row = dict[str, Any]
Side = tuple[Trace, TraceReport]


def diff(before: Side, after: Side, gates: Sequence[Gate] = ()) -> Row:
    """Return what changed from one trace to another.

    Times are float microseconds, sizes bytes, null is unknown. Work is aligned: kernels by name
    without tile sizes, else by op and family; copies, synchronising calls and ops by op chain. A
    time is ``slower`` or ``faster`` only by more than its noise, see :mod:`analyze.diff.noise`.
    Work takes its time in ``in_forwards`` forwards; where those are fewer than half, its median is
    0, and ``time_where_it_occurs_us`` is the median of these forwards only.

    Args:
        before: a trace and what the rules found in it.
        after: the same of the other trace.
        gates: conditions that are evaluated on the summary.
    """
    findings = compare_findings(before[1], after[1])
    ours, theirs = (measure(*side, findings.answered) for side in (before, after))
    summary = [_quantity(quantity, ours, theirs) for quantity in QUANTITIES]
    sections = _sections(before[0], after[0])
    found = _findings(findings)
    return {
        "schema_version": SCHEMA_VERSION,
        "before": _side(*before),
        "after": _side(*after),
        "warnings": differences(before[0], after[0]),
        "identical": _is_identical(summary, sections, found),
        "noise_judged": any(_forwards(side[0]) > 1 for side in (before, after)),
        "changed": _is_changed(summary, sections, found),
        "summary": summary,
        **sections,
        "findings": found,
        "gates": [_gate(evaluate(gate, values(ours), values(theirs))) for gate in gates],
    }


def _side(trace: Trace, report: TraceReport) -> Row:
    coverage = report.coverage
    return {
        "trace": trace.name,
        "device": coverage["device"],
        "forward_is": coverage["forward_is"],
        "forwards": coverage["forwards"],
        "gpu_ops": coverage["gpu_ops"],
        "linked_share": coverage["linked_share"],
        "synthetic": coverage["synthetic"],
        "capture": coverage["capture"],
    }


def _is_changed(summary: Sequence[Row], sections: Mapping[str, Sequence[Row]], found: Row) -> bool:
    rows = [*summary, *(row for rows in sections.values() for row in rows)]
    lists = ("new", "gone", "unanswered")
    return any(is_changed(row) for row in rows) or any(found[name] for name in lists)


def _is_identical(
    summary: Sequence[Row], sections: Mapping[str, Sequence[Row]], found: Row
) -> bool:
    """Whether all amounts are equal, however small a difference is."""
    moved = any(row["change"] for row in summary) or any(
        row["change_us"] for rows in sections.values() for row in rows
    )
    return not moved and not _is_changed(summary, sections, found)


def is_changed(row: Row) -> bool:
    """Whether a row of the summary or of a section says that something changed."""
    return row["state"] not in (None, "unchanged") or row.get("kernel") is not None


def _forwards(trace: Trace) -> int:
    return trace.facts.forwards.intervals.height


def _quantity(quantity: Quantity, before: Mapping[str, Known], after: Mapping[str, Known]) -> Row:
    ours, theirs = before[quantity.name], after[quantity.name]
    one, other = ours.amount, theirs.amount
    state = state_of(quantity, ours, theirs)
    words = _TIME_STATES if quantity.unit == "us" else _COUNT_STATES
    if quantity.name == "gpu_idle":
        words = _IDLE_STATES
    change = None if one is None or other is None else _rounded(other.median - one.median)
    return {
        "name": quantity.name,
        "unit": quantity.unit,
        "meaning": quantity.meaning,
        "before": _rounded(one.median) if one else None,
        "after": _rounded(other.median) if other else None,
        "before_spread": _rounded(one.spread) if one else None,
        "after_spread": _rounded(other.spread) if other else None,
        "change": change,
        "change_share": change / one.median if change is not None and one and one.median else None,
        "state": words.get(state, state) if state else None,
        "unknown_before": ours.reason,
        "unknown_after": theirs.reason,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _sections(before: Trace, after: Trace) -> dict[str, list[Row]]:
    """Return the aligned work of both traces, section by section."""
    forwards = (_forwards(before), _forwards(after))
    if not all(forwards):
        return {name: [] for name in SECTIONS}

    def aligned(
        align: Callable[[Sequence[Group], Sequence[Group]], list[Pair]],
        groups: Callable[[Trace], list[Group]],
        kernel: Callable[[Pair], str | None] = lambda _: None,
    ) -> list[Row]:
        pairs = align(groups(before), groups(after))
        return _ranked({**_row(pair, forwards), "kernel": kernel(pair)} for pair in pairs)

    return {
        "copies": aligned(align_calls, copy_groups),
        "kernels": aligned(align_kernels, kernel_groups, _other_kernel),
        "syncs": aligned(align_calls, sync_groups),
        **_ops(before, after, forwards),
    }


def _ops(before: Trace, after: Trace, forwards: tuple[int, int]) -> dict[str, list[Row]]:
    """Return the ops twice: by the GPU work that they launched themselves, and by CPU self time."""
    pairs = align_ops(op_groups(before), op_groups(after))
    on_gpu = [_on_gpu(pair) for pair in pairs]
    return {
        "ops_gpu": _ranked(
            {**_row(pair, forwards), "kernel": None} for pair in filter(None, on_gpu)
        ),
        "ops_cpu": _ranked({**_row(pair, forwards), "kernel": None} for pair in pairs),
    }


def _on_gpu(pair: Pair) -> Pair | None:
    """Return the same ops with their GPU time; None where they launched nothing."""
    before, after = (
        tuple(replace(group, time_ns=group.gpu_ns) for group in groups)
        for groups in (pair.before, pair.after)
    )
    launched = any(any(group.time_ns.values()) for group in (*before, *after))
    return Pair(before, after, pair.matched_by) if launched else None


def _ranked(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-abs(row["change_us"]), _names(row)))


def _names(row: Row) -> list[str]:
    return [name for side in ("before", "after") if row[side] for name in row[side]["names"]]


def _row(pair: Pair, forwards: tuple[int, int]) -> Row:
    before, after = (
        _amounts(groups, count)
        for groups, count in zip((pair.before, pair.after), forwards, strict=True)
    )
    one = before[1].median if before else 0.0
    other = after[1].median if after else 0.0
    return {
        "state": _state(before, after),
        "matched_by": pair.matched_by,
        "before": _work(pair.before, before),
        "after": _work(pair.after, after),
        "change_us": _rounded(other - one),
    }


Amounts = tuple[Amount, Amount]
"""How often per forward, and the time in microseconds."""


def _amounts(groups: Sequence[Group], forwards: int) -> Amounts | None:
    if not groups:
        return None
    return (
        per_forward([group.count for group in groups], forwards),
        per_forward([group.time_ns for group in groups], forwards, scale=1000),
    )


def _state(before: Amounts | None, after: Amounts | None) -> str:
    """Judge the time; where that is unchanged, how often."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    of_time = judge(before[1], after[1])
    if of_time != "unchanged":
        return _TIME_STATES[of_time]
    of_count = judge(before[0], after[0], least_change=0.0)
    return _COUNT_STATES.get(of_count, of_count)


def _work(groups: Sequence[Group], amounts: Amounts | None) -> Row | None:
    if amounts is None:
        return None
    costliest = sorted(groups, key=lambda group: (-sum(group.time_ns.values()), group.name))
    count, time = amounts
    occurs = _forwards_with(group.time_ns for group in groups)
    occurs = occurs or _forwards_with(group.count for group in groups)
    totals = [sum(group.time_ns.get(index, 0) for group in groups) / 1000 for index in occurs]
    return {
        "names": _distinct(group.name for group in costliest),
        "op_chains": _distinct(group.chain for group in costliest if group.chain is not None),
        "count": _rounded(count.median),
        "time_us": _rounded(time.median),
        "in_forwards": len(occurs),
        "time_where_it_occurs_us": _rounded(median(totals)) if totals else None,
        "spread_us": _rounded(time.spread),
        "inside": sum(group.inside for group in groups),
    }


def _forwards_with(amounts: Iterable[Mapping[int, int]]) -> set[int]:
    """Return the forwards in which any of the amounts is not 0."""
    return {forward for amount in amounts for forward, value in amount.items() if value}


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))[:_MOST_NAMES]


def _other_kernel(pair: Pair) -> str | None:
    """Say in which way the work is done by another kernel; None where it is the same."""
    if pair.matched_by is None:
        return None
    if pair.matched_by == "op":
        return "other kernel"
    if _have_nothing_in_common(pair, lambda group: group.name):
        return "other tile"
    if _have_nothing_in_common(pair, lambda group: group.raw_name):
        return "other template arguments"
    return None


def _have_nothing_in_common(pair: Pair, name: Callable[[Group], str]) -> bool:
    return {name(group) for group in pair.before}.isdisjoint(name(group) for group in pair.after)


def _findings(changes: FindingChanges) -> Row:
    return {
        "new": [_finding(finding) for finding in changes.new],
        "gone": [_finding(finding) for finding in changes.gone],
        "kept": [
            {
                **_finding(after),
                "message_before": before.message,
                "severity_before": before.severity,
                "savings_us_before": before.savings_us,
            }
            for before, after in changes.kept
        ],
        "unanswered": [_finding(finding) for finding in changes.unanswered],
    }


def _finding(finding: Finding) -> Row:
    return {
        "code": finding.code,
        "name": finding.name,
        "title": finding.title,
        "severity": finding.severity,
        "state": finding.state,
        "message": finding.message,
        "savings_us": finding.savings_us,
        "fingerprint": finding.fingerprint,
    }


def _gate(outcome: Outcome) -> Row:
    states = {True: "failed", False: "passed", None: "unanswered"}
    return {
        "condition": outcome.gate.text,
        "state": states[outcome.fails],
        "amounts": list(outcome.gate.amounts),
        "unknown": list(outcome.unknown),
    }
