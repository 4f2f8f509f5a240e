"""What the GPU did and what it waited for, in a sentence: for where no finding says so."""

from collections.abc import Mapping
from typing import Any

from analyze.engine.result import LEVELS, Finding, Level, TraceReport
from analyze.report.coverage_text import MUCH_LEAD
from analyze.tables.units import unit_name
from analyze.words import UNKNOWN, printable, share

MUCH_IDLE = 0.25
"""Share of the GPU's time: idle for longer is worth a sentence, whether or not a rule says why."""

_MOST = 0.5
_MOST_FAMILIES = 3

_BECAUSE = {
    "host": "its next work was launched late",
    "sync": "the host waited for it before it launched more",
    "input": "data was being loaded",
    "profiler": "of the profiler's own overhead",
    "launch": "launch calls took long",
    "stream": "work waited for another stream",
    "device": "queued work did not begin at once",
    None: "of work whose launch is not in the file",
}
"""Causes of the table ``gaps``, as the end of a sentence that says because."""

_RULES: Mapping[str | None, Mapping[str, Level]] = {
    "host": {"IDLE101": "info", "MEM102": "error"},
    "sync": {"SYNC101": "info"},
    "input": {"IDLE102": "info"},
    "launch": {"LAUNCH103": "info"},
    None: {"TRACE102": "info"},
}
"""The built-in rules that find much idle time of a cause, and how severe the finding then is."""


def idle_share(report: TraceReport) -> float:
    """Return the idle share of the GPU's time; 0 where it is unknown."""
    known = report.coverage["gpu_time"] or {}
    return known.get("idle_share") or 0.0


def unexplained_idle(report: TraceReport) -> str | None:
    """Say that the GPU is idle for much of its time and why; None where a finding does.

    What a baseline knows is not shown, so that it tells nobody.
    """
    known = report.coverage["gpu_time"] or {}
    main = next(iter(known.get("idle_causes", ())), None)
    if main is None or idle_share(report) <= MUCH_IDLE:
        return None
    cause = main["cause"]
    shown = (finding for finding in report.findings if not finding.is_known)
    if any(_explains(finding, cause) for finding in shown):
        return None
    because = _BECAUSE.get(cause, printable(f"of {cause}"))
    name = f" (cause {printable(cause)})" if cause is not None else ""
    idle = share(idle_share(report))
    said = (
        f"The GPU is idle {idle} of the time, {share(main['share'])} of it because {because}{name}"
    )
    apart = _apart(known, unit_name(report.coverage["forward_is"]))
    return f"{said}; {apart}" if apart else said


def _apart(known: Mapping[str, Any], unit: str) -> str | None:
    """Say that most of the idle time lies between forwards, or outside of them; None if not."""
    places = {"between": f"between {unit}s", "outside": f"outside of any {unit}'s work"}
    for place, words in places.items():
        part = known.get(f"idle_{place}_share") or 0.0
        if part >= _MOST:
            return f"{share(part)} of it lies {words}"
    return None


def mostly_communication(report: TraceReport) -> str | None:
    """Say that most of what keeps the GPU busy is communication; None where it is not."""
    known = (report.coverage["gpu_time"] or {}).get("communication")
    if known is None or (known["share"] or 0.0) < _MOST:
        return None
    return (
        f"Communication is {share(known['share'])} of what keeps the GPU busy; it also waits for"
        " the other ranks"
    )


def _explains(finding: Finding, cause: str | None) -> bool:
    least = _RULES.get(cause, {}).get(finding.code)
    return least is not None and LEVELS.index(finding.severity) >= LEVELS.index(least)


def what_dominates(report: TraceReport) -> str | None:
    """Say how busy the GPU is and with what; None without GPU work of a known time."""
    known = report.coverage["gpu_time"]
    if known is None or known["idle_share"] is None or not known["families"]:
        return None
    families = ", ".join(map(_family, _most(known["families"])))
    busy = share(1 - known["idle_share"])
    lead = known.get("lead")
    since = " from its first work on" if lead and lead["share"] >= MUCH_LEAD else ""
    return f"The GPU is busy {busy} of the time{since}; of its work {families}"


def _most(families: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first families that make up half of the time, at most a few."""
    needed, told = 0, 0.0
    while needed < min(len(families), _MOST_FAMILIES) and told < _MOST:
        told += families[needed]["share"] or 0.0
        needed += 1
    return families[:needed]


def _family(entry: dict[str, Any]) -> str:
    unnamed = f"kernels of {UNKNOWN} family" if entry["kind"] == "kernel" else entry["kind"]
    return f"{printable(entry['family'] or unnamed)} {share(entry['share'])}"
