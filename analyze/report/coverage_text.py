"""Coverage and quality as the lines that open every text report."""

from collections.abc import Iterator, Mapping
from typing import Any

from analyze.report.capture_words import capture_problem
from analyze.report.latency_words import unsteady_latency
from analyze.tables.captured import SHAPE_COLUMNS
from analyze.tables.coverage import MOST_ANNOTATIONS
from analyze.tables.units import unit_name
from analyze.words import counted, duration, printable, share, size

Data = Mapping[str, Any]

MUCH_LEAD = 0.25
"""Share of the recorded time before the first GPU work that is worth a word."""

_MOST_OF_LEAD = 0.5

_MOST = 0.5
"""Share of the GPU ops that are most of them."""

_TRIMS_SHOWN = 3
"""Of a trace that was trimmed again and again, the latest."""


def coverage_lines(coverage: Data, quality: Data) -> Iterator[tuple[str, str]]:
    """Yield (label, sentence) pairs from the data of :mod:`analyze.tables.coverage`."""
    yield "device", _device(coverage, quality)
    yield "events", _events(quality)
    yield "GPU work", _gpu_work(coverage)
    if coverage["gpu_ops"]:
        yield "GPU time", _gpu_time(coverage)
    yield "recorded", _recorded(coverage)
    yield "forward", _forward(coverage)
    if coverage["capture"] is not None:
        yield "captured", _captured(coverage["capture"])
    yield from _reservations(coverage, quality)


def coverage_in_short(coverage: Data, quality: Data) -> Iterator[tuple[str, str]]:
    """Yield what a reader must know before believing a finding, in few lines."""
    yield "device", _device(coverage, quality)
    if coverage["recorded"]["gpu_work"]:
        busy = f"; {_gpu_time_in_short(coverage)}" if coverage["gpu_ops"] else ""
        yield "GPU work", f"{_gpu_work(coverage)}{busy}"
    missing = _not_recorded(coverage)
    if missing:
        yield "recorded", f"without {', '.join(missing)}"
    yield "forward", _forward(coverage)
    if coverage["capture"] is not None:
        yield "captured", _captured(coverage["capture"])
    yield from _reservations(coverage, quality)


def reservations(coverage: Data, quality: Data) -> Iterator[tuple[str, str]]:
    """Yield what makes the findings of a trace less than sure; nothing for a whole, clean one."""
    if coverage["gpu_ops_unlinked"]:
        yield "GPU work", _gpu_work(coverage)
    yield from _reservations(coverage, quality)


def _reservations(coverage: Data, quality: Data) -> Iterator[tuple[str, str]]:
    for sentence in trimmed_sentences(coverage):
        yield "trimmed", sentence
    for sentence in quality_sentences(coverage, quality):
        yield "note", sentence


def trimmed_sentences(coverage: Data) -> Iterator[str]:
    """Yield what a trace says of being only a part of a recording; nothing for a whole one."""
    notes = coverage["trimmed"]
    for note in notes[-_TRIMS_SHOWN:]:
        of = f" of {printable(note['of'])}" if note["of"] else ""
        kept = printable(note["kept"] or "a part")
        yield f"{kept}{of}; {_events_kept(note)}; times and shares are of what was kept"


def _events_kept(note: Data) -> str:
    if note["events"] is None or note["all_events"] is None:
        return "events kept: unknown"
    return f"{note['events']:,} of {counted(note['all_events'], 'event')}"


def _device(coverage: Data, quality: Data) -> str:
    if not coverage["recorded"]["gpu_work"]:
        is_part = coverage["trimmed"] or quality["truncated"]
        return "no GPU work in the file" if is_part else "no GPU work recorded (CPU-only capture)"
    vendors = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
    unnamed = f"{vendors.get(coverage['vendor'], 'unknown')} device"
    name = printable(coverage["device"] or unnamed)
    version = coverage["compute_capability"]
    what = "architecture" if coverage["vendor"] == "amd" else "compute capability"
    return f"{name} ({what} {version})" if version else name


def _events(quality: Data) -> str:
    total = sum(quality["categories"].values())
    layers = printable(" in ".join(quality["compression"]) or "plain")
    producer = printable(quality["producer"])
    return f"{total:,} from {size(quality['text_bytes'])} of JSON ({layers}); {producer}"


