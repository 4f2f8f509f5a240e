"""The one declaration of every table and column that rules, reports and notebooks may use.

From it come the frames' schemas, ``analyze columns``, the type check of rules and the reference
documentation. Times are float microseconds relative to the trace start; sizes are bytes; shares are
0 to 1; null is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import polars as pl


class Need(Enum):
    """What a trace must hold for a column to be known; the value says how to get it."""

    GPU = "no GPU work was recorded: capture with ProfilerActivity.CUDA on a GPU"
    SHAPES = "input shapes and dtypes were not recorded: capture with record_shapes=True"
    STACKS = "Python stacks were not recorded: capture with with_stack=True"
    MODULES = "no nn.Module calls were recorded: capture with with_stack=True"
    OPS = "no CPU ops were recorded: capture with ProfilerActivity.CPU"
    MEMORY = "memory events were not recorded: capture with profile_memory=True"
    LAUNCHES = "no launch calls were recorded beside the GPU work"
    DEVICE_PROPERTIES = "the file holds no usable device properties"
    OCCUPANCY = "the profiler reported no occupancy (AMD, or torch before 1.9)"
    STEPS = "no ProfilerStep was recorded: give the profiler a schedule and call step()"
    CAPTURE = "the trace was not written by kinetolint's capture"
    CAPTURE_JSON = "no capture.json with that measurement lies beside the trace"
    CALLS = (
        "no attention call was recorded: there is neither an SDPA op nor one of flash-attn,"
        " xformers or flex_attention"
    )

    def words(self, *, truncated: bool) -> str:
        """Say that a trace lacks it; GPU work, which comes late, a cut file may have lost.

        Args:
            truncated: the file ends before its event list does.
        """
        return GPU_CUT_OFF if truncated and self is Need.GPU else self.value


GPU_CUT_OFF = "no GPU work is in what the file holds, which is cut short"


class Column(NamedTuple):
    """One documented column.

    Attributes:
        name: as rules write it.
        dtype: polars dtype of the published column.
        meaning: one sentence.
        unit: ``us``, ``bytes``, ``GB/s``, ``%`` or empty.
        needs: what the trace must hold; null values alone do not prove that it is missing.
        values: the only values it holds beside null; empty where it may hold any.
    """

    name: str
    dtype: type[pl.DataType]
    meaning: str
    unit: str = ""
    needs: Need | None = None
    values: tuple[str, ...] = ()

    @property
    def stored(self) -> str:
        """Name of the frame column behind it: times are kept in integer nanoseconds."""
        return f"{self.name.removesuffix('_us')}_ns" if self.unit == "us" else self.name


@dataclass(frozen=True)
class Table:
    """One documented table, or a view of one.

    Attributes:
        name: as rules write it.
        meaning: what a row is.
        columns: in order.
        base: the table a view is taken from.
        condition: which of its rows the view keeps.
        needs: what the trace must hold for the table to have rows.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    base: str | None = None
    condition: pl.Expr | None = None
    needs: Need | None = None

    @property
    def schema(self) -> dict[str, type[pl.DataType]]:
        """Column name to dtype."""
        return {column.name: column.dtype for column in self.columns}

    def column(self, name: str) -> Column | None:
        """Return a column by name, or None."""
        return next((column for column in self.columns if column.name == name), None)


