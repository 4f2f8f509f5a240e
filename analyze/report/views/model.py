"""The views: what a report draws and lists of a trace beside its findings.

Plain JSON data once it is in ``TraceReport.views``; these classes document it, and
:func:`views_of` reads it back. Times are microseconds to the nanosecond, of the timeline relative
to the start of its forward, everywhere else sums and durations. Null is unknown. Everything is of
bounded size: what is left out, or drawn together, is counted beside it.

Slices are columns, one list for each attribute and one value for each slice, because there are
thousands; names and op chains in them are indices into :attr:`Timeline.texts`.
"""

from dataclasses import dataclass, field
from typing import Literal

from analyze.engine.result import TraceReport
from analyze.errors import AnalyzeError

CallKind = Literal["launch", "sync", "copy", "other"]
SliceKind = Literal["kernel", "memcpy", "memset"]
Chosen = Literal["gpu_busy_us", "cpu_us"]


@dataclass(frozen=True)
class LeftOut:
    """Slices that are not drawn at all.

    Attributes:
        lanes: whole threads or streams; 0 where only some slices of the drawn ones are left out.
        slices: how many.
        dur_us: their durations, summed.
    """

    lanes: int
    slices: int
    dur_us: float


@dataclass(frozen=True)
class Spans:
    """Ops and annotations of a thread.

    Attributes:
        start_us, dur_us: when; of several drawn as one, from the first start to the last end.
        depth: ops and annotations around it.
        name: index of its text; of several drawn as one, of the longest.
        is_op: otherwise it is an annotation.
        own: it is of the forward that is drawn.
        count: how many are drawn as one.
        sum_us: their durations, summed.
        launched: GPU ops of known duration that were launched in it, drawn or not; of several drawn
            as one, in all of them.
        launched_us: their durations, summed.
    """

    start_us: list[float]
    dur_us: list[float]
    depth: list[int]
    name: list[int]
    is_op: list[bool]
    own: list[bool]
    count: list[int]
    sum_us: list[float]
    launched: list[int] = field(default_factory=list)
    launched_us: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Calls:
    """Runtime and driver calls of a thread.

    Attributes, beside those of :class:`Spans`:
        kind: a launch, a wait for the GPU, a call that copies, or another.
        op_chain: index of the text of the ops around it; null for none.
    """

    start_us: list[float]
    dur_us: list[float]
    name: list[int]
    kind: list[CallKind]
    op_chain: list[int | None]
    own: list[bool]
    count: list[int]
    sum_us: list[float]
    launched: list[int] = field(default_factory=list)
    launched_us: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Thread:
    """A thread of the host, as the file writes its ids."""

    pid: str | None
    tid: str | None
    spans: Spans
    calls: Calls


@dataclass(frozen=True)
class GpuSlices:
    """Work of a stream.

    Attributes, beside those of :class:`Calls` but what was launched; of several drawn as one, those
    of the longest, but for times and sums:
        row: 0, or more where work of one stream overlaps.
        kind: what it is.
        family: of a kernel, index of the text; null where the name does not tell, and of others.
        thread, call: which call launched it, as indices into the timeline's threads and their
            calls; null where that call is not drawn.
        launch_us: start of the launching call, also where it is not drawn; null where it is not in
            the file.
        queue_us: from the return of that call to the start of the work.
        bytes: copied or set; null for kernels, where it was not recorded, and of several drawn as
            one.
        launch_name: name of that call, index of the text, also where it is not drawn.
    """

    start_us: list[float]
    dur_us: list[float]
    row: list[int]
    name: list[int]
    kind: list[SliceKind]
    family: list[int | None]
    op_chain: list[int | None]
    thread: list[int | None]
    call: list[int | None]
    launch_us: list[float | None]
    queue_us: list[float | None]
    bytes: list[int | None]
    own: list[bool]
    count: list[int]
    sum_us: list[float]
    launch_name: list[int | None] = field(default_factory=list)


@dataclass(frozen=True)
class Stream:
    """A stream of a device, labelled as in the file."""

    device: str | None
    stream: str | None
    slices: GpuSlices