def _gpu_work(coverage: Data) -> str:
    total = coverage["gpu_ops"]
    if not total:
        return "none"
    linked = share(coverage["linked_share"])
    sentence = f"{counted(total, 'GPU op')}, {linked} linked to a launch"
    if coverage["gpu_ops_unlinked"]:
        time = duration(coverage["unlinked_gpu_time_us"])
        sentence += f"; {coverage['gpu_ops_unlinked']:,} ({time}) have no launch in the file"
    if coverage["gpu_ops_with_op"] < _MOST * total:
        inside = (
            f"{coverage['gpu_ops_with_op']:,} of them" if coverage["gpu_ops_with_op"] else "none"
        )
        sentence += f"; {inside} inside a recorded op"
    return sentence


def _gpu_time(coverage: Data) -> str:
    busy, span = coverage["gpu_busy_us"], coverage["gpu_span_us"]
    if busy is None:
        return "unknown: no GPU op has a usable duration"
    part = share(busy / span) if span else "unknown"
    hidden = _what_busy_hides(coverage["gpu_time"])
    return f"{duration(busy)} busy of {duration(span)} from first to last work ({part}){hidden}"


def _gpu_time_in_short(coverage: Data) -> str:
    busy, span = coverage["gpu_busy_us"], coverage["gpu_span_us"]
    if busy is None:
        return "busy for an unknown time"
    part = share(busy / span) if span else "unknown"
    hidden = _what_busy_hides(coverage["gpu_time"])
    return f"busy {duration(busy)} of {duration(span)} ({part}){hidden}"


def _what_busy_hides(gpu_time: Data | None) -> str:
    """Word what the busy share does not say; nothing where that is little."""
    known = gpu_time or {}
    sentence = ""
    communication, lead = known.get("communication"), known.get("lead")
    if communication is not None and communication["share"] is not None:
        sentence += f"; {share(communication['share'])} of busy is communication"
        if communication["alone_us"] != communication["time_us"]:
            sentence += f", {share(communication['alone_share'])} with no other work"
    if lead is not None and lead["share"] >= MUCH_LEAD:
        into = f"{duration(lead['time_us'])} ({share(lead['share'])})"
        sentence += f"; the first work comes {into} into the trace"
        if lead["loading_us"] >= _MOST_OF_LEAD * lead["time_us"]:
            sentence += ", after loading data"
    return sentence


def _whole_trace(annotations: list[str]) -> str:
    if not annotations:
        return "the whole trace (no annotation, no ProfilerStep)"
    names = ", ".join(printable(name) for name in annotations)
    # Of as many as a result holds there can be more.
    others = "; `analyze regions` lists all" if len(annotations) == MOST_ANNOTATIONS else ""
    return f"the whole trace (no ProfilerStep); --forward NAME takes an annotation: {names}{others}"


def _recorded(coverage: Data) -> str:
    parts = [name for name, there in coverage["recorded"].items() if there]
    sentence = ", ".join(part.replace("_", " ") for part in parts) or "nothing"
    missing = _not_recorded(coverage)
    return f"{sentence}; not {', '.join(missing)}" if missing else sentence


def _not_recorded(coverage: Data) -> list[str]:
    recorded = coverage["recorded"]
    return [name.replace("_", " ") for name, there in recorded.items() if not there]


def _forward(coverage: Data) -> str:
    match coverage["forward_is"]:
        case "trace":
            return _whole_trace(coverage["annotations"])
        case "ProfilerStep":
            return f"a ProfilerStep ({counted(coverage['steps'], 'step')})"
        case name:
            return f"the annotation {printable(name)} ({counted(coverage['forwards'], 'forward')})"


def _captured(notes: Data) -> str:
    parts = [printable(notes["name"])]
    if notes["phase"] is not None:
        parts.append(f"{printable(notes['phase'])} of {captured_shape(notes)}")
    if notes["torch_version"] is not None:
        parts.append(f"torch {printable(notes['torch_version'])}")
    if notes["latency_us"] is not None:
        spread = unsteady_latency(notes)
        unsteady = f", unsteady: {spread}" if spread else ""
        parts.append(f"{duration(notes['latency_us'])} with the profiler off{unsteady}")
    if notes["numerics_ok"] is not None:
        parts.append("numerics ok" if notes["numerics_ok"] else "numerics WRONG")
    return "; ".join(parts)


def captured_shape(notes: Data) -> str:
    """Word the workload of a capture; what it does not say is left out."""
    labels = {name: name.replace("_", " ") for name in SHAPE_COLUMNS}
    parts = [f"{label} {notes[name]}" for name, label in labels.items() if notes[name] is not None]
    parts += [printable(notes["dtype"])] if notes["dtype"] is not None else []
    parts += ["causal"] if notes["causal"] else []
    return ", ".join(parts) or "an unknown workload"


