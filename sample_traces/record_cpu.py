"""Record the seven CPU sample traces.

These are real recordings, kept small on purpose: each holds three profiled calls of one attention
variant. Only what would identify the machine is replaced afterwards. Remake the files with

    python sample_traces/record_cpu.py [--out DIRECTORY]

which needs torch. Times, ids and the order of bytes differ from run to run; the operators do not.
"""

from __future__ import annotations

import argparse
import gzip
import io
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import orjson
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile, record_function, schedule

Attention: TypeAlias = Callable[[], object]
JsonObject: TypeAlias = dict[str, object]

BATCH, HEADS, SEQ, HEAD_DIM = 2, 4, 128, 32
CACHE_ROOM = 16
WARM_UPS = 3
WAIT, WARMUP, ACTIVE = 1, 1, 3
ANNOTATION = "attn_fwd"
NEUTRAL_PROCESS = 4242


class Inputs:
    """Query, key, value and the causal mask of one small problem."""

    def __init__(self) -> None:
        shape = (BATCH, HEADS, SEQ, HEAD_DIM)
        generator = torch.Generator().manual_seed(0)
        self.query, self.key, self.value = (
            torch.randn(shape, generator=generator).to(torch.bfloat16) for _ in range(3)
        )
        self.masked = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
        self.scale = 1 / math.sqrt(HEAD_DIM)

    def naive(self) -> object:
        """Attention by hand; the mask is filled out of place."""
        scores = torch.matmul(self.query, self.key.transpose(-2, -1))
        scores = torch.mul(scores, self.scale)
        scores = scores.masked_fill(self.masked, -math.inf)
        return torch.matmul(torch.softmax(scores, dim=-1), self.value)

    def naive_inplace(self) -> object:
        """Attention by hand; the mask is filled in place."""
        scores = torch.matmul(self.query, self.key.transpose(-2, -1))
        scores = torch.mul(scores, self.scale)
        scores.masked_fill_(self.masked, -math.inf)
        return torch.matmul(torch.softmax(scores, dim=-1), self.value)

    def fused(self) -> object:
        """One call of the library's attention; which backend runs is up to the caller."""
        return scaled_dot_product_attention(self.query, self.key, self.value, is_causal=True)

    def pinned(self, backend: object) -> Attention:
        """Return the library's attention pinned to one backend."""

        def call() -> object:
            with sdpa_kernel(backend):
                return self.fused()

        return call


class Decoder:
    """One decoding step after another: a new query attends to all keys and values so far."""

    def __init__(self, inputs: Inputs) -> None:
        self._query, self._new_key, self._new_value = (
            tensor[:, :, -1:] for tensor in (inputs.query, inputs.key, inputs.value)
        )
        self._keys, self._values = inputs.key, inputs.value
        room = torch.zeros(BATCH, HEADS, SEQ + CACHE_ROOM, HEAD_DIM, dtype=torch.bfloat16)
        self._key_room, self._value_room = room, room.clone()
        self._length = SEQ

    def with_cat(self) -> object:
        """Append to the cache with torch.cat, which copies all of it."""
        self._keys = torch.cat([self._keys, self._new_key], dim=2)
        self._values = torch.cat([self._values, self._new_value], dim=2)
        return scaled_dot_product_attention(self._query, self._keys, self._values)

    def preallocated(self) -> object:
        """Write the new entry into a cache that has room for it."""
        self._key_room[:, :, self._length : self._length + 1] = self._new_key
        self._value_room[:, :, self._length : self._length + 1] = self._new_value
        self._length += 1
        keys, values = (room[:, :, : self._length] for room in (self._key_room, self._value_room))
        return scaled_dot_product_attention(self._query, keys, values)


def variants() -> dict[str, Attention]:
    """Return what each file records."""
    inputs = Inputs()
    return {
        "cpu-naive": inputs.naive,
        "cpu-naive-inplace": inputs.naive_inplace,
        "cpu-sdpa-math": inputs.pinned(SDPBackend.MATH),
        "cpu-sdpa-flash": inputs.pinned(SDPBackend.FLASH_ATTENTION),
        "cpu-sdpa-auto": inputs.fused,
        "cpu-decode-cat": Decoder(inputs).with_cat,
        "cpu-decode-preallocated": Decoder(inputs).preallocated,
    }


def record(attention: Attention) -> JsonObject:
    """Profile one variant and return its trace."""
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        for _ in range(WARM_UPS):
            attention()
        path = Path(folder) / "trace.json"
        plan = schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
        activities = [ProfilerActivity.CPU]
        with profile(activities=activities, schedule=plan, record_shapes=True) as profiler:
            for _ in range(WAIT + WARMUP + ACTIVE):
                with record_function(ANNOTATION):
                    attention()
                profiler.step()
        profiler.export_chrome_trace(str(path))
        trace: JsonObject = orjson.loads(path.read_bytes())
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
    torch.set_num_threads(1)
    for name, attention in variants().items():
        path = out / f"{name}.json.gz"
        path.write_bytes(compressed(neutral(record(attention), name)))
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
