"""Why the CPU time of an annotation is not its GPU time: one line, from what was recorded."""

from collections.abc import Iterator, Mapping
from typing import Any

from analyze.words import counted, duration, printable, share

_WAITS_MATTER = 0.1
"""Share of the CPU time from which waiting is worth a word."""

_MOSTLY = 0.5


def why(entry: Mapping[str, Any]) -> str | None:
    """Return the line for an entry of :func:`analyze.report.regions.report_regions`.

    None where nothing can be said, because no GPU work was recorded.
    """
    if entry["together"] is None:
        return None
    return "; ".join([_gpu_against_cpu(entry), *_waiting(entry), *_idle(entry), *_backward(entry)])


def _gpu_against_cpu(entry: Mapping[str, Any]) -> str:
    busy, cpu, after = entry["together"]["busy_us"], entry["cpu_us"], entry["after_its_end"]
    if not entry["together"]["gpu_ops"]:
        return "launched no GPU work"
    if busy is None:
        work = counted(entry["together"]["gpu_ops"], "GPU op")
        return f"launched {work} of unknown time in {duration(cpu)}"
    launched = f"launched {duration(busy)} of GPU work in {duration(cpu)}"
    if not after["gpu_ops"]:
        return f"{launched}, and it had all ended by then"
    late = f"{share(after['time_share'])} of it ran after the region had ended"
    return f"{launched}: the GPU runs behind, {late}" if busy > cpu else f"{launched}; {late}"


def _waiting(entry: Mapping[str, Any]) -> Iterator[str]:
    part = entry["waiting_us"] / entry["cpu_us"] if entry["cpu_us"] else 0
    if part >= _WAITS_MATTER:
        longest = entry["waits"][0]
        yield (
            f"waits in {printable(longest['name'] or 'unknown')} for {duration(longest['time_us'])}"
        )


def _idle(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield that the GPU has nothing to do meanwhile, unless its work comes later or is awaited."""
    idle, cpu, together = entry["gpu_idle_share"], entry["cpu_us"], entry["together"]
    waits = bool(cpu) and entry["waiting_us"] / cpu >= _MOSTLY
    is_short = together["busy_us"] is not None and together["busy_us"] <= cpu
    if idle is not None and idle >= _MOSTLY and is_short and not waits:
        cause = "host-bound: " if together["gpu_ops"] else ""
        yield f"{cause}no GPU works for {share(idle)} of its CPU time"


def _backward(entry: Mapping[str, Any]) -> Iterator[str]:
    if entry["backward"]["gpu_ops"] and entry["backward"]["busy_us"] is not None:
        time = duration(entry["backward"]["busy_us"])
        yield f"{time} of it is backward work that another thread launched meanwhile"