def quality_sentences(coverage: Data, quality: Data) -> Iterator[str]:
    """Yield what a reader must know before believing a number; nothing for a clean trace."""
    if coverage["synthetic"]:
        yield "SYNTHETIC: the file says that it was made up, not recorded"
    yield from _capture_sentences(coverage["capture"] or {})
    yield from loss_sentences(quality)
    if coverage["forwards_in_part"]:
        yield _in_part(coverage)
    yield from _repair_sentences(quality)
    if quality["documents"] > 1:
        yield f"{quality['documents']} processes wrote into this one file"
    if quality["ambiguous_links"]:
        work = counted(quality["ambiguous_links"], "GPU op")
        yield (
            f"{work} bear the correlation id of several calls, as where processes share a file;"
            " each is linked to the last such call before it"
        )
    yield from _external_id_sentences(quality)
    if quality["kinetolint_events"]:
        count = counted(quality["kinetolint_events"], "event")
        yield f"{count} of `analyze annotate` were passed over: they are findings, not measurements"
    yield from map(printable, quality["notes"])
    yield from _time_sentences(quality)
    yield from _link_sentences(coverage, quality)
    if quality["unknown_categories"]:
        names = ", ".join(printable(name) for name in quality["unknown_categories"])
        yield f"categories that are not known here were kept and not interpreted: {names}"


def _capture_sentences(notes: Data) -> Iterator[str]:
    problem = capture_problem(notes)
    if problem is not None:
        yield f"capture noted this trace as {problem}"


def _external_id_sentences(quality: Data) -> Iterator[str]:
    if quality["linked_by_external_id"]:
        work = counted(quality["linked_by_external_id"], "GPU op")
        yield f"{work} without a correlation id: linked to the one launch with the same External id"
    if quality["undecided_links"]:
        work = counted(quality["undecided_links"], "GPU op")
        yield (
            f"{work} without a correlation id: launches bear the same External id, but none is"
            " surely the one, so none is linked"
        )


def _in_part(coverage: Data) -> str:
    count, forwards = coverage["forwards_in_part"], coverage["forwards"]
    whose = f"{count:,} of {counted(forwards, unit_name(coverage['forward_is']))}"
    return f"{whose} may lack a part of the launched work, whose amounts are unknown there"


def loss_sentences(quality: Data) -> Iterator[str]:
    """Yield what of the file is lost; nothing where all of it could be read."""
    if quality["truncated"]:
        yield "the file is cut short: totals are lower bounds"
    if quality["events_lost"]:
        yield f"{counted(quality['events_lost'], 'event')} could not be read"
    if quality["metadata_broken"]:
        lost = ", ".join(printable(key) for key in quality["metadata_lost"]) or "nothing"
        yield f"the metadata is not valid JSON; lost of it: {lost}"


def _repair_sentences(quality: Data) -> Iterator[str]:
    if quality["mended"] or quality["events_repaired"]:
        kinds = ", ".join(
            f"{printable(kind).replace('_', ' ')} x {count}"
            for kind, count in quality["mended"].items()
        )
        yield f"invalid JSON was repaired: {kinds or 'structure'}; nothing of it was lost"
    if quality["foreign_texts"]:
        yield f"foreign text was passed over in {counted(quality['foreign_texts'], 'place')}"


def _time_sentences(quality: Data) -> Iterator[str]:
    odd = [
        (quality["times_missing"], "without a usable time"),
        (quality["times_negative"], "with a negative duration"),
        (quality["times_impossible"], "with an impossible duration"),
        (quality["times_zero"], "dated 0"),
        (quality["times_outside"], "dated outside of the recording"),
    ]
    words = [f"{counted(count, 'event')} {what}" for count, what in odd if count]
    if words:
        yield f"{', '.join(words)}: counted, but left out of times"


def _link_sentences(coverage: Data, quality: Data) -> Iterator[str]:
    if coverage["launches"] and not coverage["gpu_ops"]:
        yield (
            f"{counted(coverage['launches'], 'launch', 'launches')} but no GPU work: "
            "the GPU side was not recorded; check CUPTI and its permissions"
        )
    if quality["gpu_before_launch"]:
        yield (
            f"{counted(quality['gpu_before_launch'], 'GPU op')} start before their launch: "
            "the clocks disagree, do not trust launch delays"
        )
    if quality["unfinished_ops"]:
        yield f"{counted(quality['unfinished_ops'], 'op')} did not end inside the window"
