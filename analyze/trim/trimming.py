"""Write a smaller trace from a trace: read it twice, first to choose, then to copy."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from analyze.errors import AnalyzeError, TraceError
from analyze.report.trace_file import TraceDocument, write_trace
from analyze.tables.build import Trace
from analyze.tables.external_ids import TRUSTED, external_id_mode
from analyze.tables.facts import Facts
from analyze.tables.lost import KEY as LOST_KEY
from analyze.tables.noted import free_key
from analyze.tables.trimmed import KEY as TRIM_KEY
from analyze.temporary import temporary_file
from analyze.trace.raw import RawTrace, head_of, raw_events
from analyze.trace.source import STDIN, STDIN_NAME
from analyze.trim.closure import Choice, Closure, close
from analyze.trim.index import EventIndex
from analyze.trim.selection import Selected

_LAST_NS = (1 << 63) - 1
"""Times have 64 bits."""


class Rewriting(Protocol):
    """Changes the texts of a trace; see :class:`analyze.trim.anonymise.Anonymiser`."""

    def event(self, text: bytes) -> bytes:
        """Return an event's JSON text with other texts in it."""

    def metadata(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members beside the events with other texts in them."""

    def replaced(self) -> dict[str, int]:
        """Return how many distinct texts of each kind were replaced."""

    def dropped(self) -> int:
        """Return how many members beside the events were left out."""


@dataclass(frozen=True)
class TrimReport:
    """What was kept of what.

    Attributes:
        trace, output: the paths.
        selected: what was chosen; null for everything.
        events, all_events: kept, and in the file.
        output_bytes, file_bytes: of the two files, compressed as they are.
        closure: what belongs together; null where everything was kept.
        replaced: distinct texts that were replaced, by kind; null where none was to be.
        dropped: members beside the events that were left out.
        wrapped: the file is a bare list of events and the output an object, which has a place for
            a note.
    """

    trace: str
    output: str
    selected: Selected | None
    events: int
    all_events: int
    output_bytes: int
    file_bytes: int
    closure: Closure | None
    replaced: dict[str, int] | None
    dropped: int
    wrapped: bool


@contextmanager
def rereadable(path: str) -> Iterator[str]:
    """Yield a path that can be read more than once: of standard input, that of a copy.

    What goes wrong is said of standard input, not of the copy.
    """
    if path != STDIN:
        yield path
        return
    with temporary_file(prefix="kinetolint-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        try:
            yield copy.name
        except AnalyzeError as error:
            raise type(error)(str(error).replace(copy.name, STDIN_NAME)) from None


def trim(
    trace: Trace,
    output: Path,
    selected: Selected | None,
    rewriting: Rewriting | None,
    source: str | None = None,
) -> TrimReport:
    """Write what was selected of a trace, with all that belongs to it.

    Args:
        trace: the trace with its tables; its file is read twice more.
        output: the file to write, compressed as its name says; whole or not at all.
        selected: the kept time; None keeps everything.
        rewriting: changes the texts.
        source: what the trace says it was trimmed from; by default the file's name.

    Raises:
        TraceError: the file changed in the meantime.
        AnalyzeError: nothing was recorded in the kept time, or the output cannot be written.
    """
    index, metadata, form = _read_index(trace.name)
    closure = close(index, _choice(trace, selected)) if selected else None
    kept = closure.kept if closure else pl.repeat(True, index.height, eager=True)
    if selected and closure and not closure.recorded:
        raise AnalyzeError(_nothing_kept(trace, selected))
    events = int(kept.sum())
    notes: dict[str, Any] = {}
    if closure and selected and events < index.height:
        name = None if rewriting else source or Path(trace.name).name
        origin_ns = trace.clock.origin_ns
        note = _note(name, selected, closure, index.height, origin_ns)
        notes[free_key(metadata, TRIM_KEY)] = note
    if lost := _lost_of(trace, selected):
        notes[free_key(metadata, LOST_KEY)] = lost
    with raw_events(trace.name) as raw:
        if rewriting:
            _write_rewritten(raw, output, kept, {**metadata, **notes}, rewriting)
        else:
            _write_verbatim(raw, output, kept, notes)
        file_bytes = raw.source.file_bytes
    return TrimReport(
        trace=trace.name,
        output=str(output),
        selected=selected,
        events=events,
        all_events=index.height,
        output_bytes=output.stat().st_size if output.is_file() else 0,
        file_bytes=file_bytes,
        closure=closure,
        replaced=rewriting.replaced() if rewriting else None,
        dropped=rewriting.dropped() if rewriting else 0,
        wrapped=bool(notes) and form == "array",
    )


def _nothing_kept(trace: Trace, selected: Selected) -> str:
    of = f" (of {selected.of})" if selected.of not in (None, selected.words) else ""
    return (
        f"{trace.name}: nothing was recorded in {selected.words}{of}; nothing was written, choose"
        " another time"
    )


def _read_index(path: str) -> tuple[pl.DataFrame, dict[str, Any], str]:
    index = EventIndex()
    with raw_events(path) as raw:
        for _, event in raw:
            index.add(event)
        return index.finish(), raw.metadata(), raw.form


def _choice(trace: Trace, selected: Selected) -> Choice:
    """Return what was selected in the file's own time."""
    origin_ns, facts = trace.clock.origin_ns, trace.facts
    calls = facts.api_calls.filter(pl.col("is_launch") | pl.col("is_sync"))
    own = calls.filter("profiler_own")["start_ns"]
    before = calls.filter(~pl.col("profiler_own"))["start_ns"].max()
    return Choice(
        windows=[
            (start + origin_ns, min(end + origin_ns, _LAST_NS)) for start, end in selected.windows
        ],
        ids_name_ops=external_id_mode(facts.gpu_ops) == TRUSTED,
        named_launches=_named_launches(facts, origin_ns),
        tail_sync_ns=own[0] + origin_ns if len(own) else None,
        before_tail_ns=before + origin_ns if isinstance(before, int) else None,
    )


def _named_launches(facts: Facts, origin_ns: int) -> pl.DataFrame | None:
    """Return the calls that are linked by their External id, in the file's own time."""
    linked = facts.gpu_ops.filter("linked_by_external_id")
    if linked.is_empty():
        return None
    return linked.select("external_id", start_ns=pl.col("api_start_ns") + origin_ns)


def _note(
    source: str | None, selected: Selected, closure: Closure, events: int, origin_ns: int
) -> dict[str, Any]:
    """Return the note; times from the start of the recording, and in the file's own time."""
    counts = asdict(closure)
    kept = int(counts.pop("kept").sum())
    counts.pop("recorded")
    return {
        "source": source,
        "kept": selected.words,
        "of": selected.of,
        "windows_us": [[start / 1000, end / 1000] for start, end in selected.windows],
        "windows_ns": [[start + origin_ns, end + origin_ns] for start, end in selected.windows],
        "events": kept,
        "all_events": events,
        **counts,
    }


def _lost_of(trace: Trace, selected: Selected | None) -> dict[str, Any] | None:
    """Return what to note of what the file lost; a cut does not matter to what surely precedes it.

    Nobody knows where the events lay that could not be read.
    """
    lost = trace.lost_of_file
    if selected and trace.facts.kept.holds_all_of(selected.windows):
        lost = lost._replace(truncated=False)
    return lost.as_note()


def _write_verbatim(raw: RawTrace, output: Path, kept: pl.Series, notes: dict[str, Any]) -> None:
    """Copy the kept events and the members byte by byte."""
    with write_trace(output, raw.head_with(notes)) as document:
        _copy(raw, kept, document, lambda text: text)
        document.tail = raw.tail_with(notes)


def _write_rewritten(
    raw: RawTrace,
    output: Path,
    kept: pl.Series,
    members: dict[str, Any],
    rewriting: Rewriting,
) -> None:
    is_list = raw.form == "array" and not members
    head = b"[" if is_list else head_of(rewriting.metadata(members))
    with write_trace(output, head) as document:
        _copy(raw, kept, document, rewriting.event)


def _copy(
    raw: RawTrace, kept: pl.Series, document: TraceDocument, change: Callable[[bytes], bytes]
) -> None:
    """Write the kept events.

    Raises:
        TraceError: there are not as many events as before.
    """
    changed = TraceError(f"{raw.source.name}: the file changed while it was read")
    decisions = iter(kept)
    for text, _ in raw:
        is_kept = next(decisions, None)
        if is_kept is None:
            raise changed
        if is_kept:
            document.write(change(text))
    if next(decisions, None) is not None:
        raise changed
