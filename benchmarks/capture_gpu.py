"""The six published variants on this GPU: traces, measurements and what analyze says, in one go.

    python benchmarks/capture_gpu.py [--out captures/gpu] [--device cuda]

runs ``capture`` with the published workload, then ``analyze`` on the folder, and prints the
figures of this machine beside those published for an A100 ("Profiling in PyTorch (Part 3)"). Needs
some minutes on a GPU; on another device it says so and still shows that everything works.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

PUBLISHED: dict[str, tuple[str, str, str, str]] = {
    "naive": ("6", "-", "-", "-"),
    "naive-inplace": ("5", "1955", "-", "-"),
    "sdpa-math": ("20", "7239", "-", "-"),
    "sdpa-efficient": ("1", "277.9", "117", "-"),
    "sdpa-flash": ("1", "146.8", "138", "13"),
    "sdpa-cudnn": ("1", "186.3", "214", "0"),
}
"""By variant: GPU ops, GPU us and CPU us of a forward, reported occupancy in %."""

WORKLOAD = (
    *("--batch", "8", "--heads", "16", "--seq", "1024", "--head-dim", "64"),
    *("--dtype", "bf16", "--causal", "--phase", "forward"),
)


def capture(out: Path, device: str) -> None:
    """Record the variants; one that cannot run here is noted in capture.json."""
    command = [sys.executable, "-m", "capture", "--output", str(out), "--device", device]
    command += ["--overwrite", *WORKLOAD]
    for name in PUBLISHED:
        command += ["--variant", name]
    subprocess.run(command, check=False)


def analyze(out: Path) -> str:
    """Return what ``analyze`` prints about the folder."""
    command = [sys.executable, "-m", "analyze", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def rows(out: Path) -> list[tuple[str, ...]]:
    """Return a row for each variant: measured here, and published."""
    from analyze.tables.build import load_trace  # noqa: PLC0415
    from analyze.tables.coverage import forward_median  # noqa: PLC0415

    found: list[tuple[str, ...]] = []
    for entry in orjson.loads((out / "capture.json").read_bytes())["captures"]:
        published = PUBLISHED[entry["name"]]
        if not entry["traces"]:
            found.append((entry["name"], f"{entry['status']}: {entry['reason']}"))
            continue
        trace = load_trace(out / entry["traces"][0]["file"])
        median, kernels = forward_median(trace), trace.table("kernels")
        here = (median["gpu_ops"], median["gpu_busy_us"], median["cpu_us"])
        pairs = [f"{_short(a)} ({b})" for a, b in zip(here, published, strict=False)]
        reported = f"{_middle(kernels['occupancy_reported'])} ({published[3]})"
        found.append((entry["name"], *pairs, reported, _middle(kernels["occupancy"])))
    return found


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _middle(values: Any) -> str:
    known = values.drop_nulls().to_list()
    return _short(statistics.median(known)) if known else "-"


def main() -> None:
    """Capture, analyse, compare."""
    parser = argparse.ArgumentParser(description="Capture the six published variants on a GPU.")
    parser.add_argument("--out", type=Path, default=Path("captures/gpu"))
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    out: Path = arguments.out
    capture(out, arguments.device)
    if not (out / "capture.json").is_file():
        raise SystemExit(1)
    print(analyze(out))
    print("This device (A100, published), medians of a forward:")
    header = ("variant", "GPU ops", "GPU us", "CPU us", "occupancy reported %", "recomputed %")
    for row in (header, *rows(out)):
        print("  ".join(f"{cell:20}" for cell in row).rstrip())


if __name__ == "__main__":
    main()