@dataclass(frozen=True)
class IdleTimes:
    """When a device had nothing to do, the longest times; see the table ``gaps``.

    Attributes:
        start_us, dur_us: when.
        cause: why; null where the launch of the next work is not in the file.
        op_chain: the op that the launching thread was in for longer than in any other, index of the
            text; null for none.
        next: index of the name of the work that ended it.
        op_us: time in that op itself.
        outside_ops_us, in_ops_us, in_api_us: what the launching thread did; null where the next
            work was queued, so that it does not matter.
    """

    start_us: list[float]
    dur_us: list[float]
    cause: list[str | None]
    op_chain: list[int | None]
    next: list[int | None]
    op_us: list[float | None] = field(default_factory=list)
    outside_ops_us: list[float | None] = field(default_factory=list)
    in_ops_us: list[float | None] = field(default_factory=list)
    in_api_us: list[float | None] = field(default_factory=list)


@dataclass(frozen=True)
class Device:
    """A device of the timeline: its idle times, and how many are too short to be listed."""

    device: str | None
    idle: IdleTimes
    idle_left_out: LeftOut


@dataclass(frozen=True)
class Timeline:
    """One forward, from the start of its CPU time or GPU work to the end of both.

    Attributes:
        forward_is: what a forward is: an annotation's name, ``ProfilerStep`` or ``trace``.
        index, forwards: which of how many it is, from 0.
        chosen_by: of which amount it has the median.
        amount_us, least_us, most_us: that amount, and its range over all forwards.
        start_us: start of the window, from the trace start.
        dur_us: length of the window.
        cpu_start_us, cpu_dur_us: the CPU time of the forward, in the window.
        texts: names and op chains, cut where they are long.
        threads: of the host, the forward's own first.
        streams: by device and stream.
        devices: those with GPU work.
        threads_left_out, streams_left_out: what is not drawn.
        step: of a ProfilerStep, the number after ``ProfilerStep#``; null for other forwards.
        chosen_of: how many forwards have the amount that it was chosen by; of an even number it is
            the lower of the two in the middle.
    """

    forward_is: str
    index: int
    forwards: int
    chosen_by: Chosen
    amount_us: float | None
    least_us: float | None
    most_us: float | None
    start_us: float
    dur_us: float
    cpu_start_us: float
    cpu_dur_us: float
    texts: list[str]
    threads: list[Thread]
    streams: list[Stream]
    devices: list[Device]
    threads_left_out: LeftOut
    streams_left_out: LeftOut
    step: int | None = None
    chosen_of: int | None = None


@dataclass(frozen=True)
class FamilyTime:
    """GPU time of a family in the whole trace.

    Attributes:
        kind: ``kernel``, ``memcpy`` or ``memset``.
        family: of kernels; null where their names do not tell.
        count: how many GPU ops.
        total_us: their durations, summed; null where none is known.
        bytes: copied or set; null for kernels, and where it was not recorded.
    """

    kind: str
    family: str | None
    count: int
    total_us: float | None
    bytes: int | None


@dataclass(frozen=True)
class KernelRow:
    """The kernels of one name; see :func:`analyze.report.kernels.kernels_report`.

    Attributes:
        name: cut where it is long.
        count, total_us, mean_us, max_us: how many, and their durations.
        share: of the GPU busy time of the trace.
        per_forward: how many a forward launches; null where the whole trace counts as one.
        grid, block, registers, shared_memory: of the commonest launch configuration.
        configurations: how many there are.
        occupancy_reported, occupancy, waves: of all its launches, weighted by duration; these and
            the next are those of :class:`analyze.report.views.launches.Launches`.
        occupancy_least, occupancy_most: range of the recomputed occupancy.
        limiter: what limits it for most of the time.
        reported_zero_share: of its time, that of kernels reported as 0 for their shared memory.
        op_chains: commonest first, cut where there are many.
        op_chains_distinct: how many there are.
        source: the commonest source line of the user.
    """

    name: str
    short_name: str
    family: str | None
    precision: str | None
    tensor_core: bool | None
    count: int
    per_forward: float | None
    total_us: float | None
    mean_us: float | None
    max_us: float | None
    share: float | None
    grid: str | None
    block: str | None
    registers: int | None
    shared_memory: int | None
    configurations: int
    occupancy_reported: float | None
    occupancy: float | None
    occupancy_least: float | None
    occupancy_most: float | None
    limiter: str | None
    waves: float | None
    reported_zero_share: float
    op_chains: list[str]
    op_chains_distinct: int
    source: str | None


