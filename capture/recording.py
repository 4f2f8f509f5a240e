"""Record a step function or a training loop of your own, under the protocol of ``capture``."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

import click
import torch
from torch import distributed as dist

from capture.devices import AUTO, find_device
from capture.errors import CaptureError, RequestError
from capture.files import make_folder
from capture.manifest import Capture, Manifest, prepare_folder, trace_metadata
from capture.measurement import LatencyMeasurement, MemoryMeasurement
from capture.options import make_protocol
from capture.profiling import Profiling
from capture.steps import Steps, drive
from capture.trial import refusal
from capture.words import duration

Item = TypeVar("Item")

_FILE_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)


class _NoBatch:
    """Stands where the batches have ended."""


_NO_BATCH = _NoBatch()


class ProtocolOptions(TypedDict, total=False):
    """The fields of :class:`capture.options.Protocol`, as keywords."""

    warm_ups: int
    wait: int
    warmup: int
    active: int
    repeat: int
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_modules: bool
    with_flops: bool
    cuda_sync_events: bool


class Recording:
    """Runs steps under the protocol; made by :func:`record`.

    Attributes:
        capture: what came out so far.
        is_finished: whether everything was recorded and measured.
    """

    def __init__(self, manifest: Manifest, capture: Capture, *, benchmark: bool) -> None:
        self._manifest = manifest
        self._benchmark = benchmark
        self._running: Steps | None = None
        self.capture = capture
        self.is_finished = False

    def close(self) -> None:
        """End the steps; a loop that was left early may live on in a variable."""
        if self._running is not None:
            self._running.close()

    def run(self, step: Callable[[], object]) -> None:
        """Call ``step`` as often as the protocol asks: warm-ups, schedule, measurements.

        Raises:
            CaptureError: a file cannot be written, or steps were recorded already.
        """
        drive(self._steps(), step)

    def over(self, batches: Iterable[Item]) -> Iterator[Item]:
        """Yield batches as often as the protocol asks; the body of the loop is the step.

        The loop ends by itself once everything is recorded.

        Raises:
            CaptureError: the batches end too early, a file cannot be written, or steps were
                recorded already.
        """
        source = iter(batches)
        with closing(self._steps()) as steps:
            self._running = steps
            for _ in steps:
                batch = next(source, _NO_BATCH)
                if isinstance(batch, _NoBatch):
                    self.require_traces("the batches ended early")
                    return
                yield batch

    def require_traces(self, why: str) -> None:
        """Make sure that every trace that was asked for is written.

        Raises:
            CaptureError: one is not; ``why`` says why.
        """
        protocol = self._manifest.protocol
        if len(self.capture.traces) < protocol.repeat:
            needed = protocol.warm_ups + protocol.wait + protocol.warmup + protocol.active
            raise CaptureError(f"{self.capture.name}: {why}; a trace takes {needed} steps")

    def _steps(self) -> Steps:
        if self.capture.traces:
            raise CaptureError(f"{self.capture.name}: is recorded already; use a new record(...)")
        device = self._manifest.device
        profiling = Profiling(
            folder=self._manifest.folder,
            name=self.capture.name,
            device=device,
            protocol=self._manifest.protocol,
            annotations=(),
            annotation=self.capture.annotations[0],
            metadata=trace_metadata(self.capture, self._manifest),
            notify=_tell,
        )
        self.capture.traces = profiling.traces
        yield from profiling.steps()
        if self._benchmark:
            latency, memory = LatencyMeasurement(device), MemoryMeasurement(device)
            yield from latency.steps()
            self.capture.latency = latency.result
            yield from memory.steps()
            self.capture.memory = memory.result
        self.is_finished = True


@contextmanager
def record(
    folder: str | Path,
    *,
    name: str = "step",
    device: str = AUTO,
    benchmark: bool = True,
    overwrite: bool = False,
    **protocol: Unpack[ProtocolOptions],
) -> Iterator[Recording]:
    """Record a step of your own: traces and a capture.json, as ``capture`` writes them.

    Every step is annotated with ``name``. Three steps warm up, the schedule's five are profiled
    (see :class:`capture.options.Protocol`), the file is read again, and recorded once more where it
    has lost something; then latency and peak memory are measured with the profiler off.

    Args:
        folder: where the files go; made if missing. Of several ranks, each writes to ``rank-N``
            below it.
        name: of the files and of the annotation around every step.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``: what to wait for; the step itself must
            put its tensors there.
        benchmark: measure latency and peak memory, which takes 27 to 1,007 further steps, about a
            second of them.
        overwrite: replace an earlier capture in the folder.
        **protocol: fields of :class:`capture.options.Protocol` that are not to have their defaults.

    Yields:
        the recording, whose ``run`` or ``over`` is to be called once.

    Raises:
        RequestError: the name or a protocol field is impossible.
        CaptureError: no such device, a folder that cannot be written, too few steps for a trace.
    """
    if not _FILE_NAME.fullmatch(name):
        raise RequestError(f"name {name!r}: use ASCII letters, digits and . _ + - only")
    if torch.autograd._profiler_enabled():
        raise CaptureError(f"{name}: another profiler is running, which recording would end")
    place, target = _folder_of_rank(Path(folder)), find_device(device)
    plan = make_protocol(protocol)
    make_folder(place)
    prepare_folder(place, overwrite=overwrite)
    manifest = Manifest(place, target, plan)
    capture = Capture(name=name, kind="function", workload=None, annotations=(name,))
    recording = Recording(manifest, capture, benchmark=benchmark)
    try:
        with closing(recording):
            yield recording
        recording.require_traces("stopped early")
    except BaseException as error:
        if not recording.is_finished:
            capture.refused = refusal(error, [])
        manifest.add(capture)
        raise
    manifest.add(capture)
    _tell(_outcome(recording, place))


def _folder_of_rank(folder: Path) -> Path:
    """Give every rank of a distributed job a folder of its own below the one that was named."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return folder / f"rank-{dist.get_rank()}"
    return folder


def _outcome(recording: Recording, folder: Path) -> str:
    """Word how a recording went, in one line."""
    capture = recording.capture
    parts = [f"{capture.name}: {capture.status}"]
    if capture.latency is not None:
        parts.append(f"{duration(capture.latency.median_us)} a step")
    elif not recording.is_finished:
        parts.append("latency and memory were not measured, the steps ended before")
    return "; ".join([*parts, f"next: analyze {folder}"])


def _tell(text: str) -> None:
    click.echo(f"capture: {text}", err=True)
