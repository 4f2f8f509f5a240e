from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from analyze.kernels.classify import classify
from analyze.tables import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

ATEN = "void at::native::"
VECTORIZED = f"{ATEN}vectorized_elementwise_kernel<4, at::native::"
NAMES = [
    # experts, embeddings and convolutions whose names hold other words
    ("void vllm::moe::topkGatingSoftmax<8, 64, 4>(float const*)", "moe.route"),
    ("_combined_routing_memset", "moe.route"),
    ("_sum_bitmatrix_rows", "moe.route"),
    ("dense_embedding_codegen_forward_unweighted_kernel<float>", "embed"),
    ("miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1.kd", "conv"),
    # FlashAttention 2, 3, 4
    (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, "
        "false, cutlass::bfloat16_t> >",
        "attn.fwd",
    ),
    ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<traits>", "attn.bwd"),
    ("void pytorch_flash::flash_bwd_dot_do_o_kernel<true>", "attn.aux"),
    ("void pytorch_flash::flash_bwd_convert_dq_kernel<traits>", "attn.aux"),
    ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128> >", "attn.fwd"),
    ("void flash::flash_fwd_splitkv_combine_kernel<traits>", "attn.aux"),
    (
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<"
        "flash::CollectiveMainloopFwdSm90<2> > > >",
        "attn.fwd",
    ),
    ("void cutlass::device_kernel<flash::FlashAttnFwdCombine<a> >", "attn.aux"),
    ("void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<a> >", "attn.aux"),
    (
        "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at",
        "attn.fwd",
    ),
    # other attention
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel<cutlass::bfloat16_t>)", "attn.fwd"),
    ("fmha_cutlassB_f16_aligned_64x64_k64_sm80(AttentionBackwardKernel<float>)", "attn.bwd"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", "attn.fwd"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64", "attn.bwd"),
    ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128", "attn.fwd"),
    ("attn_fwd.kd", "attn.fwd"),
    ("bwd_kernel_dk_dv", "attn.bwd"),
    ("bwd_preprocess", "attn.aux"),
    ("kernel_unified_attention_2d", "attn.fwd"),
    ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>", "attn.fwd"),
    ("void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, 128>", "attn.aux"),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<a>", "attn.fwd"),
    # Triton
    ("triton_tem_fused_flex_attention_0", "triton.template"),
    ("triton_poi_fused__scaled_dot_product_flash_attention_cat_3", "triton.pointwise"),
    ("triton_for_fused_1", "triton.pointwise"),
    ("triton_per_fused_native_layer_norm_2", "triton.reduction"),
    ("triton_red_fused_mean_0", "triton.reduction"),
    ("triton__0d1d2d", "triton.other"),
    # matrix products
    ("ampere_sgemm_128x64_nn", "gemm"),
    ("void marlin::Marlin<half, 4, 256>(int4 const*)", "gemm"),
    ("_finalize_matmul_scatter_bf16", "gemm.aux"),
    ("volta_h884gemm_64x64_ldg8_nn", "gemm"),
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)", "gemm"),
    ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1", "gemm"),
    ("nvjet_tst_128x128_64x4_1x2_h_bz_coopA_TNT", "gemm"),
    ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1", "gemm"),
    ("void cask_plugin_cudnn::xmma_cudnn::init_device_tables<xmma_cudnn::Sm80>", "gemm"),
    ("void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16>", "gemm.gemv"),
    ("void dot_kernel<float, 128, 0, cublasDotParams<a, b> >", "gemm.gemv"),
    ("void splitKreduce_kernel<32, 16, int, float, float>", "gemm.aux"),
    ("Cijk_B_PostGSU2", "gemm.aux"),
    # convolution
    ("void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, float>", "conv"),
    ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "conv"),
    ("void explicit_convolve_sgemm<float, int, 1024, 5, 5, 3, 3, 3, 0, false>", "conv"),
    (f"{ATEN}im2col_kernel<float>", "conv"),
    ("sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tensor16x8x16", "conv"),
    # communication
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm"),
    ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", "comm"),
    ("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", "comm"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", "comm"),
    # ATen
    (
        f"{ATEN}(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, "
        "FusedAdamMathFunctor<float, 4> >",
        "optim",
    ),
    (
        f"{VECTORIZED}bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::"
        "{lambda(c10::BFloat16)#1}>",
        "copy.cast",
    ),
    (
        f"{VECTORIZED}float16_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda(float)#1}}>",
        "copy.cast",
    ),
    (
        f"{ATEN}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
        "at::TensorIteratorBase&)::{lambda()#3}, LoadWithCast<1>, StoreWithCast<1> >",
        "copy",
    ),
    (f"{ATEN}elementwise_kernel<128, 4, gpu_kernel_impl<masked_fill_kernel(a)> >", "mask"),
    (f"{ATEN}triu_tril_kernel<bool, int, false, 8, false>", "mask"),
    (f"{VECTORIZED}FillFunctor<float>, std::array<char*, 1ul> >", "fill"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 11>", "softmax"),
    (f"{ATEN}(anonymous namespace)::cunn_SoftMaxForwardSmem<4, float>", "softmax"),
    (f"{ATEN}(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", "norm"),
    (f"{ATEN}embedding_backward_feature_kernel<float, float, long>", "embed"),
    ("void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<a>", "sort.scan"),
    (f"{ATEN}radixSortKVInPlace<-2, -1, 32, 32, long>", "sort.scan"),
    (f"{ATEN}reduce_kernel<512, 1, ReduceOp<float, MeanOps<float> > >", "reduce"),
    (f"{ATEN}index_elementwise_kernel<128, 4, a>", "index"),
    (f"{ATEN}(anonymous namespace)::distribution_elementwise_grid_stride_kernel<a>", "rng"),
    (f"{ATEN}(anonymous namespace)::max_pool_forward_nchw<float>", "pool.interp"),
    ("void cunn_ClassNLLCriterion_updateOutput_kernel<float>", "loss"),
    ("void vllm::scaled_fp8_quant_kernel_strided<a>", "quant"),
    ("void moe::dev::routing::routingIndicesHistogramKernel<a>", "moe.route"),
    ("void fbgemm_gpu::permute_2D_lengths_kernel<int>", "sparse.fbgemm"),
]

# Words inside other words.
FALSE_FRIENDS = [
    # "lamb" in "lambda"
    (f"{VECTORIZED}sigmoid_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#1}}>", "elementwise"),
    # "gemm" in "fbgemm" and in "gemma"
    ("void fbgemm_jagged_stub_kernel<float>", "sparse.fbgemm"),
    ("fbgemm_stub", None),
    ("gemma_block", None),
    # "sgemm" inside a convolution
    ("void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>", "conv"),
    # "cutlass" inside attention
    ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<a> >", "attn.fwd"),
    # "flash" in cache helpers
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>", "attn.aux"),
    ("create_flashinfer_kv_indices_triton", "attn.aux"),
    # "embedding" in RoPE, "reduce" in others, "norm" in a reduction and in a distribution
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>", "rope"),
    ("void splitKreduce_kernel<float, float, float>", "gemm.aux"),
    ("reduce_segments", "attn.aux"),
    (f"{ATEN}reduce_kernel<512, 1, ReduceOp<float, NormTwoOps<float> > >", "reduce"),
    (f"{ATEN}distribution_nullary_kernel<float, normal_and_transform>", "rng"),
    # Welford's arguments spell thrust::
    (f"{ATEN}reduce_kernel<512, 1, ReduceOp<float, WelfordOps<thrust::pair<a, b> > > >", "reduce"),
    # arithmetic that loads with a cast is not a copy
    (
        f"{ATEN}unrolled_elementwise_kernel<at::native::CUDAFunctor_add<double>, "
        "std::array<char*, 3ul>, LoadWithCast<2>, StoreWithCast<1> >",
        "elementwise",
    ),
    # an FFT that belongs to a convolution; a mask that is called fill
    ("void fft2d_r2c_32x32<float, false, 0u, false>", "conv"),
    (f"{VECTORIZED}(anonymous namespace)::masked_fill_kernel(at::TensorIterator&)>", "mask"),
]

COLLECTIVES = [
    ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "AllGather"),
    ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevComm*)", "ReduceScatter"),
    ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevComm*)", "Reduce"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "AllReduce"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "SendRecv"),
    ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", "Broadcast"),
    ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "AllReduce"),
    ("ncclReduceScatterRingLLKernel_sum_f16(ncclColl)", "ReduceScatter"),
    ("ncclReduceRingLLKernel_sum_f32(ncclColl)", "Reduce"),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", None),
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>", "AllReduce"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>", "AllReduce"),
    ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot", "AllReduce"),
    ("void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16>", "AllReduce"),
    ("void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)", "AllToAll"),
    ("nvshmemi_transfer_rma_p2p", None),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >", None),
]