@dataclass(frozen=True)
class KernelTable:
    """Kernels by name, most time first.

    Attributes:
        kernels, kernel_time_us: of the whole trace: how many, and their durations, summed; times
            are null where there are kernels and none of their durations is known.
        names: distinct names.
        rows: those with most time.
        rest_names, rest_count, rest_us: the names that have no row, their kernels and time.
    """

    kernels: int
    kernel_time_us: float | None
    names: int
    rows: list[KernelRow]
    rest_names: int
    rest_count: int
    rest_us: float | None


@dataclass(frozen=True)
class PrecisionPath:
    """The costliest precision of matrix products, convolutions and attention.

    Attributes:
        precision, tensor_core: see the table ``kernels``; ``unknown`` where names do not tell.
        share: of the time of all such kernels.
    """

    precision: str
    tensor_core: bool | None
    share: float


@dataclass(frozen=True)
class CostliestKernel:
    """Median occupancies, in percent, of the kernel, by name, with the most time.

    Attributes:
        kernel: its short name.
        reported, recomputed: as the profiler wrote it, and from the launch and the device.
        share_of_kernel_time: of all kernels.
    """

    kernel: str | None
    reported: float | None
    recomputed: float | None
    share_of_kernel_time: float


@dataclass(frozen=True)
class Compared:
    """What a comparison of traces says beside what the report has.

    Attributes:
        vendor: of the GPU.
        precision_path: null where there are no such kernels.
        occupancy: null where there are no kernels.
        gpu_time_share_outside_forwards: null without GPU work.
        input_shapes: see :func:`analyze.diff.same_work.input_shapes`.
    """

    vendor: str | None
    precision_path: PrecisionPath | None
    occupancy: CostliestKernel | None
    gpu_time_share_outside_forwards: float | None
    input_shapes: dict[str, int] | None = None


@dataclass(frozen=True)
class Views:
    """All of it.

    Attributes:
        timeline: null where nothing in the trace has a time.
        families: most time first; empty without GPU work.
        kernels: by name.
        compared: for a comparison of traces; see :mod:`analyze.report.compare`.
    """

    timeline: Timeline | None
    families: list[FamilyTime]
    kernels: KernelTable
    compared: Compared


def views_of(report: TraceReport) -> Views | None:
    """Return the views of a report, read back from its plain data; None where it has none.

    Raises:
        AnalyzeError: they are not what this version writes.
    """
    if report.views is None:
        return None
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        views = TypeAdapter(Views).validate_python(report.views)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise _not_ours(report, where) from None
    if views.timeline is not None and not _is_consistent(views.timeline):
        raise _not_ours(report, "timeline")
    return views


def _not_ours(report: TraceReport, where: str) -> AnalyzeError:
    return AnalyzeError(
        f"{report.trace}: the result's views.{where} is not what this version of analyze writes;"
        " analyze the trace again"
    )


_LATER_COLUMNS = frozenset(
    {
        "op_us",
        "outside_ops_us",
        "in_ops_us",
        "in_api_us",
        "launched",
        "launched_us",
        "launch_name",
    }
)
"""Of which results stored before hold nothing."""

_TEXT_COLUMNS = ("name", "family", "op_chain", "next", "launch_name")


def _is_consistent(timeline: Timeline) -> bool:
    """Whether the columns of all slices are equally long, and their texts are there."""
    columns: list[Spans | Calls | GpuSlices | IdleTimes] = []
    for thread in timeline.threads:
        columns += [thread.spans, thread.calls]
    columns += [stream.slices for stream in timeline.streams]
    columns += [device.idle for device in timeline.devices]
    texts = range(len(timeline.texts))
    for slices in columns:
        by_name = vars(slices)
        stored = (c for name, c in by_name.items() if c or name not in _LATER_COLUMNS)
        if len({len(column) for column in stored}) > 1:
            return False
        places = (place for name in _TEXT_COLUMNS for place in by_name.get(name, ()))
        if any(place is not None and place not in texts for place in places):
            return False
    return True
