"""Write a guess file: YAML that reads as it was guessed."""

import json
import re
from collections.abc import Mapping, Sequence

from analyze.guess.accepting import Accepted, Value
from analyze.guess.quantities import QUANTITIES
from analyze.tables.build import Trace
from analyze.tables.units import PROFILER_STEP, WHOLE_TRACE, unit_name
from analyze.words import printable

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .%+_-]*")
_READ_AS_OTHERS = re.compile(r"(?i)true|false|null|yes|no|on|off|y|n|[-+.0-9_:eExXoO]+")


def what_a_forward_is(trace: Trace) -> str:
    """Return what a forward is in a trace, in words."""
    count = trace.table("forwards").height
    if trace.forward_source == WHOLE_TRACE:
        return "the whole trace, for nothing in it marks a forward"
    if trace.forward_source == PROFILER_STEP:
        return f"a ProfilerStep ({count:,} in the trace)"
    return f"the annotation {printable(trace.forward_source)} ({count:,} in the trace)"


def guesses_as_yaml(
    answers: Mapping[str, str], trace: Trace, day: str, forward: str | None = None
) -> str:
    """Return the text of a guess file with answers to questions.

    Args:
        answers: by key, as they were given.
        trace: the trace that they are about.
        day: the date, for people.
        forward: the annotation, where somebody named it.
    """
    head = [
        f"What was guessed of {printable(trace.name)} on {day}, before looking.",
        f"A forward is {what_a_forward_is(trace)}.",
    ]
    values = {key: _value(text) for key, text in answers.items()}
    return _text(head, values, {}, trace.forward_source, forward)


def _value(answer: str) -> Value:
    """Return an answer as it is written; other readers of YAML take ``no`` for false."""
    if answer.isascii() and answer.isdecimal():
        return int(answer)
    return "none" if answer.lower() == "no" else answer


def accepted_as_yaml(accepted: Accepted, trace: Trace, day: str, forward: str | None = None) -> str:
    """Return the text of a guess file with what was taken from a trace."""
    device = trace.table("trace")["device_name"].item() or "an unknown device"
    head = [
        f"Taken from {printable(trace.name)} on {day}, as a trace that is known to be good.",
        f"Recorded on {printable(device)}. A forward is {what_a_forward_is(trace)}.",
    ]
    return _text(head, accepted.values, accepted.left_out, trace.forward_source, forward)


def _text(
    head: Sequence[str],
    values: Mapping[str, Value],
    left_out: Mapping[str, str],
    forward_is: str,
    forward: str | None,
) -> str:
    unit = unit_name(forward_is)
    lines = [f"# {sentence}" for sentence in head]
    lines += ["# Check it with: analyze TRACE --expect THIS_FILE", "version: 1"]
    if forward is not None:
        lines.append(f"forward: {_scalar(forward)}")
    lines += [line for key, value in values.items() for line in _entry(key, value, unit)]
    lines += [
        f"# {key} ({QUANTITIES[key].title}) is left out: {printable(reason)}"
        for key, reason in left_out.items()
    ]
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Value, unit: str) -> list[str]:
    comment = _comment(key, unit)
    if isinstance(value, int):
        return [f"{key}: {value}{comment}"]
    if isinstance(value, str):
        return [f"{key}: {_scalar(value)}{comment}"]
    return [f"{key}:{comment}", *(f"  - {_scalar(item)}" for item in value)]


def _comment(key: str, unit: str) -> str:
    return f"  # {_COMMENTS[key].format(unit=unit)}" if key in _COMMENTS else ""


_COMMENTS: Mapping[str, str] = {
    "gpu_ops": "kernels, copies and sets per {unit}",
    "kernels": "per {unit}",
    "copies": "memcpys per {unit}",
    "dominant": "family that takes the most GPU time",
    "precision": "of matrix products, convolutions and attention",
    "idle": "share of the time from the first to the last GPU work",
    "syncs": "synchronising calls per {unit}",
    "gpu_time": "GPU busy time per {unit}",
    "cpu_ops": "per {unit}",
    "cpu_time": "per {unit}",
    "order": "by short name or family, in the order of their start",
}


def _scalar(text: str) -> str:
    """Return text as YAML, in quotes where it could be read as something else."""
    if _PLAIN.fullmatch(text) and not _READ_AS_OTHERS.fullmatch(text) and text == text.strip():
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
