"""The kernels of a trace by name, the costliest, with what their launch says."""

from typing import Any

from analyze.report.kernels import kernels_report
from analyze.report.summary import sum_of_known
from analyze.report.views.launches import NOT_LAUNCHED, Launches, launches_by_name
from analyze.report.views.model import KernelRow, KernelTable
from analyze.report.views.texts import cut
from analyze.tables.build import Trace

MAX_ROWS = 500
MAX_NAME = 1000
MAX_CHAIN = 400
MAX_CHAINS = 3


def kernel_table(trace: Trace) -> KernelTable:
    """Return the kernels by name, at most ``MAX_ROWS`` names of them."""
    report = kernels_report(trace)
    names, rest = report["names"][:MAX_ROWS], report["names"][MAX_ROWS:]
    launches = launches_by_name(trace)
    return KernelTable(
        kernels=report["kernels"],
        kernel_time_us=report["kernel_time_us"],
        names=report["selected_names"],
        rows=[_row(entry, launches.get(entry["name"], NOT_LAUNCHED)) for entry in names],
        rest_names=len(rest),
        rest_count=sum(entry["count"] for entry in rest),
        rest_us=sum_of_known([entry["total_us"] for entry in rest]),
    )


def _row(entry: dict[str, Any], launches: Launches) -> KernelRow:
    launch = entry["launch"] or {}
    chains, sources = entry["op_chains"], entry["sources"]["top"]
    return KernelRow(
        name=cut(entry["name"] or "unknown", MAX_NAME),
        short_name=cut(entry["short_name"] or "unknown", MAX_NAME),
        family=entry["family"],
        precision=entry["precision"],
        tensor_core=entry["tensor_core"],
        count=entry["count"],
        per_forward=entry["per_forward"],
        total_us=entry["total_us"],
        mean_us=entry["mean_us"],
        max_us=entry["max_us"],
        share=entry["share_of_gpu_busy"],
        grid=_dimensions(launch.get("grid")),
        block=_dimensions(launch.get("block")),
        registers=launch.get("registers_per_thread"),
        shared_memory=launch.get("shared_memory_bytes"),
        configurations=launch.get("configurations", 0),
        **vars(launches),
        op_chains=[cut(chain["value"], MAX_CHAIN) for chain in chains["top"][:MAX_CHAINS]],
        op_chains_distinct=chains["distinct"],
        source=cut(sources[0]["value"], MAX_CHAIN) if sources else None,
    )


def _dimensions(values: object) -> str | None:
    """Return a grid or block as it is written by hand; None where it is not three numbers."""
    if not isinstance(values, list) or not all(isinstance(value, int) for value in values):
        return None
    return "x".join(map(str, values))[:MAX_CHAIN] or None
