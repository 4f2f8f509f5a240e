"""Write the six synthetic GPU sample traces.

Nothing here was measured. Each file is built from the numbers published for six ways to compute
attention on an A100-SXM4-80GB, put into the layout that a current PyTorch profiler gives a trace.
Everything the publication does not state is invented; `README.md` lists it. Remake the files with

    python sample_traces/make_synthetic.py [--out DIRECTORY]

The result depends on nothing but this file.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import orjson

JsonObject: TypeAlias = dict[str, object]

SOURCE = (
    "invented trace; reproduces the figures published in 'Profiling in PyTorch (Part 3)' for an "
    "A100-SXM4-80GB (bf16, batch 8, heads 16, seq 1024, head_dim 64, causal, no grad)"
)

# --- the published problem -----------------------------------------------------------------------

BATCH, HEADS, SEQ, HEAD_DIM = 8, 16, 1024, 64
SCORE_BYTES = BATCH * HEADS * SEQ * SEQ * 2
STEPS = (2, 3, 4)

# --- device, process and clock (identifiers are invented) ----------------------------------------

SM_COUNT = 108
WARP_SIZE = 32
MAX_THREADS_PER_SM = 2048
MAX_BLOCKS_PER_SM = 32
REGISTERS_PER_SM = 65536
SHARED_PER_SM = 167936
DEFAULT_SHARED_PER_BLOCK = 49152
SHARED_RESERVED_PER_BLOCK = 1024  # what the driver keeps of every block from CC 8.0 on

DEVICE: JsonObject = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-80GB",
    "totalGlobalMem": 85174583296,
    "computeMajor": 8,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": MAX_THREADS_PER_SM,
    "regsPerBlock": 65536,
    "warpSize": WARP_SIZE,
    "sharedMemPerBlock": DEFAULT_SHARED_PER_BLOCK,
    "numSms": SM_COUNT,
    "regsPerMultiprocessor": REGISTERS_PER_SM,
    "sharedMemPerBlockOptin": 166912,
    "sharedMemPerMultiprocessor": SHARED_PER_SM,
}

PROCESS = 21507
STREAM = 7
DECLARED_GPUS = 16
BASE_TIME_NS = 1782967788000000000
START_NS = 3_456_789_012_345
FIRST_EXTERNAL_ID = 1025
FIRST_CORRELATION = 8198

STEP_OVERHEAD_US = 260.0  # host time of a step outside its annotation
LAUNCH_LATENCY_NS = 7_200  # from the start of a launch call to the earliest start on the device
STREAM_GAP_NS = 1_100  # between two operations that follow each other on the stream

# --- tensors and operator arguments --------------------------------------------------------------

BF16, FLOAT, BOOL, DOUBLE = "c10::BFloat16", "float", "bool", "double"
DTYPE_CODE = {BF16: 15, FLOAT: 6, BOOL: 11, "long int": 4}


@dataclass(frozen=True)
class Tensor:
    """A tensor argument: dtype, shape and strides."""

    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def code(self) -> int:
        """The number that stands for the dtype in recorded arguments."""
        return DTYPE_CODE[self.dtype]

    def swapped(self, first: int, second: int) -> Tensor:
        """Return the view with two dimensions exchanged."""
        dims, strides = list(self.dims), list(self.strides)
        dims[first], dims[second] = dims[second], dims[first]
        strides[first], strides[second] = strides[second], strides[first]
        return Tensor(self.dtype, tuple(dims), tuple(strides))

    def cast(self, dtype: str) -> Tensor:
        """Return the same layout with another dtype."""
        return Tensor(dtype, self.dims, self.strides)


@dataclass(frozen=True)
class Value:
    """An argument that is not a tensor, as the profiler prints it."""

    kind: str
    text: str


Argument: TypeAlias = Tensor | Value

NONE = Value("", "")


def scalar(value: object) -> Value:
    """Return a number, flag or dtype code as an argument."""
    return Value("Scalar", str(value))


def numbers(values: tuple[int, ...]) -> Value:
    """Return a list of integers as an argument."""
    return Value("ScalarList", str(list(values)))


def dense(dtype: str, *dims: int) -> Tensor:
    """Return a contiguous tensor."""
    strides = [1] * len(dims)
    for index in range(len(dims) - 2, -1, -1):
        strides[index] = strides[index + 1] * dims[index + 1]
    return Tensor(dtype, dims, tuple(strides))


QKV = dense(BF16, BATCH, HEADS, SEQ, HEAD_DIM)
SCORES = dense(BF16, BATCH, HEADS, SEQ, SEQ)
MASK = dense(BOOL, SEQ, SEQ)
FALSE, TRUE = scalar("False"), scalar("True")

# --- what runs on the device ---------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """One kernel launch: its name, mean duration and launch configuration."""

    name: str
    us: float
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared: int = 0

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return math.prod(self.block)


@dataclass(frozen=True)
class Copy:
    """One device-to-device copy."""

    us: float
    size: int


@dataclass(frozen=True)
class Call:
    """One runtime or driver call, and what it starts on the device, if anything."""

    name: str
    category: str
    cbid: int
    us: float
    starts: Kernel | Copy | None = None


@dataclass(frozen=True)
class Op:
    """One operator: arguments, own host time, and the operators and calls inside it."""

    name: str
    arguments: tuple[Argument, ...]
    self_us: float
    inside: tuple[Op | Call, ...] = ()


@dataclass(frozen=True)
class Variant:
    """One sample: how attention was computed, and the means its file must show."""

    name: str
    annotation: str
    gpu_ops: int
    gpu_us: float
    cpu_us: float
    ops: tuple[Op, ...]


def launch(kernel: Kernel) -> Call:
    """Return the usual runtime launch."""
    return Call("cudaLaunchKernel", "cuda_runtime", 211, 5.9, kernel)


def float32(value: float) -> float:
    """Round to single precision, the profiler's own precision for these arguments."""
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return single


