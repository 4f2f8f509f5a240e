"""Does an exported trace hold what was asked for?

Profilers lose GPU events: at the start of a session (pytorch#192021), or all of them when clocks
disagree (kineto#996). Only the file can tell.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from capture.trace_events import EventReader

STEP_PREFIX = "ProfilerStep#"
MIN_MATCHED = 0.99
"""Share of launches whose GPU event must be in the file."""

LAUNCH = re.compile(
    r"^[a-z]+(Ext|Hcc|Drv)?(Module)?Launch(Cooperative|Multi)?(Kernel|ByPtr)"
    r"|^[a-z]+Enqueue(Cooperative)?KernelLaunch"
    r"|^[a-z]+GraphLaunch"
)
"""How the names of calls begin that start kernels, as in ``analyze/tables/api.py``.

A copy may end without GPU work, so its absence proves nothing; a function of the host that the GPU
calls back (``LaunchHostFunc``) never has any.
"""

_LAUNCH_CATEGORIES = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver")


@dataclass(frozen=True)
class Verification:
    """What a trace holds.

    Attributes:
        events: intact events.
        damaged_events: events that could not be decoded.
        steps: names of the recorded steps.
        cpu_ops: operators.
        kernels: GPU kernels.
        launches: calls that start kernels.
        matched_launches: those whose GPU work is in the file.
        problems: what is missing, each in one line; empty for a good trace.
    """

    events: int
    damaged_events: int
    steps: tuple[str, ...]
    cpu_ops: int
    kernels: int
    launches: int
    matched_launches: int
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Expectation:
    """What a trace must hold.

    Attributes:
        active: number of recorded steps.
        annotations: names that every step writes once.
        on_gpu: there must be kernels.
    """

    active: int
    annotations: Sequence[str]
    on_gpu: bool


def verify(path: Path, expected: Expectation) -> Verification:
    """Read a trace again and compare it with what was asked for.

    Args:
        path: the trace as the profiler wrote it, not compressed.
        expected: what it must hold.
    """
    reader = EventReader(path)
    categories: Counter[str] = Counter()
    annotations: Counter[str] = Counter()
    launched: set[object] = set()
    ran: set[object] = set()
    for event in reader:
        category = event.get("cat", "")
        categories[category] += 1
        correlation = _arguments(event).get("correlation")
        if category == "user_annotation":
            annotations[event.get("name", "")] += 1
        elif category == "kernel":
            ran.add(correlation)
        elif category in _LAUNCH_CATEGORIES and LAUNCH.match(event.get("name", "")):
            launched.add(correlation)
    steps = tuple(name for name in annotations if name.startswith(STEP_PREFIX))
    problems = [
        *_missing_steps(steps, expected),
        *_missing_annotations(annotations, expected),
        *_missing_work(categories, expected),
        *_lost_launches(launched, ran),
        *([] if reader.complete else ["the list of events is cut off"]),
    ]
    return Verification(
        events=categories.total(),
        damaged_events=reader.damaged,
        steps=steps,
        cpu_ops=categories["cpu_op"],
        kernels=categories["kernel"],
        launches=len(launched),
        matched_launches=len(launched & ran),
        problems=tuple(problems),
    )


def _arguments(event: dict[str, object]) -> dict[str, object]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _missing_steps(steps: Sequence[str], expected: Expectation) -> list[str]:
    if len(steps) >= expected.active:
        return []
    return [f"{len(steps)} of {expected.active} active steps are in the file"]


def _missing_annotations(annotations: Counter[str], expected: Expectation) -> list[str]:
    return [
        f"{annotations[name]} of {expected.active} annotations {name} are in the file"
        for name in expected.annotations
        if annotations[name] < expected.active
    ]


def _missing_work(categories: Counter[str], expected: Expectation) -> list[str]:
    if expected.on_gpu and not categories["kernel"]:
        return ["no GPU kernel is in the file"]
    return [] if categories["cpu_op"] else ["no operator is in the file"]


def _lost_launches(launched: set[object], ran: set[object]) -> list[str]:
    lost = len(launched - ran)
    if lost <= (1 - MIN_MATCHED) * len(launched):
        return []
    return [f"{lost} of {len(launched)} launches have no GPU event in the file"]
