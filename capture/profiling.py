"""Steps in, Chrome traces out: the protocol that makes a trace trustworthy.

Three warm-ups before the profiler exists, a synchronisation, a schedule that throws its first
steps away, a synchronisation before the first recorded step (work of the steps before it must not
run into it) and before the profiler stops, then a look into the exported file. The schedule is
recorded anew, once, where the file has lost what it must hold.
"""

import json
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

from capture.devices import Device, Notify
from capture.errors import CaptureError
from capture.files import write_compressed
from capture.options import Protocol
from capture.steps import Steps
from capture.verification import Expectation, Verification, verify

Plan: TypeAlias = Callable[[int], ProfilerAction]
"""What ``torch.profiler.schedule`` returns: step number to what is done in it."""

METADATA_KEY = "kinetolint_capture"
"""Where a trace's own metadata holds what it is a trace of."""

SUFFIX = ".json.gz"
_UNWRITABLE = re.compile(r'[\x00-\x1f"\\]')


@dataclass(frozen=True)
class RecordedTrace:
    """One trace file.

    Attributes:
        file: its name in the folder.
        attempts: how often it was recorded; 2 where the first file had lost something.
        verification: what it holds.
    """

    file: str
    attempts: int
    verification: Verification

    def as_json(self) -> dict[str, object]:
        """Return the fields by name."""
        return {
            "file": self.file,
            "attempts": self.attempts,
            "verification": self.verification.as_json(),
        }


@dataclass
class Profiling:
    """The recording of one thing.

    Attributes:
        folder: where the traces go.
        name: of the files, without number and suffix.
        device: what to wait for.
        protocol: how to record.
        annotations: names that every step writes by itself.
        annotation: the name to put around every step, if it should have one.
        metadata: what the trace must know of itself; goes under :data:`METADATA_KEY`.
        notify: told about lost events.
        traces: the files written so far.
    """

    folder: Path
    name: str
    device: Device
    protocol: Protocol
    annotations: tuple[str, ...]
    annotation: str | None
    metadata: Mapping[str, object]
    notify: Notify
    traces: list[RecordedTrace] = field(default_factory=list)

    def steps(self) -> Steps:
        """Yield once for every step that is to be run; write the traces in between.

        Raises:
            CaptureError: a file cannot be written.
        """
        warm_up_profiler(self.device)
        for _ in range(self.protocol.warm_ups):
            yield
        self.device.synchronize()
        for number in range(self.protocol.repeat):
            suffix = f"-{number + 1}" if self.protocol.repeat > 1 else ""
            yield from self._record(f"{self.name}{suffix}{SUFFIX}")

    def _record(self, file: str) -> Steps:
        for attempt in (1, 2):
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".recording-") as scratch:
                plain = Path(scratch) / "trace.json"
                yield from self._profiled_steps(plain)
                if not plain.is_file():
                    raise CaptureError(f"{self.folder}: the trace could not be written: disk full?")
                found = verify(plain, self._expectation())
                if attempt == 1 and found.problems:
                    self.notify(f"{file}: {'; '.join(found.problems)}; recording it once more")
                    continue
                write_compressed(plain, self.folder / file)
            if found.problems:
                self.notify(f"{file}: STILL INCOMPLETE: {'; '.join(found.problems)}")
            self.traces.append(RecordedTrace(file, attempt, found))
            return

    def _expectation(self) -> Expectation:
        own = () if self.annotation is None else (self.annotation,)
        return Expectation(self.protocol.active, (*own, *self.annotations), self.device.is_gpu)

    def _profiled_steps(self, plain: Path) -> Steps:
        protocol = self.protocol
        first_active = protocol.wait + protocol.warmup
        plan = schedule(
            wait=protocol.wait, warmup=protocol.warmup, active=protocol.active, repeat=1
        )
        with make_profiler(self.device, protocol, plan) as profiler:
            for number in range(first_active + protocol.active):
                if number == first_active:
                    profiler.add_metadata_json(METADATA_KEY, metadata_text(self.metadata))
                with ExitStack() as annotated:
                    if self.annotation is not None:
                        annotated.enter_context(record_function(self.annotation))
                    yield
                if number + 1 in (first_active, first_active + protocol.active):
                    self.device.synchronize()
                profiler.step()
        profiler.export_chrome_trace(str(plain))


def make_profiler(device: Device, protocol: Protocol, plan: Plan | None = None) -> profile:
    """Return a profiler with the options of a protocol; without a plan it records every step."""
    return profile(
        activities=activities(device),
        schedule=plan,
        record_shapes=protocol.record_shapes,
        profile_memory=protocol.profile_memory,
        with_stack=protocol.with_stack,
        with_modules=protocol.with_modules,
        with_flops=protocol.with_flops,
        experimental_config=_ExperimentalConfig(enable_cuda_sync_events=protocol.cuda_sync_events),
    )


@cache
def warm_up_profiler(device: Device) -> None:
    """Run the first profiler of the process on nothing.

    It loads much of torch and sets up the GPU's tracing, which would make the first recorded step
    slow. A warning that torch gives once per process is about cycles that are not used here.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        plan = schedule(wait=0, warmup=1, active=1)
        with profile(activities=activities(device), schedule=plan) as profiler:
            for _ in range(2):
                device.synchronize()
                profiler.step()


def activities(device: Device) -> list[ProfilerActivity]:
    """Return what is to be recorded of a device."""
    gpu = [ProfilerActivity.CUDA] if device.is_gpu else []
    return [ProfilerActivity.CPU, *gpu]


def metadata_text(metadata: Mapping[str, object]) -> str:
    """Return metadata as JSON that survives the profiler.

    The profiler turns every backslash of it into a slash, which breaks whatever JSON has to escape
    (seen with torch 2.13). What would need one becomes ``_``; ``capture.json`` has the full text.
    """
    return json.dumps(_writable(metadata), ensure_ascii=False)


def _writable(value: object) -> object:
    if isinstance(value, str):
        return _UNWRITABLE.sub("_", value)
    if isinstance(value, Mapping):
        return {str(_writable(key)): _writable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(inner) for inner in value]
    return value
