"""The Chrome trace events that draw findings: a process, its threads, slices and arrows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from analyze.annotate.arrows import Thread
from analyze.annotate.slices import Slice
from analyze.annotate.tracks import Track
from analyze.engine.result import Finding, TraceReport
from analyze.report.finding_words import closing_line, sentences
from analyze.trace.families import FINDINGS_CATEGORY
from analyze.words import printable, visible

PROCESS_NAME = "kinetolint findings"
_FIRST_PROCESS = -1
"""Sort index. Kineto gives host processes their pid, and devices numbers from 5,000,000."""

_MAX_SENTENCES = 10
"""Of one kind, such as what a finding explains."""

Event = dict[str, Any]


class FindingEvents:
    """The events of one report."""

    def __init__(self, report: TraceReport, tracks: Sequence[Track], threads: range) -> None:
        """Draw ``tracks`` with the thread numbers ``threads``, the first being the process's."""
        self._report = report
        self._tracks = tracks
        self._pid, *self._tids = threads

    def texts(self, targets: Mapping[Slice, Thread], arrows: Sequence[int]) -> Iterator[bytes]:
        """Yield the JSON text of every event.

        Args:
            targets: the thread of the event that a slice is about, where there is one.
            arrows: as many ids as there are targets.
        """
        start_ns = min((track.slices[0].start_ns for track in self._tracks), default=0)
        for event in self._names():
            yield _text(event, start_ns)
        ids = iter(arrows)
        for tid, track in zip(self._tids, self._tracks, strict=True):
            for part in track.slices:
                yield _text(self._slice(part, tid), part.start_ns, part.dur_ns)
                if part in targets:
                    yield from self._arrow(part, tid, targets[part], next(ids))

    def threads(self) -> dict[int, Thread]:
        """Return where the first slice of each finding is, by the finding's number."""
        return {
            part.number: Thread(self._pid, tid)
            for tid, track in zip(self._tids, self._tracks, strict=True)
            for part in track.slices
            if part.place_number == 1
        }

    def _names(self) -> Iterator[Event]:
        yield self._meta("process_name", 0, name=PROCESS_NAME)
        yield self._meta("process_labels", 0, labels=closing_line(self._report))
        yield self._meta("process_sort_index", 0, sort_index=_FIRST_PROCESS)
        for index, (tid, track) in enumerate(zip(self._tids, self._tracks, strict=True)):
            yield self._meta("thread_name", tid, name=printable(f"{track.code} {track.name}"))
            yield self._meta("thread_sort_index", tid, sort_index=index)

    def _meta(self, kind: str, tid: int, **args: object) -> Event:
        return {
            "ph": "M",
            "cat": FINDINGS_CATEGORY,
            "name": kind,
            "pid": self._pid,
            "tid": tid,
            "args": args,
        }

    def _slice(self, part: Slice, tid: int) -> Event:
        return {
            "ph": "X",
            "cat": FINDINGS_CATEGORY,
            "name": slice_name(part.finding),
            "pid": self._pid,
            "tid": tid,
            "args": _args(part),
        }

    def _arrow(self, part: Slice, tid: int, target: Thread, arrow: int) -> Iterator[bytes]:
        both: Event = {"cat": FINDINGS_CATEGORY, "name": FINDINGS_CATEGORY, "id": arrow}
        start = {"ph": "s", **both, "pid": self._pid, "tid": tid}
        end = {"ph": "f", "bp": "e", **both}
        end |= {"pid": _as_written(target.pid), "tid": _as_written(target.tid)}
        yield _text(start, part.start_ns)
        yield _text(end, part.start_ns)


def slice_name(finding: Finding) -> str:
    """Return what stands on a slice; a state other than a plain mismatch is part of it."""
    state = "" if finding.state == "mismatch" else f" ({finding.state})"
    return printable(f"{finding.code} {finding.name}") + state


def _args(part: Slice) -> Event:
    finding = part.finding
    said: dict[str, list[str]] = {}
    for label, sentence in sentences(finding, verbose=False):
        said.setdefault(label, []).append(visible(sentence))
    return {
        "title": printable(finding.title),
        "severity": finding.severity,
        "state": finding.state,
        **{label: _short(texts) for label, texts in said.items()},
        "place": _place(part),
        "finding": part.number,
        "fingerprint": finding.fingerprint,
    }


def _short(texts: list[str]) -> str | list[str]:
    if len(texts) == 1:
        return texts[0]
    left_out = len(texts) - _MAX_SENTENCES
    return texts[:_MAX_SENTENCES] + ([f"and {left_out:,} more"] if left_out > 0 else [])


def _place(part: Slice) -> str:
    if part.place is None:
        return "the whole trace"
    total = max(part.finding.places_total, len(part.finding.places))
    without = "" if part.place.dur_us is not None else ", without a duration"
    return f"{part.place_number:,} of {total:,}: {printable(part.place.name)}{without}"


def _as_written(number: object) -> object:
    """Return a number of the file such that it keeps its digits, which may be more than 64 bits."""
    return orjson.Fragment(str(number)) if type(number) is int else number


def _text(event: Event, start_ns: int, dur_ns: int | None = None) -> bytes:
    """Return the event as JSON, its times in microseconds to the nanosecond."""
    timed = {**event, "ts": orjson.Fragment(_microseconds(start_ns))}
    if dur_ns is not None:
        timed["dur"] = orjson.Fragment(_microseconds(dur_ns))
    return orjson.dumps(timed)


def _microseconds(ns: int) -> str:
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"
