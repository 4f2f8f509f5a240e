from __future__ import annotations

import pytest

from analyze.kernels.classify import classify
from analyze.kernels.display import MAX_LENGTH, shorten

ATEN = "void at::native::"
ITERATOR = "(at::TensorIteratorBase&)"
NAMES = [
    # ATen wrappers: the functor
    (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda"
        f"{ITERATOR}::{{lambda(c10::BFloat16)#1}}, std::array<char*, 2ul> >(int, "
        f"at::native::bfloat16tofloat32_copy_kernel_cuda{ITERATOR}, std::array<char*, 2ul>)",
        "bfloat16tofloat32_copy_kernel_cuda",
    ),
    (
        f"{ATEN}elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
        "(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)::"
        "{lambda()#1}::operator()() const::{lambda()#7}::operator()() const> >(int)",
        "masked_fill_kernel",
    ),
    (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::complex<float>, "
        "c10::complex<float>, bool, at::native::binary_internal::MulFunctor<float> > >",
        "MulFunctor",
    ),
    (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<"
        "at::native::CompareGEFunctor<float> >, at::detail::Array<char*, 2> >(int)",
        "CompareGEFunctor",
    ),
    (f"{ATEN}unrolled_elementwise_kernel<at::native::CUDAFunctor_add<int>, A>", "CUDAFunctor_add"),
    (
        f"{ATEN}_scatter_gather_elementwise_kernel<128, 4, at::native::"
        "_cuda_scatter_gather_internal_kernel<false, at::native::OpaqueType<4> >::operator()"
        "<at::native::TensorAssign>(at::TensorIterator&, long)::{lambda(int)#1}>(int)",
        "_cuda_scatter_gather_internal_kernel",
    ),
    (f"{ATEN}vectorized_elementwise_kernel<4, float>(int)", "vectorized_elementwise_kernel"),
    # ATen wrappers whose own name stays
    (
        f"{ATEN}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
        "float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)",
        "reduce_kernel MeanOps",
    ),
    (
        f"{ATEN}reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<"
        "float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::"
        "{lambda(float, float)#1}>, unsigned int, float, 4> >",
        "reduce_kernel sum_functor",
    ),
    (
        f"{ATEN}(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
        "(anonymous namespace)::TensorListMetadata<4>, at::native::(anonymous namespace)::"
        "FusedAdamMathFunctor<float, 4> >",
        "multi_tensor_apply_kernel FusedAdamMathFunctor",
    ),
    (f"{ATEN}reduce_kernel<512, 1>", "reduce_kernel"),
    # CUTLASS
    (
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"
        "(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)",
        "cutlass_80_simt_sgemm_128x32_8x5_nn_align1",
    ),
    (
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::A<2> > > >",
        "flash::FlashAttnFwdSm90",
    ),
    # plain
    (
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<"
        "cutlass::bfloat16_t, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
    ),
    (
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>, "
        "false, false>(pytorch_flash::Flash_fwd_params)",
        "pytorch_flash::flash_fwd_kernel",
    ),
    ("void (anonymous namespace)::softmax_warp_forward<float, 11>(float*)", "softmax_warp_forward"),
    (
        "void at_cuda_detail::cub::DeviceRadixSortHistogramKernel<long>(int)",
        "cub::DeviceRadixSortHistogramKernel",
    ),
    (
        "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
        "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, float, int)",
        "vllm::fused_add_rms_norm_kernel",
    ),
    (
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(int)",
        "internal::gemvx::kernel",
    ),
    ("nvjet_tst_192x8_64x8_4x1_v_bz_TNT", "nvjet_tst_192x8_64x8_4x1_v_bz_TNT"),
    ("ncclDevKernel_Generic(ncclDevComm*, ncclWork*)", "ncclDevKernel_Generic"),
    ("triton_poi_fused__to_copy_1", "triton_poi_fused__to_copy_1"),
    # mangled
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64EEEv", "aiter::add_rmsnorm_quant_kernel"),
    ("_ZN12_GLOBAL__N_13addEv", "add"),
    ("_Z3addPfS_", "add"),
    ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdE", "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdE"),
    ("_Zxyz", "_Zxyz"),
    # odd
    ("", "(unnamed)"),
    (" \t\n", "(unnamed)"),
    ("unknown", "unknown"),
    ("two words", "two words"),
    ("a\tb\x00c", "a b c"),
    ("void", "void"),
    ("()", "()"),
    ("<<<", "<<<"),
    (">>)}", ">>)}"),
    ("(anonymous namespace)::", "(anonymous namespace)::"),
    ("void cut_off<int, std::pair<fl", "cut_off"),
    (f"{ATEN}vectorized_elementwise_kernel<4, at::native::FillFunctor<fl", "FillFunctor"),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_short_name(name: str, expected: str) -> None:
    assert classify(name).short_name == expected


def test_long_names_end_with_an_ellipsis() -> None:
    short = shorten("Cijk_Alik_Bljk_" + "X" * 400)
    assert len(short) == MAX_LENGTH
    assert short.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert shorten("X" * MAX_LENGTH) == "X" * MAX_LENGTH