UNKNOWN = ["", "unknown", "Kernel", "clamp_position_kernel", "_fwd_kernel", "a<b", "\ud800"]


@pytest.mark.parametrize(("name", "family"), NAMES)
def test_family(name: str, family: str) -> None:
    assert classify(name).family == family


@pytest.mark.parametrize(("name", "collective"), COLLECTIVES)
def test_what_a_communication_kernel_does(name: str, collective: str | None) -> None:
    assert classify(name).collective == collective


def test_the_catalogue_names_every_collective() -> None:
    text = files("analyze.kernels").joinpath("names.yaml").read_text(encoding="utf-8")
    rules = YAML(typ="safe").load(text)["collectives"]
    assert {rule["collective"] for rule in rules} == set(catalogue.COLLECTIVES)


@pytest.mark.parametrize(("name", "family"), FALSE_FRIENDS)
def test_false_friends(name: str, family: str | None) -> None:
    assert classify(name).family == family


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_is_none(name: str) -> None:
    facts = classify(name)
    assert (facts.family, facts.precision, facts.tensor_core) == (None, None, None)


def test_only_the_first_part_of_a_name_is_read() -> None:
    assert classify("x" * 1000 + "gemm").family == "gemm"
    assert classify("x" * 10_000 + "gemm").family is None


def test_surrounding_space_does_not_matter() -> None:
    assert classify("  nvjet_tst_128x128 \n") == classify("nvjet_tst_128x128")


def test_every_pattern_of_the_data_is_one() -> None:
    text = files("analyze.kernels").joinpath("names.yaml").read_text(encoding="utf-8")
    names = YAML(typ="safe").load(text)
    assert all(("exact" in rule) != ("lower" in rule) for rule in names["families"])
    patterns = list(_patterns(names))
    assert len(patterns) > 100
    for pattern in patterns:
        re.compile(pattern)


def _patterns(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        keys = ("exact", "lower", "pattern", "no_product")
        yield from (part[key] for key in keys if key in part)
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from _patterns(item)
