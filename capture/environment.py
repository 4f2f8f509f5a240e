"""What a trace was recorded on: versions, device, driver, and settings that change numbers."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata

import torch

from capture.devices import Device
from capture.words import one_line

SETTINGS = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_CUDNN_SDPA_ENABLED",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
)
"""Environment variables that change what a trace or a measurement shows."""

NVIDIA_SMI_SECONDS = 10


def environment(device: Device) -> dict[str, object]:
    """Return the facts about this machine that numbers depend on; null where torch knows none."""
    return {
        "kinetolint": kinetolint_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if device.is_gpu else None,
        "driver": _driver() if device.is_gpu else None,
        "device": _device(device),
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "variables": {name: one_line(os.environ[name]) for name in SETTINGS if name in os.environ},
    }


def kinetolint_version() -> str:
    """Return the version of this package."""
    try:
        return metadata.version("kinetolint")
    except metadata.PackageNotFoundError:
        return "unknown"


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _device(device: Device) -> dict[str, object]:
    if not device.is_gpu:
        return {"type": "cpu", "name": _cpu_name()}
    properties = torch.cuda.get_device_properties(device.name)
    return {
        "type": "cuda" if torch.version.hip is None else "hip",
        "name": properties.name,
        "index": torch.device(device.name).index,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "architecture": getattr(properties, "gcnArchName", None),
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
    }


def _cpu_name() -> str | None:
    """Return the processor's name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - not a path of ours
            names = (line.partition(":")[2] for line in file if line.startswith("model name"))
            return next((one_line(name) for name in names), None)
    except OSError:
        return platform.processor() or None


def _driver() -> str | None:
    """Return the version of the NVIDIA driver, or of the amdgpu module; torch knows neither."""
    if torch.version.hip is not None:
        return _first_line("/sys/module/amdgpu/version")
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603 - no part of the command comes from outside
            command, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.split("\n", 1)[0].strip() or None


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - not a path of ours
            return file.readline().strip() or None
    except OSError:
        return None