def resident_blocks(kernel: Kernel) -> int:
    """Return how many blocks of a kernel fit on one SM under the default shared-memory cap.

    The profiler never raises that cap, so a block above 48 KiB counts as not fitting at all.
    """
    warps = math.ceil(kernel.threads / WARP_SIZE)
    if kernel.shared > DEFAULT_SHARED_PER_BLOCK:
        return 0
    by_warps = MAX_THREADS_PER_SM // WARP_SIZE // warps
    registers_per_warp = math.ceil(kernel.registers * WARP_SIZE / 256) * 256
    by_registers = REGISTERS_PER_SM // 4 // registers_per_warp * 4 // warps
    allocated = math.ceil((kernel.shared + SHARED_RESERVED_PER_BLOCK) / 128) * 128
    return min(by_warps, MAX_BLOCKS_PER_SM, by_registers, SHARED_PER_SM // allocated)


def reported_occupancy(kernel: Kernel) -> int:
    """Return the percentage the profiler would print, rounded half up."""
    resident = min(float(resident_blocks(kernel)), kernel.blocks / SM_COUNT)
    return math.floor(resident * kernel.threads / MAX_THREADS_PER_SM * 100 + 0.5)


# --- kernels -------------------------------------------------------------------------------------


def vectorized(functor: str, arrays: int) -> str:
    """Name an elementwise kernel over contiguous tensors."""
    rest = f"{functor}, std::array<char*, {arrays}ul>"
    return f"void at::native::vectorized_elementwise_kernel<4, {rest} >(int, {rest})"


def strided(unroll: int, functor: str) -> str:
    """Name an elementwise kernel that broadcasts or walks strides."""
    inner = (
        f"at::native::gpu_kernel_impl_nocast<{functor} >"
        f"(at::TensorIteratorBase&, {functor} const&)::{{lambda(int)#1}}"
    )
    return f"void at::native::elementwise_kernel<128, {unroll}, {inner}>(int, {inner})"


def elementwise(name: str, us: float, elements: int, registers: int) -> Kernel:
    """Return an elementwise kernel in which a block of 128 threads handles 512 elements."""
    return Kernel(name, us, (max(1, elements // 512), 1, 1), (128, 1, 1), registers)


def warp_softmax(dtype: str, us: float) -> Kernel:
    """Return the softmax that gives each row of 1024 elements to one warp."""
    name = (
        f"void (anonymous namespace)::softmax_warp_forward<{dtype}, {dtype}, float, 10, false, "
        f"false>({dtype}*, {dtype} const*, int, int, int, bool const*, int, bool)"
    )
    return Kernel(name, us, (BATCH * HEADS * SEQ // 4, 1, 1), (32, 4, 1), 55)


def lambda_of(function: str, overload: int, signature: str) -> str:
    """Name the device lambda of an anonymous ATen kernel function."""
    return (
        f"at::native::(anonymous namespace)::{function}::{{lambda()#1}}::operator()() const::"
        f"{{lambda()#{overload}}}::operator()() const::{{lambda({signature})#1}}"
    )


TILES = BATCH * HEADS
QKV_ELEMENTS = math.prod(QKV.dims)
SCORE_ELEMENTS = math.prod(SCORES.dims)
MASK_ELEMENTS = SEQ * SEQ

SCALE_BF16 = vectorized(
    f"at::native::AUnaryFunctor<{BF16}, {BF16}, {BF16}, "
    "at::native::binary_internal::MulFunctor<float> >",
    2,
)
SCALE_FLOAT = vectorized(
    "at::native::AUnaryFunctor<float, float, float, "
    "at::native::binary_internal::MulFunctor<float> >",
    2,
)
TO_FLOAT = vectorized(
    "at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)"
    f"::{{lambda({BF16})#1}}",
    2,
)
TO_BF16 = vectorized(
    "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2
)
MASKED_FILL = strided(
    4,
    lambda_of("masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)", 12, f"{BF16}, bool"),
)
WHERE = strided(2, lambda_of("where_kernel_impl(at::TensorIterator&)", 7, "bool, float, float"))
IS_NEG_INF = vectorized(lambda_of("isneginf_kernel_impl(at::TensorIteratorBase&)", 2, "float"), 2)
ALL_REDUCTION = (
    "at::native::ReduceOp<bool, at::native::func_wrapper_t<bool, "
    "at::native::and_kernel_cuda(at::TensorIterator&)::{lambda()#1}::operator()() const::"
    "{lambda()#12}::operator()() const::{lambda(bool, bool)#1}>, unsigned int, bool, 4>"
)
ALL = f"void at::native::reduce_kernel<512, 1, {ALL_REDUCTION} >({ALL_REDUCTION})"
TRIL = (
    "void at::native::triu_tril_kernel<bool, int, false, 8, false>("
    "at::cuda::detail::TensorInfo<bool, int>, at::cuda::detail::TensorInfo<bool const, int>, "
    "long, long, int)"
)
EFFICIENT = (
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<"
    "cutlass::bfloat16_t, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)"
)
FLASH = (
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, "
    "false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 128, 128, 4, "
    "cutlass::bfloat16_t> >, false, true, false, false, true, true, false, false>("
    "pytorch_flash::Flash_fwd_params)"
)
CUDNN = (
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64x64_4x1x1_"
    "cga1x1x1_kernel0_0"
)

QK_GEMM = Kernel(
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    262.5,
    (8, 8, TILES),
    (256, 1, 1),
    122,
    81920,
)
PV_GEMM = Kernel(
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_nn",
    322.0,
    (8, 1, TILES),
    (128, 1, 1),
    166,
    73728,
)
QK_SGEMM = Kernel("ampere_sgemm_128x64_tn", 2030.4, (8, 16, TILES), (128, 1, 1), 122, 12800)
PV_SGEMM = Kernel("ampere_sgemm_128x64_nn", 1856.0, (8, 1, TILES), (128, 1, 1), 122, 12544)


def fill(dtype: str, elements: int, us: float) -> Kernel:
    """Return the kernel behind `fill_`."""
    return elementwise(
        vectorized(f"at::native::FillFunctor<{dtype}>", 1), us, elements, registers=16
    )


# --- operators -----------------------------------------------------------------------------------

# Own host time of each operator in microseconds, launch calls included.
SELF_US = {
    "aten::_flash_attention_forward": 11.8,
    "aten::_efficient_attention_forward": 11.8,
    "aten::_reshape_alias": 2.2,
    "aten::_safe_softmax": 6.5,
    "aten::_scaled_dot_product_attention_math": 34.0,
    "aten::_scaled_dot_product_efficient_attention": 10.2,
    "aten::_scaled_dot_product_flash_attention": 10.5,
    "aten::_softmax": 11.5,
    "aten::_to_copy": 4.1,
    "aten::_unsafe_view": 3.2,
    "aten::add_": 11.6,
    "aten::all": 13.4,
    "aten::as_strided": 2.2,
    "aten::bmm": 18.5,
    "aten::clone": 4.0,
    "aten::copy_": 11.0,
    "aten::empty": 5.8,
    "aten::empty_like": 4.2,
    "aten::empty_strided": 5.4,
    "aten::expand": 3.3,
    "aten::fill_": 9.2,
    "aten::isneginf": 11.9,
    "aten::masked_fill": 5.2,
    "aten::masked_fill_": 12.8,
    "aten::matmul": 7.6,
    "aten::mul": 12.1,
    "aten::ones": 3.6,
    "aten::reshape": 2.7,
    "aten::scalar_tensor": 3.9,
    "aten::scaled_dot_product_attention": 12.0,
    "aten::softmax": 3.4,
    "aten::to": 2.6,
    "aten::transpose": 4.6,
    "aten::tril": 11.7,
    "aten::view": 2.1,
    "aten::where": 12.3,
}


def op(name: str, arguments: tuple[Argument, ...], *inside: Op | Call) -> Op:
    """Return an operator with its usual own time."""
    return Op(f"aten::{name}", arguments, SELF_US[f"aten::{name}"], inside)


def wrapper(name: str, arguments: tuple[Argument, ...], *inside: Op | Call) -> Op:
    """Return an operator that only forwards to another one of the same or a similar name."""
    return Op(f"aten::{name}", arguments, 3.5, inside)


def as_strided(tensor: Tensor, view: Tensor) -> Op:
    """Return the view change at the bottom of most shape operators."""
    return op("as_strided", (tensor, numbers(view.dims), numbers(view.strides), NONE))


def transpose(tensor: Tensor, first: int, second: int) -> Op:
    """Return a transposition, which moves no data."""
    view = tensor.swapped(first, second)
    return op("transpose", (tensor, scalar(first), scalar(second)), as_strided(tensor, view))


def expand(tensor: Tensor, view: Tensor) -> Op:
    """Return a broadcast, which moves no data."""
    return op("expand", (tensor, numbers(view.dims), FALSE), as_strided(tensor, view))


def empty(dims: tuple[int, ...], code: int) -> Op:
    """Return an allocation."""
    return op("empty", (numbers(dims), scalar(code), scalar(0), NONE, NONE, NONE))


def empty_strided(tensor: Tensor) -> Op:
    """Return an allocation with given strides."""
    layout = (numbers(tensor.dims), numbers(tensor.strides), scalar(tensor.code))
    return op("empty_strided", (*layout, scalar(0), NONE, FALSE))


def cast(tensor: Tensor, dtype: str, name: str, us: float) -> Op:
    """Return a conversion to another dtype."""
    target = tensor.cast(dtype)
    kernel = elementwise(name, us, math.prod(tensor.dims), registers=18)
    copied = op("copy_", (target, tensor, FALSE), launch(kernel))
    converted = op(
        "_to_copy",
        (tensor, scalar(target.code), NONE, NONE, NONE, FALSE, NONE),
        empty_strided(target),
        copied,
    )
    return op("to", (tensor, scalar(target.code), FALSE, FALSE, NONE), converted)


def flattened(tensor: Tensor) -> Tensor:
    """Return a four-dimensional tensor as the three-dimensional batch that `bmm` takes."""
    _, _, rows, columns = tensor.dims
    return Tensor(tensor.dtype, (TILES, rows, columns), tensor.strides[1:])


def reshape(tensor: Tensor) -> Op:
    """Return the flattening of batch and heads, which moves no data."""
    flat = flattened(tensor)
    if tensor.strides[-1] == 1:
        inner = op("view", (tensor, numbers(flat.dims)))
    else:
        inner = op("_reshape_alias", (tensor, numbers(flat.dims), numbers(flat.strides)))
    return op("reshape", (tensor, numbers(flat.dims)), inner)


def matmul(left: Tensor, right: Tensor, kernel: Kernel) -> Op:
    """Return a batched matrix product."""
    flat_left, flat_right = flattened(left), flattened(right)
    result = dense(left.dtype, TILES, flat_left.dims[1], flat_right.dims[2])
    shape = (*left.dims[:3], right.dims[3])
    calls = [launch(kernel)]
    if kernel.shared > DEFAULT_SHARED_PER_BLOCK:  # more than the default must be asked for
        calls.insert(0, Call("cudaFuncSetAttribute", "cuda_runtime", 273, 0.9))
    return op(
        "matmul",
        (left, right),
        expand(left, left),
        reshape(left),
        expand(right, right),
        reshape(right),
        op("bmm", (flat_left, flat_right), *calls),
        op("_unsafe_view", (result, numbers(shape))),
    )


def softmax(tensor: Tensor, kernel: Kernel) -> Op:
    """Return a softmax over the last dimension."""
    inner = op("_softmax", (tensor, scalar(-1), FALSE), launch(kernel))
    return op("softmax", (tensor, scalar(-1), NONE), inner)


def masked_fill_(kernel: Kernel) -> Op:
    """Return the in-place fill of the masked scores."""
    wide = Tensor(BOOL, SCORES.dims, (0, 0, SEQ, 1))
    return op("masked_fill_", (SCORES, MASK, scalar("-inf")), expand(MASK, wide), launch(kernel))


def masked_fill(kernel: Kernel, copy: Copy) -> Op:
    """Return the out-of-place fill, which first copies the whole score matrix."""
    wide = Tensor(BOOL, SCORES.dims, (0, 0, SEQ, 1))
    allocated = op("empty", (numbers(SCORES.dims), scalar(15), scalar(0), NONE, NONE, scalar(0)))
    clone = op(
        "clone",
        (SCORES, scalar(0)),
        op(
            "empty_like",
            (SCORES, scalar(15), scalar(0), NONE, NONE, scalar(0)),
            allocated,
        ),
        op(
            "copy_",
            (SCORES, SCORES, FALSE),
            Call("cudaMemcpyAsync", "cuda_runtime", 41, 6.8, copy),
        ),
    )
    return op(
        "masked_fill",
        (SCORES, MASK, scalar("-inf")),
        expand(SCORES, SCORES),
        expand(MASK, wide),
        clone,
        masked_fill_(kernel),
    )


# --- the six ways to compute attention -----------------------------------------------------------

SDPA_ARGUMENTS: tuple[Argument, ...] = (QKV, QKV, QKV, NONE, scalar("0."), TRUE, NONE, FALSE)


def naive_ops(*, in_place: bool) -> tuple[Op, ...]:
    """Return attention built by hand from five operators."""
    keys = QKV.swapped(-2, -1)
    scale = elementwise(SCALE_BF16, 341.0, SCORE_ELEMENTS, registers=22)
    fill_masked = elementwise(MASKED_FILL, 627.5, SCORE_ELEMENTS, registers=20)
    mask = masked_fill_(fill_masked) if in_place else masked_fill(fill_masked, NAIVE_COPY)
    return (
        transpose(QKV, -2, -1),
        matmul(QKV, keys, QK_GEMM),
        op("mul", (SCORES, dense(DOUBLE)), launch(scale)),
        mask,
        softmax(SCORES, warp_softmax(BF16, 402.0)),
        matmul(SCORES, QKV, PV_GEMM),
    )


def scaled_float(tensor: Tensor, us: float) -> Op:
    """Return the multiplication of a float tensor by the square root of the scale."""
    kernel = elementwise(SCALE_FLOAT, us, QKV_ELEMENTS, registers=22)
    inner = op("mul", (tensor, dense(DOUBLE)), launch(kernel))
    return wrapper("mul", (tensor, scalar("0.35355339059327379")), inner)


def scalar_tensor(value: str, layout: Value) -> Op:
    """Return a float scalar made on the device."""
    fill_one = op("fill_", (dense(FLOAT), scalar(value)), launch(fill("float", 1, 1.6)))
    return op(
        "scalar_tensor", (scalar(value), scalar(6), layout, NONE, NONE), empty((), 6), fill_one
    )


def causal_mask() -> tuple[Op, ...]:
    """Return the operators that rebuild the causal mask on every call."""
    ones = op(
        "ones",
        (numbers(MASK.dims), scalar(11), scalar(0), NONE, NONE),
        empty(MASK.dims, 11),
        op("fill_", (MASK, scalar("1.")), launch(fill("bool", MASK_ELEMENTS, 2.2))),
    )
    tril = op(
        "tril",
        (MASK, scalar(0)),
        launch(Kernel(TRIL, 4.6, (MASK_ELEMENTS // 1024, 1, 1), (128, 1, 1), 32)),
    )
    select = Kernel(WHERE, 6.0, (MASK_ELEMENTS // 256, 1, 1), (128, 1, 1), 24)
    number = dense(FLOAT)
    where = wrapper(
        "where",
        (MASK, scalar("0."), number),
        scalar_tensor("0.", scalar(0)),
        op("to", (number, scalar(6), FALSE, FALSE, NONE)),
        op("where", (MASK, number, number), empty((0,), 6), launch(select)),
    )
    return ones, tril, scalar_tensor("-inf", NONE), where


def safe_softmax(scores: Tensor) -> Op:
    """Return the softmax that replaces fully masked rows by zeros."""
    flags = scores.cast(BOOL)
    rows = dense(BOOL, BATCH, HEADS, SEQ, 1)
    reduce_rows = Kernel(ALL, 180.0, (BATCH * HEADS * SEQ // 16, 1, 1), (32, 16, 1), 32, 16)
    select = Kernel(WHERE, 720.0, (SCORE_ELEMENTS // 256, 1, 1), (128, 1, 1), 24)
    test = elementwise(IS_NEG_INF, 400.0, SCORE_ELEMENTS, registers=20)
    return op(
        "_safe_softmax",
        (scores, scalar(-1), NONE),
        softmax(scores, warp_softmax("float", 640.0)),
        op("isneginf", (scores,), launch(test)),
        op("all", (flags, scalar(-1), TRUE), launch(reduce_rows)),
        scalar_tensor("0.", NONE),
        op("where", (rows, dense(FLOAT), scores), launch(select)),
    )


def math_ops() -> tuple[Op, ...]:
    """Return the math backend: bf16 in, FP32 inside, bf16 out."""
    wide, scores = QKV.cast(FLOAT), SCORES.cast(FLOAT)
    keys = wide.swapped(-2, -1)
    mask = dense(FLOAT, SEQ, SEQ)
    add = Kernel(
        strided(2, "at::native::CUDAFunctor_add<float>"),
        640.0,
        (SCORE_ELEMENTS // 256, 1, 1),
        (128, 1, 1),
        20,
    )
    inner = op(
        "_scaled_dot_product_attention_math",
        (QKV, QKV, QKV, NONE, scalar("0."), TRUE, NONE, NONE, FALSE),
        *(cast(QKV, FLOAT, TO_FLOAT, 33.0) for _ in range(3)),
        scaled_float(wide, 43.0),
        *causal_mask(),
        transpose(wide, -2, -1),
        scaled_float(keys, 43.0),
        matmul(wide, keys, QK_SGEMM),
        op("add_", (scores, mask, scalar(1)), launch(add)),
        safe_softmax(scores),
        cast(scores, BF16, TO_BF16, 540.0),
        matmul(scores, wide, PV_SGEMM),
        cast(wide, BF16, TO_BF16, 30.0),
    )
    return (op("scaled_dot_product_attention", SDPA_ARGUMENTS, inner),)


def fused(name: str, arguments: tuple[Argument, ...], inner: Op) -> tuple[Op, ...]:
    """Return a fused backend that works on (batch, seq, heads, dim) views of its inputs."""
    outer = op(
        name,
        arguments,
        *(transpose(QKV, 1, 2) for _ in range(3)),
        inner,
        transpose(dense(BF16, BATCH, SEQ, HEADS, HEAD_DIM), 1, 2),
    )
    return (op("scaled_dot_product_attention", SDPA_ARGUMENTS, outer),)


def efficient_ops() -> tuple[Op, ...]:
    """Return the memory-efficient backend."""
    view = QKV.swapped(1, 2)
    kernel = Kernel(EFFICIENT, 277.9, (SEQ // 64, HEADS, BATCH), (32, 4, 1), 168, 20480)
    inner = op(
        "_efficient_attention_forward",
        (view, view, view, *(NONE,) * 5, scalar("0."), scalar(1), FALSE, NONE, NONE, NONE),
        Call("cudaStreamIsCapturing", "cuda_runtime", 317, 0.8),
        empty((BATCH, SEQ, HEADS, HEAD_DIM), 15),
        empty((BATCH, HEADS, 0), 6),
        empty((), 4),
        empty((), 4),
        launch(kernel),
    )
    arguments = (QKV, QKV, QKV, NONE, FALSE, scalar("0."), TRUE, NONE)
    return fused("_scaled_dot_product_efficient_attention", arguments, inner)


def flash_ops() -> tuple[Op, ...]:
    """Return the flash backend."""
    view = QKV.swapped(1, 2)
    kernel = Kernel(FLASH, 146.8, (SEQ // 128, BATCH, HEADS), (128, 1, 1), 255, 49152)
    dropout, scale = scalar("0."), scalar("0.125")
    inner = op(
        "_flash_attention_forward",
        (
            *(view, view, view, NONE, NONE, scalar(SEQ), scalar(SEQ)),
            *(dropout, TRUE, FALSE, scale, *(NONE,) * 6),
        ),
        op("empty_like", (view, NONE, NONE, NONE, NONE, NONE), empty_strided(view)),
        empty((BATCH, HEADS, SEQ), 6),
        Call("cudaStreamIsCapturing", "cuda_runtime", 317, 0.8),
        empty((), 4),
        empty((), 4),
        Call("cudaFuncSetAttribute", "cuda_runtime", 273, 0.9),
        launch(kernel),
        empty((0,), 15),
    )
    arguments = (QKV, QKV, QKV, dropout, TRUE, FALSE, scale)
    return fused("_scaled_dot_product_flash_attention", arguments, inner)


def cudnn_ops() -> tuple[Op, ...]:
    """Return the cuDNN backend: no transposition, and one expensive operator on the host."""
    kernel = Kernel(CUDNN, 186.3, (SEQ // 128, HEADS, BATCH), (256, 1, 1), 240, 81920)
    inner = Op(
        "aten::_scaled_dot_product_cudnn_attention",
        (QKV, QKV, QKV, NONE, FALSE, scalar("0."), TRUE, FALSE, NONE),
        CUDNN_PLAN_US,
        (
            empty_strided(QKV),
            empty((), 4),
            empty((), 4),
            Call("cuLaunchKernelEx", "cuda_driver", 652, 6.1, kernel),
            empty((0,), 15),
        ),
    )
    return (op("scaled_dot_product_attention", SDPA_ARGUMENTS, inner),)


NAIVE_COPY = Copy(366.0, SCORE_BYTES)
CUDNN_CPU_US = 214.0
CUDNN_PLAN_SHARE = 0.26  # of all host time in the file
CUDNN_PLAN_US = CUDNN_PLAN_SHARE * (CUDNN_CPU_US + STEP_OVERHEAD_US)
IN_PLACE_GPU_US = 1955.0

VARIANTS = (
    Variant(
        "synthetic-naive",
        "attn_fwd",
        6,
        IN_PLACE_GPU_US + NAIVE_COPY.us,
        235.0,
        naive_ops(in_place=False),
    ),
    Variant(
        "synthetic-naive-inplace",
        "attn_fwd",
        5,
        IN_PLACE_GPU_US,
        190.0,
        naive_ops(in_place=True),
    ),
    Variant("synthetic-sdpa-math", "sdpa_fwd", 20, 7239.0, 520.0, math_ops()),
    Variant("synthetic-sdpa-efficient", "sdpa_fwd", 1, 277.9, 117.0, efficient_ops()),
    Variant("synthetic-sdpa-flash", "sdpa_fwd", 1, 146.8, 138.0, flash_ops()),
    Variant("synthetic-sdpa-cudnn", "sdpa_fwd", 1, 186.3, CUDNN_CPU_US, cudnn_ops()),
)

# --- writing a trace -----------------------------------------------------------------------------


def nanoseconds(us: float) -> int:
    """Convert microseconds to whole nanoseconds."""
    return round(us * 1000)


def microseconds(ns: int) -> float:
    """Convert nanoseconds to microseconds with three decimals."""
    return ns / 1000


def total_us(item: Op | Call) -> float:
    """Return the mean host time of an operator with everything in it; calls count as its own."""
    if isinstance(item, Call):
        return 0.0
    return item.self_us + sum(total_us(inner) for inner in item.inside)


# Deviation of the first two steps from the mean, in thousandths; the third makes up for both.
DEVIATIONS = ((11, -8), (-6, 9), (14, -5), (4, -12), (-9, -3), (7, 5), (-4, 13), (16, -10))


def in_step(mean_ns: int, salt: int, step: int) -> int:
    """Return a duration for one of the three steps; their mean is exactly `mean_ns`."""
    first, second = (mean_ns * part // 1000 for part in DEVIATIONS[salt % len(DEVIATIONS)])
    return mean_ns + (first, second, -first - second)[step]


def event(category: str, name: str, row: tuple[int, int], span: tuple[int, int]) -> JsonObject:
    """Return a complete event without arguments; `span` is start and duration."""
    start, duration = span
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": row[0],
        "tid": row[1],
        "ts": microseconds(start),
        "dur": microseconds(duration),
    }


def flow(phase: str, correlation: int, row: tuple[int, int], start: int) -> JsonObject:
    """Return one end of the arrow from a call to the work it started."""
    arrow: JsonObject = {
        "ph": phase,
        "id": correlation,
        "pid": row[0],
        "tid": row[1],
        "ts": microseconds(start),
        "cat": "ac2g",
        "name": "ac2g",
    }
    if phase == "f":
        arrow["bp"] = "e"
    return arrow


def shape_arguments(arguments: tuple[Argument, ...]) -> JsonObject:
    """Return what the profiler records of an operator's arguments."""
    tensors = [item if isinstance(item, Tensor) else None for item in arguments]
    values = [item if isinstance(item, Value) else None for item in arguments]
    return {
        "Concrete Inputs": [value.text if value else "" for value in values],
        "Input type": [
            tensor.dtype if tensor else value.kind if value else ""
            for tensor, value in zip(tensors, values, strict=True)
        ],
        "Input Strides": [list(tensor.strides) if tensor else [] for tensor in tensors],
        "Input Dims": [list(tensor.dims) if tensor else [] for tensor in tensors],
    }


def kernel_arguments(kernel: Kernel) -> JsonObject:
    """Return the launch configuration as the profiler prints it."""
    blocks_per_sm = float32(kernel.blocks / SM_COUNT)
    warps_per_sm = float32(blocks_per_sm * (kernel.threads / WARP_SIZE))
    return {
        "registers per thread": kernel.registers,
        "shared memory": kernel.shared,
        "blocks per SM": round(blocks_per_sm, 6),
        "warps per SM": round(warps_per_sm, 6),
        "grid": list(kernel.grid),
        "block": list(kernel.block),
        "est. achieved occupancy %": reported_occupancy(kernel),
        "graph id": 0,
        "graph node id": 0,
    }


@dataclass
class Recorder:
    """Lays the operators of each step out on the clock and collects the events."""

    host: list[JsonObject] = field(default_factory=list)
    activity: list[JsonObject] = field(default_factory=list)
    annotations: list[JsonObject] = field(default_factory=list)
    step: int = 0
    salt: int = 0
    correlation: int = FIRST_CORRELATION
    device_free: int = 0
    device_span: list[int] = field(default_factory=list)

    def mean(self, us: float) -> int:
        """Return this step's duration for something that takes `us` on average."""
        self.salt += 1
        return in_step(nanoseconds(us), self.salt, self.step)

    def open(self, category: str, name: str, arguments: JsonObject) -> tuple[JsonObject, int]:
        """Append a host event whose time is still unknown, and return it with its id."""
        index = len(self.host)
        identifier = FIRST_EXTERNAL_ID + index
        opened = event(category, name, (PROCESS, PROCESS), (0, 0))
        opened["args"] = {
            "External id": identifier,
            "Record function id": 0,
            **arguments,
            "Ev Idx": index,
        }
        self.host.append(opened)
        return opened, identifier

    def run(self, item: Op, start: int) -> int:
        """Record an operator that starts at `start`, and return its end."""
        opened, identifier = self.open("cpu_op", item.name, shape_arguments(item.arguments))
        own = self.mean(item.self_us)
        calls = {
            index: self.mean(inner.us)
            for index, inner in enumerate(item.inside)
            if isinstance(inner, Call)
        }
        gap, rest = divmod(own - sum(calls.values()), len(item.inside) + 1)
        clock = start
        for index, inner in enumerate(item.inside):
            clock += gap
            if isinstance(inner, Call):
                self.call(inner, identifier, (clock, calls[index]))
                clock += calls[index]
            else:
                clock = self.run(inner, clock)
        end = clock + gap + rest
        opened["ts"], opened["dur"] = microseconds(start), microseconds(end - start)
        return end

    def next_correlation(self) -> int:
        """Return an unused correlation id; real ones have gaps too."""
        self.correlation += 9 + self.salt % 5
        return self.correlation

    def call(self, call: Call, owner: int, span: tuple[int, int]) -> None:
        """Record a runtime or driver call and whatever it starts."""
        correlation = self.next_correlation()
        row = (PROCESS, PROCESS)
        recorded = event(call.category, call.name, row, span)
        recorded["args"] = {"External id": owner, "cbid": call.cbid, "correlation": correlation}
        if call.starts is not None:
            self.device_work(call.starts, (owner, correlation), span[0])
        self.activity.append(recorded)
        self.activity.append(flow("s" if call.starts else "f", correlation, row, span[0]))

    def device_work(self, work: Kernel | Copy, ids: tuple[int, int], launched: int) -> None:
        """Record a kernel or copy behind everything already on the stream."""
        start = max(launched + LAUNCH_LATENCY_NS, self.device_free + STREAM_GAP_NS)
        duration = self.mean(work.us)
        self.device_free = start + duration
        self.device_span += [start, self.device_free]
        owner, correlation = ids
        place: JsonObject = {
            "device": 0,
            "context": 1,
            "stream": STREAM,
            "correlation": correlation,
        }
        arguments: JsonObject
        if isinstance(work, Kernel):
            recorded = event("kernel", work.name, (0, STREAM), (start, duration))
            arguments = {"External id": owner, "queued": 0, **place, **kernel_arguments(work)}
        else:
            name = "Memcpy DtoD (Device -> Device)"
            recorded = event("gpu_memcpy", name, (0, STREAM), (start, duration))
            arguments = {
                "External id": owner,
                **place,
                "bytes": work.size,
                "memory bandwidth (GB/s)": work.size / duration,
                "graph id": 0,
                "graph node id": 0,
            }
        recorded["args"] = arguments
        self.activity += [recorded, flow("f", correlation, (0, STREAM), start)]

    def annotate(self, variant: Variant, start: int) -> int:
        """Record one annotated forward, and return its end."""
        opened, identifier = self.open("user_annotation", variant.annotation, {})
        self.device_span = []
        own = self.mean(variant.cpu_us - sum(total_us(item) for item in variant.ops))
        gap, rest = divmod(own, len(variant.ops) + 1)
        clock = start
        for item in variant.ops:
            clock = self.run(item, clock + gap)
        end = clock + gap + rest
        opened["ts"], opened["dur"] = microseconds(start), microseconds(end - start)
        first, last = self.device_span[0], self.device_span[-1]
        projected = event(
            "gpu_user_annotation", variant.annotation, (0, STREAM), (first - 1, last - first + 2)
        )
        projected["args"] = {"External id": identifier}
        self.annotations.append(projected)
        return end

    def profiler_step(self, variant: Variant, number: int, start: int) -> int:
        """Record one profiler step with its single forward, and return its end."""
        opened, _ = self.open("user_annotation", f"ProfilerStep#{number}", {})
        own = self.mean(STEP_OVERHEAD_US)
        before = own // 3
        end = self.annotate(variant, start + before) + own - before
        opened["ts"], opened["dur"] = microseconds(start), microseconds(end - start)
        return end

    def synchronize(self, start: int) -> int:
        """Record the wait with which the profiler itself ends a recording."""
        correlation = self.next_correlation()
        row = (PROCESS, PROCESS)
        end = max(start + 5_900, self.device_free + 8_300)
        recorded = event("cuda_runtime", "cudaDeviceSynchronize", row, (start, end - start))
        recorded["args"] = {"cbid": 165, "correlation": correlation}
        self.activity += [recorded, flow("s", correlation, row, start)]
        return end


def metadata(name: str, pid: int, tid: int, arguments: JsonObject) -> JsonObject:
    """Return an event that names or sorts a process or thread."""
    return {
        "ph": "M",
        "name": name,
        "ts": microseconds(START_NS),
        "pid": pid,
        "tid": tid,
        "args": arguments,
    }


def row_names() -> list[JsonObject]:
    """Return the names of all processes and threads; GPUs are declared whether used or not."""
    processes = [(PROCESS, "CPU", PROCESS)]
    processes += [(gpu, f"GPU {gpu}", 5_000_000 + gpu) for gpu in range(DECLARED_GPUS)]
    threads = [(0, STREAM, f"stream {STREAM} ")]
    threads += [(PROCESS, PROCESS, f"thread {PROCESS} (python)")] * 2
    rows: list[JsonObject] = []
    for pid, label, order in processes:
        rows.append(metadata("process_name", pid, 0, {"name": "python"}))
        rows.append(metadata("process_labels", pid, 0, {"labels": label}))
        rows.append(metadata("process_sort_index", pid, 0, {"sort_index": order}))
    for pid, tid, label in threads:
        rows.append(metadata("thread_name", pid, tid, {"name": label}))
        rows.append(metadata("thread_sort_index", pid, tid, {"sort_index": tid}))
    return rows


def window(end: int) -> list[JsonObject]:
    """Return the events that describe the recorded window."""
    span = event("Trace", "PyTorch Profiler (0)", (0, 0), (START_NS, end - START_NS))
    span |= {"pid": "Spans", "tid": "PyTorch Profiler", "args": {"Op count": 0}}
    order = metadata("process_sort_index", 0, 0, {"sort_index": 0x20000000}) | {"pid": "Spans"}
    begin: JsonObject = {
        "ph": "i",
        "s": "g",
        "name": "Iteration Start: PyTorch Profiler",
        "pid": "Traces",
        "tid": "Trace PyTorch Profiler",
        "ts": microseconds(START_NS),
    }
    stop: JsonObject = {
        "ph": "i",
        "s": "g",
        "name": "Record Window End",
        "pid": "",
        "tid": "",
        "ts": microseconds(end),
    }
    return [span, order, begin, stop]


def device_items(items: tuple[Op | Call, ...]) -> list[Kernel | Copy]:
    """Return everything that a list of operators runs on the device, in order."""
    found: list[Kernel | Copy] = []
    for item in items:
        if isinstance(item, Op):
            found += device_items(item.inside)
        elif item.starts is not None:
            found.append(item.starts)
    return found


def check(variant: Variant) -> None:
    """Refuse a variant whose parts do not add up to its means."""
    work = device_items(variant.ops)
    if len(work) != variant.gpu_ops:
        message = f"{variant.name}: {len(work)} GPU operations instead of {variant.gpu_ops}"
        raise ValueError(message)
    total = sum(nanoseconds(item.us) for item in work)
    if total != nanoseconds(variant.gpu_us):
        message = f"{variant.name}: {total} ns on the device instead of {variant.gpu_us} us"
        raise ValueError(message)


def build(variant: Variant) -> JsonObject:
    """Return the whole trace of one variant."""
    check(variant)
    recorder = Recorder()
    clock = START_NS + 238_000
    for index, number in enumerate(STEPS):
        recorder.step, recorder.salt = index, 0
        clock = recorder.profiler_step(variant, number, clock)
    end = recorder.synchronize(clock + 52_000) + 35_000
    events = [
        *row_names(),
        *recorder.host,
        *recorder.activity,
        *recorder.annotations,
        *window(end),
    ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [DEVICE],
        "cupti_version": 28,
        "cuda_runtime_version": 12090,
        "cuda_driver_version": 13000,
        "record_shapes": 1,
        "trace_id": hashlib.sha256(variant.name.encode()).hexdigest()[:32].upper(),
        "host_name": "sample",
        "synthetic": True,
        "synthetic_source": SOURCE,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_TIME_NS,
        "traceEvents": events,
        "traceName": f"{variant.name}.json.gz",
    }


def compressed(trace: JsonObject) -> bytes:
    """Return a trace as gzip without a time stamp or file name in its header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as stream:
        stream.write(orjson.dumps(trace))
    return buffer.getvalue()


def main() -> None:
    """Write all six files."""
    parser = argparse.ArgumentParser(description="Write the synthetic GPU sample traces.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="target directory")
    out: Path = parser.parse_args().out
    for variant in VARIANTS:
        path = out / f"{variant.name}.json.gz"
        path.write_bytes(compressed(build(variant)))
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
