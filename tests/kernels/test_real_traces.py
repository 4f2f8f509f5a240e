"""Recomputed occupancy against what Kineto wrote into real traces."""

from __future__ import annotations

import csv
import gzip
import math
import struct
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from analyze.kernels.classify import classify
from analyze.kernels.device import DeviceLimits
from analyze.kernels.occupancy import Occupancy, occupancy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Written by the profiler itself with an unescaped quote, so they are not JSON.
INVALID_JSON = {"gen-names", "gen-badmeta"}
DEFAULT_SHARED_MEMORY_LIMIT = 48 * 1024


@dataclass(frozen=True)
class Launch:
    trace: str
    name: str
    device: DeviceLimits
    threads: int
    registers: int
    shared: int
    blocks: int
    reported: int

    def occupancy(self, device: DeviceLimits) -> Occupancy | None:
        return occupancy(
            device,
            threads_per_block=self.threads,
            registers_per_thread=self.registers,
            shared_memory_bytes=self.shared,
            blocks=self.blocks,
        )


@cache
def documents(folder: Path) -> dict[str, Any]:
    with (folder / "MANIFEST.tsv").open(encoding="utf-8", newline="") as manifest:
        rows = list(csv.DictReader(manifest, delimiter="\t"))
    wanted = [
        row for row in rows if not row["id"].endswith("-neg") and row["id"] not in INVALID_JSON
    ]
    assert wanted
    return {row["id"]: read(folder / row["path"]) for row in wanted}


def read(path: Path) -> Any:
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    return orjson.loads(content)


def kernels(document: Any) -> Iterator[dict[str, Any]]:
    events = document if isinstance(document, list) else document["traceEvents"]
    return (event for event in events if str(event.get("cat", "")).lower() == "kernel")


def launches(folder: Path) -> Iterator[Launch]:
    """Yield the kernels that come with a reported occupancy and with device properties."""
    for trace, document in documents(folder).items():
        if not isinstance(document, dict):
            continue
        devices = {
            properties["id"]: DeviceLimits.from_properties(properties)
            for properties in document.get("deviceProperties", [])
        }
        for event in kernels(document):
            args = event.get("args", {})
            reported = args.get("est. achieved occupancy %", -1)
            if reported >= 0 and args["device"] in devices:
                yield Launch(
                    trace=trace,
                    name=event["name"],
                    device=devices[args["device"]],
                    threads=math.prod(args["block"]),
                    registers=args["registers per thread"],
                    shared=args["shared memory"],
                    blocks=math.prod(args["grid"]),
                    reported=reported,
                )


def test_reported_occupancy_is_the_achievable_one(real_traces: Path) -> None:
    compared = 0
    for launch in launches(real_traces):
        if launch.reported > 0:
            found = launch.occupancy(launch.device)
            assert found is not None, launch
            assert abs(found.achievable - launch.reported) <= 1, (launch, found)
            compared += 1
    assert compared > 0


def test_a_reported_zero_is_large_shared_memory_or_a_tiny_grid(real_traces: Path) -> None:
    flawed = tiny = 0
    for launch in launches(real_traces):
        # Zero registers: CUPTI did not know them, so there is nothing to recompute.
        if launch.reported == 0 and launch.registers > 0:
            found = launch.occupancy(launch.device)
            assert found is not None, launch
            if launch.shared > DEFAULT_SHARED_MEMORY_LIMIT:
                flawed += 1
            else:
                assert found.achievable < 1, (launch, found)
                tiny += 1
    assert flawed > 0
    assert tiny > 0


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def reported_by_kineto(launch: Launch, device: DeviceLimits) -> int:
    """Kineto never asks for the opt-in limit, works in single precision and rounds half up."""
    assert device.sm_count is not None
    assert device.max_threads_per_sm is not None
    found = launch.occupancy(
        replace(device, shared_memory_per_block_optin=DEFAULT_SHARED_MEMORY_LIMIT)
    )
    resident = 0 if found is None else found.resident_blocks
    blocks = min(resident, single(launch.blocks / device.sm_count))
    share = single(single(blocks * launch.threads) / device.max_threads_per_sm)
    return math.floor(share * 100 + 0.5)


def test_kinetos_number_follows_from_the_default_shared_memory_limit(real_traces: Path) -> None:
    for launch in launches(real_traces):
        if launch.registers > 0:
            assert reported_by_kineto(launch, launch.device) == launch.reported, launch


def test_kernel_names(real_traces: Path) -> None:
    names = {
        event["name"] for document in documents(real_traces).values() for event in kernels(document)
    }
    facts = {name: classify(name) for name in names}
    assert all(0 < len(fact.short_name) <= 80 for fact in facts.values())
    unknown = [name for name, fact in facts.items() if fact.family is None]
    assert len(unknown) < len(names) / 50
    # AMD runs fp32 on matrix units too: no kernel of its libraries is ever called plain FMA.
    assert not [
        name
        for name, fact in facts.items()
        if fact.tensor_core is False and name.startswith(("Cijk_", "_ZN2ck", "igemm_"))
    ]
