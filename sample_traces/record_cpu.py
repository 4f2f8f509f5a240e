"""Record the seven CPU sample traces with the ``capture`` command.

Only what would identify the machine is replaced afterwards. Remake the files with

    python sample_traces/record_cpu.py [--out DIRECTORY]

which needs torch. Times, ids and the order of bytes differ from run to run; the operators do not.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeAlias

import orjson

JsonObject: TypeAlias = dict[str, object]

DECODERS = Path(__file__).with_name("decoders.py")
VARIANTS = ("naive", "naive-inplace", "sdpa-math", "sdpa-flash", "sdpa-auto")
SHAPE = ("--batch", "2", "--heads", "4", "--seq", "128", "--head-dim", "32")
NEUTRAL_PROCESS = 4242


def recordings() -> dict[str, tuple[str, ...]]:
    """Return the arguments of ``capture`` by the name of the sample."""
    found: dict[str, tuple[str, ...]] = {
        f"cpu-{name}": ("--variant", name, *SHAPE, "--no-check") for name in VARIANTS
    }
    found["cpu-decode-cat"] = ("run", f"{DECODERS}:with_cat", "--name", "decode")
    found["cpu-decode-preallocated"] = ("run", f"{DECODERS}:preallocated", "--name", "decode")
    return found


def record(arguments: tuple[str, ...]) -> JsonObject:
    """Run ``capture`` on one thread and return the trace."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "capture", *arguments]
        command += ["--output", folder, "--device", "cpu", "--no-benchmark"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
        (path,) = Path(folder).glob("*.json.gz")
        trace: JsonObject = orjson.loads(gzip.decompress(path.read_bytes()))
    return trace


def neutral(trace: JsonObject, name: str) -> JsonObject:
    """Replace what names the machine, the process and the path the file was written to."""
    events = trace["traceEvents"]
    if not isinstance(events, list):
        message = f"{name}: the profiler wrote no list of events"
        raise TypeError(message)
    processes = {event["pid"] for event in events if event.get("cat") == "cpu_op"}
    if len(processes) != 1:
        message = f"{name}: expected operators of one process, found {len(processes)}"
        raise ValueError(message)
    process = processes.pop()
    for event in events:
        for key in ("pid", "tid"):
            if event.get(key) == process:
                event[key] = NEUTRAL_PROCESS
        if event["ph"] == "M":
            event["args"] = neutral_label(event["name"], event["args"], process)
    return trace | {"host_name": "sample", "traceName": f"{name}.json.gz"}


def neutral_label(kind: str, arguments: JsonObject, process: int) -> JsonObject:
    """Return the label of a process or thread without the real process in it."""
    if kind == "process_name":
        return {"name": "python"}
    if kind == "thread_name":
        return {"name": f"thread {NEUTRAL_PROCESS} (python)"}
    return {key: NEUTRAL_PROCESS if value == process else value for key, value in arguments.items()}


def compressed(trace: JsonObject) -> bytes:
    """Return a trace as gzip without a time stamp or file name in its header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as stream:
        stream.write(orjson.dumps(trace))
    return buffer.getvalue()


def main() -> None:
    """Record all files."""
    parser = argparse.ArgumentParser(description="Record the CPU sample traces.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="target directory")
    out: Path = parser.parse_args().out
    for name, arguments in recordings().items():
        path = out / f"{name}.json.gz"
        path.write_bytes(compressed(neutral(record(arguments), name)))
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
