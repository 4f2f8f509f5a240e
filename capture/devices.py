"""The device that work runs on."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from capture.errors import CaptureError, RequestError

AUTO, CPU, CUDA = "auto", "cpu", "cuda"


@dataclass(frozen=True)
class Device:
    """A CPU, or a GPU as torch numbers it (ROCm's too are called ``cuda``).

    Attributes:
        name: as torch takes it, ``cpu`` or ``cuda:0``.
    """

    name: str

    @property
    def is_gpu(self) -> bool:
        """Whether work is launched rather than run."""
        return self.name != CPU

    def synchronize(self) -> None:
        """Wait until everything that was launched has ended."""
        if self.is_gpu:
            torch.cuda.synchronize(self.name)

    def select(self) -> None:
        """Make it the device that new tensors and launches go to by default."""
        if self.is_gpu:
            torch.cuda.set_device(self.name)


def find_device(text: str) -> Device:
    """Return the device of ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        RequestError: the text names no kind of device.
        CaptureError: this machine has no such device.
    """
    if text == AUTO:
        text = CUDA if torch.cuda.is_available() else CPU
    if text == CPU:
        return Device(CPU)
    kind, _, number = text.partition(":")
    if kind != CUDA or (":" in text and not number.isdecimal()):
        raise RequestError(f"--device {text}: write auto, cpu, cuda or cuda:N")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise CaptureError(f"--device {text}: torch {torch.__version__} finds no GPU here")
    ordinal = int(number or torch.cuda.current_device())
    if ordinal >= count:
        raise CaptureError(f"--device {text}: torch finds {count} GPU(s), 0 to {count - 1}")
    return Device(f"{CUDA}:{ordinal}")


Notify = Callable[[str], None]
"""Tells the user something while work goes on."""
