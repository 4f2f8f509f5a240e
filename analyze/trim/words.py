"""What trimming did, in words."""

from collections.abc import Iterator

from analyze.trim.closure import Closure
from analyze.trim.trimming import TrimReport
from analyze.words import counted, printable, share, size

_WRAPPED = (
    "the file is a bare list of events, which has no place to say what is missing; what was written"
    " is an object with that list in it, as trace viewers read it too"
)

_NEARLY_ALL = 0.9
"""Share of the events from which on trimming has made little smaller."""


def trim_lines(report: TrimReport) -> Iterator[tuple[str, str]]:
    """Yield (label, sentence) pairs about what was kept of what."""
    if report.selected:
        kept, of = report.selected.words, report.selected.of
        yield "kept", f"{kept} of {of}" if of and of != kept else kept
    else:
        yield "kept", "everything"
    part = share(report.events / report.all_events) if report.all_events else "all"
    yield "events", f"{report.events:,} of {report.all_events:,} ({part})"
    whole = report.selected.whole if report.selected else None
    if whole is not None and report.events >= _NEARLY_ALL * report.all_events:
        yield "hint", f"nearly everything lies in the same {whole}; --context MS keeps less"
    if report.output_bytes:
        yield "bytes", f"{size(report.output_bytes)}, from {size(report.file_bytes)}"
    if report.closure:
        yield from _closure_lines(report.closure)
    if report.wrapped:
        yield "note", _WRAPPED
    if report.replaced is not None:
        yield "replaced", _replaced(report.replaced)
    if report.dropped:
        members = counted(report.dropped, "member")
        yield "left out", f"{members} beside the events that torch's profiler does not write"


def _closure_lines(closure: Closure) -> Iterator[tuple[str, str]]:
    yield "GPU work", _gpu_work(closure)
    if closure.reaching_out:
        yield (
            "borders",
            f"{counted(closure.reaching_out, 'host event')} kept whole although only a part lies"
            " in the kept time; what happened in the rest of them is not kept",
        )
    arrows = f"{closure.flows:,} kept with both ends"
    if closure.half_flows:
        arrows += f"; {counted(closure.half_flows, 'single end')} left out"
    yield "arrows", arrows


def _gpu_work(closure: Closure) -> str:
    kept = f"{closure.gpu_ops:,} of {counted(closure.all_gpu_ops, 'GPU op')}"
    if not closure.all_gpu_ops:
        return "none in the file"
    if not closure.unlinked:
        return f"{kept}, each with its launch"
    return (
        f"{kept}, each with its launch but {closure.unlinked:,}: theirs are not in the file, so"
        " they are kept by the op they name or by their own time"
    )


def _replaced(counts: dict[str, int]) -> str:
    words = [counted(count, printable(noun), _PLURALS.get(noun)) for noun, count in counts.items()]
    return ", ".join(words) if words else "nothing: every text in it is a known one"


_PLURALS = {
    "process": "processes",
    "address": "addresses",
    "class": "classes",
    "hash": "hashes",
    "category": "categories",
}
