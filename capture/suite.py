"""Capture variants of attention, one after the other."""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from capture.devices import Notify
from capture.errors import CaptureError
from capture.manifest import Capture, Manifest, trace_metadata
from capture.measurement import LatencyMeasurement, MemoryMeasurement, release_memory
from capture.numerics import check_numerics
from capture.phases import Attention, Step, annotations, make_step
from capture.profiling import Profiling
from capture.steps import drive
from capture.torch_state import restored_torch_state
from capture.trial import Refused, refusal, try_variant
from capture.variants import Variant
from capture.workload import Inputs, Workload


@dataclass(frozen=True)
class Suite:
    """What is done with every variant.

    Attributes:
        manifest: is told of every capture.
        benchmark: measure latency and memory.
        check: compare the results with a reference.
        notify: told what is being done.
    """

    manifest: Manifest
    benchmark: bool
    check: bool
    notify: Notify

    def run(self, variants: Sequence[Variant], workloads: Sequence[Workload]) -> None:
        """Capture every variant with every workload; one that fails does not stop the others.

        Raises:
            CaptureError: a file cannot be written.
        """
        total = len(variants) * len(workloads)
        for workload in workloads:
            for variant in variants:
                number = len(self.manifest.captures) + 1
                self.notify(f"[{number}/{total}] {variant.name} {workload.label}")
                self._capture(variant, workload)

    def _capture(self, variant: Variant, workload: Workload) -> None:
        capture = Capture(
            name=variant.name,
            kind="variant",
            workload=workload.as_json(),
            annotations=annotations(workload.phase),
        )
        try:
            with restored_torch_state():
                self._run(capture, variant, workload)
        except CaptureError:
            raise
        except KeyboardInterrupt:
            capture.refused = Refused("failed", "interrupted")
            raise
        except BaseException as error:  # noqa: BLE001 - a variant may raise anything
            capture.refused = refusal(error, [])
        finally:
            self.manifest.add(capture)
            forget_compiled()
            release_memory(self.manifest.device)

    def _run(self, capture: Capture, variant: Variant, workload: Workload) -> None:
        attention = prepared(variant, workload)
        inputs = workload.inputs()
        capture.refused = try_variant(attention, workload, inputs)
        if capture.refused is not None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say of a variant, its trial has shown
            self._record(capture, attention, workload, inputs)

    def _record(
        self, capture: Capture, attention: Attention, workload: Workload, inputs: Inputs
    ) -> None:
        device, protocol = self.manifest.device, self.manifest.protocol
        step = make_step(attention, workload, inputs)
        profiling = Profiling(
            folder=self.manifest.folder,
            name=f"{capture.name}-{workload.label}",
            device=device,
            protocol=protocol,
            annotations=capture.annotations,
            annotation=None,
            metadata=trace_metadata(capture, self.manifest),
            notify=self.notify,
        )
        capture.traces = profiling.traces
        drive(profiling.steps(), step)
        if self.benchmark:
            self._measure(capture, step, workload, inputs)
        if self.check:
            capture.numerics = check_numerics(attention, workload, workload.other_inputs())

    def _measure(self, capture: Capture, step: Step, workload: Workload, inputs: Inputs) -> None:
        device = self.manifest.device
        latency = LatencyMeasurement(device, workload.flops)
        drive(latency.steps(), step)
        capture.latency = latency.result
        input_bytes = sum(t.numel() * t.element_size() for t in inputs.tensors)
        memory = MemoryMeasurement(device, input_bytes)
        drive(memory.steps(), step)
        capture.memory = memory.result


def prepared(variant: Variant, workload: Workload) -> Attention:
    """Return the variant's function, compiled where that is wanted."""
    wanted = variant.compiled or workload.compile
    if not wanted or variant.compiles_itself:
        return variant.attention
    compiled: Attention = torch.compile(variant.attention)
    return compiled


def forget_compiled() -> None:
    """Drop what torch.compile has built, so that no variant inherits from the one before it."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
