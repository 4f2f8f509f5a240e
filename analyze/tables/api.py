"""Runtime and driver calls: which launch, which wait, and which op made them."""

import polars as pl

from analyze.tables.host import Host

KERNEL_LAUNCH_PATTERN = (
    r"^[a-z]+(Ext|Hcc|Drv)?(Module)?Launch(Cooperative|Multi)?(Kernel|ByPtr)"
    r"|^[a-z]+Enqueue(Cooperative)?KernelLaunch"
)
"""How the names of calls begin that launch kernels: CUDA's and HIP's, then SYCL's.

Level Zero's ``zeCommandListAppendLaunchKernel`` is none: SYCL's call makes it.
"""
GRAPH_LAUNCH_PATTERN = r"^[a-z]+GraphLaunch"
LAUNCH_PATTERN = f"{KERNEL_LAUNCH_PATTERN}|{GRAPH_LAUNCH_PATTERN}"
"""The same in ``capture/verification.py``, which imports nothing of ``analyze``."""

GPU_WORK_PATTERN = rf"{LAUNCH_PATTERN}|^[a-z]+Mem(cpy|set)"
"""How the names of calls begin that put work on the GPU: launches, copies and sets."""

SYNC_NAMES = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "hipStreamSynchronize",
    "hipDeviceSynchronize",
    "hipEventSynchronize",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
    "cudaMemcpy",
    "hipMemcpy",
    "hipMemcpyWithStream",
)
"""Calls that return only when the GPU has caught up."""

DRIVER_ALLOCATIONS = (
    *("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaMallocHost", "cudaFreeHost"),
    *("cudaHostRegister", "cudaHostUnregister"),
    *("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease"),
    *("hipMalloc", "hipExtMallocWithFlags", "hipFree", "hipHostMalloc", "hipHostFree"),
    *("hipHostRegister", "hipHostUnregister"),
    *("hipMemCreate", "hipMemMap", "hipMemUnmap", "hipMemRelease"),
)
"""Calls that go to the driver for memory; those in stream order are served from a pool."""

_DEVICE_SYNC = ("cudaDeviceSynchronize", "hipDeviceSynchronize")
_STREAM_SUFFIX = r"_pt[sd][sz]$"


def build_api_calls(calls: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Return the API calls with their place in the host's trees.

    Args:
        calls: the ``api_calls`` family frame with ``lane``.
        host: the ops and annotations.

    Returns:
        ``calls`` with ``api_row``, ``end_ns``, ``is_launch``, ``is_sync``, ``profiler_own``,
        ``op_row`` and ``region_row`` (rows of ``host.nodes``) and ``phase`` added.
    """
    base_name = pl.col("name").str.replace(_STREAM_SUFFIX, "")
    node = host.forest.innermost_at(calls)
    calls = calls.with_row_index("api_row").with_columns_seq(
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        is_launch=pl.col("name").str.contains(LAUNCH_PATTERN).fill_null(value=False),
        is_sync=base_name.is_in(SYNC_NAMES).fill_null(value=False),
        op_row=host.nodes["op_row"].gather(node),
        region_row=host.nodes["region_row"].gather(node),
        phase=host.nodes["phase"].gather(node),
    )
    return calls.with_columns_seq(profiler_own=_is_profilers_own(calls, host))


def _is_profilers_own(calls: pl.DataFrame, host: Host) -> pl.Series:
    """Tell the device synchronisation that the profiler itself makes when it stops.

    It is the last launch or synchronisation of the file, made by no op, and no annotation or op
    starts after it. Other threads may still ask about events, as NCCL's watchdog does.
    """
    used = calls.filter(pl.col("is_launch") | pl.col("is_sync"))
    last = used.filter(pl.col("start_ns") == pl.col("start_ns").max())
    is_tail_sync = (
        last.height == 1
        and last["name"][0] in _DEVICE_SYNC
        and last["op_row"][0] is None
        and last["region_row"][0] is None
        and not (host.nodes["start_ns"] > last["start_ns"][0]).any()
    )
    own_row = last["api_row"][0] if is_tail_sync else -1
    return calls["api_row"].cast(pl.Int64) == own_row