def publish(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the documented columns of a frame that holds nanoseconds and helper columns."""
    return frame.select_seq(_published(column, frame.schema) for column in table.columns)


def _published(column: Column, schema: pl.Schema) -> pl.Expr:
    stored = pl.col(column.stored)
    if column.unit == "us":
        stored = (stored / 1000).alias(column.name)
    elif schema[column.name] == column.dtype:
        return stored
    return stored.cast(column.dtype, strict=False)


_TEXT, _INT, _FLOAT, _FLAG = pl.String, pl.Int64, pl.Float64, pl.Boolean

_START = Column("start_us", _FLOAT, "Start, from the trace start", "us")
_DURATION = Column("dur_us", _FLOAT, "Duration", "us")
_REGION = Column("region", _TEXT, "Innermost record_function annotation around it")
_FORWARD = Column("forward", _INT, "Index of the forward it belongs to; null outside any")
_STEP = Column(
    "step",
    _INT,
    "Number of the ProfilerStep it belongs to, which steps of other processes or of a second"
    " recording may bear as well; null outside any",
)
_SOURCE = Column(
    "source", _TEXT, "The user's own source line, file:line as recorded", needs=Need.STACKS
)
_PHASE = Column(
    "phase", _TEXT, "Part of a training step", values=("forward", "backward", "optimizer", "other")
)

DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "complex", "other")
FAMILIES = (
    "comm", "triton.template", "triton.reduction", "triton.pointwise", "triton.other", "attn.aux",
    "attn.bwd", "attn.fwd", "conv", "softmax", "norm", "optim", "rope", "embed", "sparse.fbgemm",
    "moe.route", "gemm.aux", "gemm.gemv", "gemm", "copy.cast", "copy", "mask", "fill", "rng",
    "reduce", "sort.scan", "index", "loss", "pool.interp", "quant", "elementwise",
)  # fmt: skip
"""The families of ``analyze/kernels/names.yaml``."""
COLLECTIVES = (
    "AllReduce", "AllGather", "ReduceScatter", "AllToAll", "SendRecv", "Broadcast", "Reduce",
)  # fmt: skip
"""What ``analyze/kernels/names.yaml`` tells communication kernels apart by, in NCCL's words."""
_MEMORY = ("pageable", "pinned", "device", "managed", "array")

GPU_OPS = Table(
    "gpu_ops",
    "One kernel, memcpy or memset on a GPU",
    (
        Column("kind", _TEXT, "What it is", values=("kernel", "memcpy", "memset")),
        Column("name", _TEXT, "Name as the profiler wrote it"),
        Column("short_name", _TEXT, "Name without template and call arguments"),
        Column("family", _TEXT, "What it does, from its name; null when unknown", values=FAMILIES),
        Column(
            "precision",
            _TEXT,
            "Type that is multiplied, from the name; null when it does not tell",
            values=DTYPES,
        ),
        Column(
            "tensor_core", _FLAG, "Runs on matrix units, from the name; null when it does not tell"
        ),
        Column("copy_kind", _TEXT, "Of a memcpy: HtoD, DtoH, DtoD, PtoP, HtoH or as written"),
        Column("src_memory", _TEXT, "Memory a memcpy reads", values=_MEMORY),
        Column("dst_memory", _TEXT, "Memory a memcpy writes", values=_MEMORY),
        Column("bytes", _INT, "Bytes copied or set", "bytes"),
        Column("bandwidth_gbps", _FLOAT, "bytes / duration, decimal GB", "GB/s"),
        Column("device", _INT, "Device ordinal"),
        Column("stream", _INT, "Stream id of the profiler, or queue; a label, not an order"),
        _START,
        _DURATION,
        Column(
            "gap_before_us",
            _FLOAT,
            "Time the device had nothing to do before it; null for the first work, also after a"
            " time that `analyze trim` left out",
            "us",
        ),
        Column(
            "gap_cause",
            _TEXT,
            "Why there is a gap before it. host: it was launched only after the device had run dry;"
            " sync: the same, and its thread was in a blocking call then; profiler: the same, and"
            " the profiler's overhead fills most of the gap; device: it had been launched before,"
            " or for most of the gap and 100 us;"
            " outside: it is the first work of its forward, or in none; none: there is no gap",
            needs=Need.LAUNCHES,
            values=("host", "sync", "profiler", "device", "outside", "none"),
        ),
        Column(
            "collective",
            _TEXT,
            "What a communication kernel does, from its name; null when it does not tell",
            values=COLLECTIVES,
        ),
        Column(
            "exposed_us",
            _FLOAT,
            "Of a communication kernel: how long it ran while its device did nothing else; time in"
            " which several of them run counts for the one that began first; null for other work",
            "us",
        ),
        Column(
            "crosses_earlier",
            _FLAG,
            "It starts inside earlier work of its stream and ends after it; viewers nest slices,"
            " and drop it; null where the stream is not known",
        ),
        Column("blocks", _INT, "Blocks in the grid"),
        Column("threads_per_block", _INT, "Threads in a block"),
        Column("registers_per_thread", _INT, "Registers a thread was given"),
        Column("shared_memory_bytes", _INT, "Static and dynamic shared memory of a block", "bytes"),
        Column("blocks_per_sm", _FLOAT, "Blocks in the grid / SMs; not how many are resident"),
        Column(
            "waves",
            _FLOAT,
            "Blocks in the grid / blocks resident on the whole device at a time",
            needs=Need.DEVICE_PROPERTIES,
        ),
        Column(
            "occupancy_reported",
            _FLOAT,
            "est. achieved occupancy as Kineto wrote it; it is 0 for every block with more than"
            " 48 KiB of shared memory",
            "%",
            Need.OCCUPANCY,
        ),
        Column(
            "occupancy",
            _FLOAT,
            "The same quantity recomputed with the opt-in shared memory limit: resident warps,"
            " capped by the grid, as a share of the SM's",
            "%",
            Need.DEVICE_PROPERTIES,
        ),
        Column(
            "occupancy_limiter",
            _TEXT,
            "What bounds it: registers, shared_memory, warps, blocks or grid; ties joined by |",
            needs=Need.DEVICE_PROPERTIES,
        ),
        Column(
            "by_hand",
            _INT,
            "Number of the attention written out as ops that launched it (see ops); null for none,"
            " and where the launch is not known",
        ),
        Column("graph_id", _INT, "CUDA graph it was replayed from; 0 or null for none"),
        Column("api", _TEXT, "Runtime or driver call that launched it", needs=Need.LAUNCHES),
        Column("api_dur_us", _FLOAT, "Duration of that call", "us", Need.LAUNCHES),
        Column(
            "queue_delay_us",
            _FLOAT,
            "From the return of that call to the start on the GPU, at least 0",
            "us",
            Need.LAUNCHES,
        ),
        Column("op", _TEXT, "Innermost op around the launch", needs=Need.OPS),
        Column(
            "op_chain",
            _TEXT,
            "Ops around the launch, root to leaf, joined by ' > '",
            needs=Need.OPS,
        ),
        Column("root_op", _TEXT, "Outermost op around the launch", needs=Need.OPS),
        Column("op_dtype", _TEXT, "dtype of the op's inputs", needs=Need.SHAPES, values=DTYPES),
        Column(
            "root_dtype",
            _TEXT,
            "dtype of the inputs of the outermost op that recorded any",
            needs=Need.SHAPES,
            values=DTYPES,
        ),
        Column("op_shapes", _TEXT, "Shapes of the op's inputs, as JSON", needs=Need.SHAPES),
        _SOURCE,
        _REGION,
        _FORWARD,
        Column("position", _INT, "GPU ops of its forward that started before it; null outside any"),
        _STEP,
        _PHASE,
        Column("linked", _FLAG, "The call that launched it is in the file"),
    ),
    needs=Need.GPU,
)

OPS = Table(
    "ops",
    "One CPU op, as torch's key_averages() counts them",
    (
        Column("name", _TEXT, "Name of the op"),
        _START,
        _DURATION,
        Column("self_us", _FLOAT, "Duration without the ops and annotations inside it", "us"),
        Column(
            "device_us", _FLOAT, "GPU work it and its descendants launched, summed", "us", Need.GPU
        ),
        Column("own_device_us", _FLOAT, "GPU work it launched itself, summed", "us"),
        Column("gpu_ops", _INT, "GPU ops it and its descendants launched"),
        Column("own_gpu_ops", _INT, "GPU ops it launched itself"),
        Column("waiting_us", _FLOAT, "Of its self time: blocking calls it made itself", "us"),
        Column("parent", _TEXT, "Op or annotation directly around it"),
        Column("op_chain", _TEXT, "Ops from the root to this one, joined by ' > '"),
        Column("root_op", _TEXT, "Outermost op around it"),
        Column("depth", _INT, "Ops around it"),
        Column(
            "call_index",
            _INT,
            "0 for the first op of this name in the trace, then 1, 2, ...; an op inside one of its"
            " own name counts as that one",
        ),
        Column(
            "by_hand",
            _INT,
            "Number of the attention written out as ops (bmm, softmax, bmm on one thread) that it"
            " is part of; null outside any",
        ),
        Column(
            "attention_floor_us",
            _FLOAT,
            "Least time of the attention that begins with it, an attention op or the first bmm of"
            " one written out: its matrix products at the device's published dense peak for dtype,"
            " half of them where queries and keys are equally many, for a causal mask may save the"
            " rest; null where no attention begins, or peak, shapes or dtype are not known",
            "us",
        ),
        Column(
            "flash_obstacle",
            _TEXT,
            "Of an op in an attention call: the call's flash_obstacle (see calls)",
            needs=Need.SHAPES,
        ),
        Column("pid", _TEXT, "Process"),
        Column("tid", _TEXT, "Thread"),
        Column("dtype", _TEXT, "dtype of its inputs", needs=Need.SHAPES, values=DTYPES),
        Column("shapes", _TEXT, "Shapes of its inputs, as JSON", needs=Need.SHAPES),
        _PHASE,
        _SOURCE,
        Column(
            "module",
            _TEXT,
            "Innermost nn.Module whose call it is part of, as torch numbers them (Linear_0); null"
            " outside any, and in a backward on a thread of its own",
            needs=Need.MODULES,
        ),
        _REGION,
        _FORWARD,
        _STEP,
        Column("finished", _FLAG, "It ended inside the recorded window"),
    ),
    needs=Need.OPS,
)

API_CALLS = Table(
    "api_calls",
    "One call of the GPU runtime or driver",
    (
        Column("name", _TEXT, "Name of the call"),
        _START,
        _DURATION,
        Column("tid", _TEXT, "Thread"),
        Column("gpu_ops", _INT, "GPU ops it caused"),
        Column("queue_delay_us", _FLOAT, "From its return to the start of the first of them", "us"),
        Column("is_launch", _FLAG, "It launches a kernel or a graph"),
        Column("is_sync", _FLAG, "It returns only when the GPU has caught up"),
        Column("blocking", _FLAG, "It made the host wait: a sync, or a copy of pageable memory"),
        Column(
            "waits_for_gpu",
            _FLAG,
            "The program waited in it until the GPU had caught up: a sync, or a copy to pageable"
            " memory; not the profiler's own, nor one made inside another",
        ),
        Column(
            "dry_us",
            _FLOAT,
            "Of its time, what no GPU work of the file fills; null if it did not block, or where no"
            " GPU work was recorded",
            "us",
        ),
        Column(
            "idle_us",
            _FLOAT,
            "GPU idle time that began while it ran, until the next work, which its thread launched"
            " only then; without what the profiler or loading of data fills; of calls inside each"
            " other the outermost's; null if it did not block",
            "us",
        ),
        Column("op", _TEXT, "Innermost op around it", needs=Need.OPS),
        Column("op_chain", _TEXT, "Ops around it, root to leaf, joined by ' > '", needs=Need.OPS),
        _SOURCE,
        _REGION,
        _FORWARD,
        _STEP,
        Column("profiler_own", _FLAG, "The profiler's own synchronisation when it stops"),
    ),
    needs=Need.LAUNCHES,
)

_GPU_AMOUNTS = (
    Column("gpu_busy_us", _FLOAT, "GPU work launched in it: length of the union", "us"),
    Column("gpu_sum_us", _FLOAT, "The same, durations summed", "us"),
    Column("gpu_ops", _INT, "Kernels, copies and sets launched in it"),
    Column("kernels", _INT, "Kernels launched in it"),
    Column("copies", _INT, "Memory copies launched in it"),
)

REGIONS = Table(
    "regions",
    "One record_function annotation",
    (
        Column("name", _TEXT, "Name of the annotation"),
        _START,
        _DURATION,
        *_GPU_AMOUNTS,
        Column("syncs", _INT, "Synchronising calls made in it"),
        Column("backward_gpu_busy_us", _FLOAT, "Backward work started in it: union", "us"),
        Column("backward_gpu_sum_us", _FLOAT, "The same, summed", "us"),
        Column("backward_gpu_ops", _INT, "Kernels, copies and sets of that backward work"),
        Column("backward_kernels", _INT, "Kernels of it"),
        Column("backward_copies", _INT, "Copies of it"),
    ),
)

GAPS = Table(
    "gaps",
    "One time in which a device had nothing to do, between its first and its last work",
    (
        Column("device", _INT, "Device ordinal"),
        _START,
        _DURATION,
        Column(
            "cause",
            _TEXT,
            "Why the device had run dry. host: the next work was launched only after it had; sync:"
            " the same, and the launching thread was in a blocking call when the gap began or for"
            " most of it; input: the same as either, and loading of data fills most of the gap;"
            " profiler: the same, and the profiler's overhead does; launch: the launching call"
            " itself fills most of the gap, or one before it that returned late; stream: the next"
            " work had been launched before, and follows work of another stream within 100 us;"
            " device: it had been launched before, or for most of the gap and 100 us, and was not"
            " begun at once",
            needs=Need.LAUNCHES,
            values=("host", "sync", "input", "profiler", "launch", "stream", "device"),
        ),
        Column(
            "op",
            _TEXT,
            "Innermost op that the thread which launched the next work spent most time in; null"
            " for none",
            needs=Need.OPS,
        ),
        Column("op_chain", _TEXT, "The same, root to leaf, joined by ' > '", needs=Need.OPS),
        Column("op_us", _FLOAT, "Time of the gap in that op itself", "us", Need.OPS),
        Column(
            "api",
            _TEXT,
            "Runtime or driver call that this thread spent most time in; null for none",
            needs=Need.LAUNCHES,
        ),
        Column("in_api_us", _FLOAT, "This thread was in runtime or driver calls", "us"),
        Column(
            "memory_calls_us",
            _FLOAT,
            "Of that, in calls that take memory from the driver or give it back (cudaMalloc,"
            " cudaFree, hipMalloc, ...)",
            "us",
        ),
        Column("memory_call", _TEXT, "The one of these that it spent most time in"),
        Column(
            "loader",
            _TEXT,
            "Annotation or op in it that loads data on this thread, e.g."
            " enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; null for none",
        ),
        Column("in_ops_us", _FLOAT, "It was in ops, outside such calls", "us", Need.OPS),
        Column("outside_ops_us", _FLOAT, "It was in neither: in Python, or idle", "us", Need.OPS),
        Column(
            "source",
            _TEXT,
            "The user's own line that this thread spent most time in, file:line as recorded",
            needs=Need.STACKS,
        ),
        Column("previous_name", _TEXT, "Short name of the work that ended last before it"),
        Column("previous_op", _TEXT, "Innermost op that launched that work", needs=Need.OPS),
        Column("next_name", _TEXT, "Short name of the work that ended it"),
        Column("next_op", _TEXT, "Innermost op that launched that work", needs=Need.OPS),
        Column("region", _TEXT, "Innermost record_function annotation around that launch"),
        Column("forward", _INT, "Index of the forward of the next work; null outside any"),
        Column("step", _INT, "Number of the ProfilerStep of the next work; null outside any"),
        Column(
            "phase",
            _TEXT,
            "Part of a training step that the next work is of",
            values=("forward", "backward", "optimizer", "other"),
        ),
        Column("in_forward", _FLAG, "The work before and after it is of one forward"),
        Column(
            "between_forwards",
            _FLAG,
            "The last work of a forward before it and the first after it are of two forwards; where"
            " neither this nor in_forward is true, it lies before the first forward, after the last"
            " or beside work that is of none",
        ),
    ),
    needs=Need.GPU,
)

MEMORY = Table(
    "memory",
    "One block of memory taken from torch's allocator, or given back to it",
    (
        Column(
            "kind",
            _TEXT,
            "What happened; out_of_memory is an attempt that failed",
            values=("allocate", "free", "out_of_memory"),
        ),
        _START,
        Column("device_type", _TEXT, "Kind of device, in torch's words: cpu, cuda, hip, xpu, ..."),
        Column("device", _INT, "Device ordinal; null for the CPU"),
        Column("bytes", _INT, "Size of the block; negative where it was given back", "bytes"),
        Column("address", _INT, "Address of the block; null before torch 1.13"),
        Column("total_allocated", _INT, "Bytes the allocator has given out, after it", "bytes"),
        Column("total_reserved", _INT, "Bytes it holds of the device, after it", "bytes"),
        Column("running_bytes", _INT, "Sum of bytes on the device since the recording", "bytes"),
        Column(
            "lifetime_us",
            _FLOAT,
            "Of an allocation, until the block was given back; null where that was not recorded",
            "us",
        ),
        Column("tid", _TEXT, "Thread"),
        Column("op", _TEXT, "Innermost op around it; null for none", needs=Need.OPS),
        Column("op_chain", _TEXT, "Ops around it, root to leaf, joined by ' > '", needs=Need.OPS),
        Column("root_op", _TEXT, "Outermost op around it", needs=Need.OPS),
        _SOURCE,
        _REGION,
        _FORWARD,
        _STEP,
        _PHASE,
    ),
    needs=Need.MEMORY,
)

_UNIT = (
    Column("index", _INT, "Position; of a step, the number after ProfilerStep#"),
    _START,
    Column("cpu_us", _FLOAT, "Duration on the CPU", "us"),
    Column("period_us", _FLOAT, "To the start of the next one of the process", "us"),
    *_GPU_AMOUNTS,
    Column("gpu_span_us", _FLOAT, "First start to last end of its GPU work", "us"),
    Column("launches", _INT, "Kernel and graph launches in it"),
    Column("syncs", _INT, "Synchronising calls in it"),
    Column("op_self_us", _FLOAT, "CPU self time of all ops in it", "us"),
)
FORWARDS = Table("forwards", "One forward, the unit of most rules", _UNIT)
STEPS = Table(
    "steps",
    "One ProfilerStep",
    (
        *_UNIT,
        Column("pid", _TEXT, "Process whose step it is"),
        Column(
            "first",
            _FLAG,
            "The first of its process or of a recording, with its warm-up effects",
        ),
    ),
    needs=Need.STEPS,
)
BACKENDS = (
    "math", "efficient", "flash", "cudnn", "overrideable", "flash_attn", "xformers", "flex",
    "other",
)  # fmt: skip
"""Implementations of attention; ``flash_attn`` is the package, ``flash`` is torch's own."""

CALLS = Table(
    "calls",
    "One forward call of an attention op, the outermost of its thread",
    (
        *_UNIT,
        Column("name", _TEXT, "Name of the op"),
        Column(
            "backend",
            _TEXT,
            "What computed it, from the ops inside it; null where none tells",
            values=BACKENDS,
        ),
        Column("shapes", _TEXT, "Shapes of its query, key and value, as JSON", needs=Need.SHAPES),
        Column("dtype", _TEXT, "dtype of its inputs", needs=Need.SHAPES, values=DTYPES),
        Column(
            "causal",
            _FLAG,
            "It was asked for a causal mask; a mask given as a tensor does not count; recorded"
            " since torch 2.1",
            needs=Need.SHAPES,
        ),
        Column(
            "tflops",
            _FLOAT,
            "Both matrix products of the forward, half of them if causal, over gpu_busy_us; null"
            " where their size is not known",
            "TFLOP/s",
            Need.GPU,
        ),
        Column(
            "implementation",
            _TEXT,
            "What computed it, from its kernels' names: flash2, flash3, efficient, cudnn, aotriton,"
            " ..., unfused for products and a softmax of their own; several joined by |; null where"
            " none tells",
            needs=Need.GPU,
        ),
        Column(
            "peak_share",
            _FLOAT,
            "tflops / the device's published dense peak for dtype; null where none is known",
            needs=Need.GPU,
        ),
        Column(
            "flash_obstacle",
            _TEXT,
            "Of a call that torch gave to math or efficient: recorded inputs that its flash"
            " attention does not take (dtype, mask, head_size, causal, compute_capability, dropout,"
            " dimensions, heads, empty, layout, requires_grad), joined by |; null where the trace"
            " shows none",
            needs=Need.SHAPES,
        ),
        Column("op_chain", _TEXT, "Ops from the root to this one, joined by ' > '"),
        _SOURCE,
        _REGION,
        _FORWARD,
        _STEP,
    ),
    needs=Need.CALLS,
)

TRACE = Table(
    "trace",
    "The whole trace, one row",
    (
        Column("device_name", _TEXT, "Name of the device that did the most work"),
        Column(
            "compute_capability", _FLOAT, "Of that device, e.g. 8.0", needs=Need.DEVICE_PROPERTIES
        ),
        Column("sm_count", _INT, "Streaming multiprocessors (compute units) of that device"),
        Column("vendor", _TEXT, "Of the GPU", values=("nvidia", "amd", "intel", "other")),
        Column("variant", _TEXT, "Attention variant that capture recorded", needs=Need.CAPTURE),
        Column(
            "phase",
            _TEXT,
            "What capture ran: forward, forward and backward, or a training step",
            needs=Need.CAPTURE,
            values=("forward", "backward", "step"),
        ),
        Column("torch_version", _TEXT, "torch that recorded it, by capture", needs=Need.CAPTURE),
        Column("batch", _INT, "Batch size of the captured workload", needs=Need.CAPTURE),
        Column("heads", _INT, "Query heads of the captured workload", needs=Need.CAPTURE),
        Column("kv_heads", _INT, "Key and value heads of it", needs=Need.CAPTURE),
        Column("seq", _INT, "Queries of it", needs=Need.CAPTURE),
        Column("seq_kv", _INT, "Keys of it", needs=Need.CAPTURE),
        Column("head_dim", _INT, "Features of a head of it", needs=Need.CAPTURE),
        Column("causal", _FLAG, "A query of it sees no later key", needs=Need.CAPTURE),
        Column(
            "capture_status",
            _TEXT,
            "How capture.json says the capture went",
            needs=Need.CAPTURE_JSON,
            values=("captured", "incomplete", "wrong", "failed"),
        ),
        Column(
            "capture_reason",
            _TEXT,
            "Why capture.json says that it is not captured",
            needs=Need.CAPTURE_JSON,
        ),
        Column(
            "latency_us",
            _FLOAT,
            "Median time of one call with the profiler off, by capture.json",
            "us",
            Need.CAPTURE_JSON,
        ),
        Column(
            "peak_bytes",
            _INT,
            "The most memory allocated during one call, by capture.json",
            "bytes",
            Need.CAPTURE_JSON,
        ),
        Column(
            "numerics_ok",
            _FLAG,
            "The results agreed with a reference in high precision, by capture.json",
            needs=Need.CAPTURE_JSON,
        ),
        Column("dtype", _TEXT, "Commonest floating dtype of op inputs", needs=Need.SHAPES),
        Column("world_size", _INT, "Ranks of the job"),
        Column("rank", _INT, "Rank of this process"),
        Column("has_gpu", _FLAG, "GPU work was recorded"),
        Column("has_shapes", _FLAG, "Input shapes and dtypes were recorded"),
        Column("has_stacks", _FLAG, "Python stacks were recorded"),
        Column("has_memory", _FLAG, "Memory events were recorded"),
        Column("gpu_ops", _INT, "Kernels, copies and sets recorded"),
        Column("linked_share", _FLOAT, "Share of the GPU ops whose launch is in the file"),
        Column("unlinked_gpu_ops", _INT, "GPU ops whose launch is not in the file"),
        Column("early_gpu_ops", _INT, "Of these: they started before the first launch in the file"),
        Column("unlinked_gpu_us", _FLOAT, "GPU time of the unlinked, summed", "us"),
        Column("launches", _INT, "Kernel and graph launches recorded"),
        Column("lost_launches", _INT, "Of these: launches whose GPU work is not in the file"),
        Column("half_kernels", _INT, "Kernels whose name says that they multiply bf16 or fp16"),
        Column("steps", _INT, "ProfilerSteps recorded"),
        Column("forward_is", _TEXT, "What a forward is: an annotation, ProfilerStep or trace"),
        Column("forwards", _INT, "Forwards recorded"),
        Column(
            "cpu_us",
            _FLOAT,
            "From the first event to the last end; unknown without ops and API calls",
            "us",
        ),
        Column("gpu_busy_us", _FLOAT, "GPU busy time: union on each device, added up", "us"),
        Column(
            "gpu_span_us",
            _FLOAT,
            "First start to last end on each device, added up, without what `analyze trim` left out"
            " between",
            "us",
        ),
        Column(
            "loading_before_us",
            _FLOAT,
            "Loading of data before the first GPU work; null without GPU work, and where it comes"
            " first",
            "us",
        ),
        Column(
            "launch_median_us", _FLOAT, "Median duration of the launch calls", "us", Need.LAUNCHES
        ),
        Column("op_self_us", _FLOAT, "CPU self time of all ops", "us"),
        Column("overhead_us", _FLOAT, "The profiler's own recorded overhead", "us"),
        Column(
            "truncated",
            _FLAG,
            "The file, or one it was copied from, ends before its event list does",
        ),
        Column(
            "events_lost",
            _INT,
            "Events of the file, and of those it was copied from, that could not be read",
        ),
        Column("synthetic", _FLAG, "The file says that it is made up, not recorded"),
    ),
)


def _view(name: str, meaning: str, base: Table, condition: pl.Expr) -> Table:
    return Table(name, meaning, base.columns, base.name, condition, base.needs)


_ALL = (
    GPU_OPS,
    _view("kernels", "The kernels of gpu_ops", GPU_OPS, pl.col("kind") == "kernel"),
    _view("copies", "The memory copies of gpu_ops", GPU_OPS, pl.col("kind") == "memcpy"),
    OPS,
    API_CALLS,
    _view("launches", "The launches of api_calls", API_CALLS, pl.col("is_launch")),
    _view(
        "syncs",
        "The synchronising calls of api_calls, without the profiler's own",
        API_CALLS,
        pl.col("is_sync") & ~pl.col("profiler_own"),
    ),
    GAPS,
    MEMORY,
    REGIONS,
    FORWARDS,
    STEPS,
    CALLS,
    TRACE,
)

TABLES: Mapping[str, Table] = {table.name: table for table in _ALL}
"""Every table and view by name."""
