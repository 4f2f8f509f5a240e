from __future__ import annotations

import pytest

from analyze.kernels.classify import classify

CIJK = "Cijk_Alik_Bljk_"
XMMA = "sm80_xmma_gemm_"

CUDA_CORES = [
    ("ampere_sgemm_128x64_nn", "fp32"),
    ("volta_sgemm_32x128_tn", "fp32"),
    ("maxwell_sgemm_128x64_raggedMn_tn_splitK", "fp32"),
    ("sgemm_largek_lds64", "fp32"),
    ("void magma_sgemmEx_kernel<float, float>", "fp32"),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)", "fp32"),
    (f"{XMMA}f32f32_f32f32_f32_nt_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4", "fp32"),
    ("ampere_scudnn_128x64_relu_medium_nn_v1", "fp32"),
    ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "fp32"),
    ("void explicit_convolve_sgemm<float, int, 1024, 5, 5, 3, 3, 3, 0, false>", "fp32"),
    ("volta_sgemm_fp16_128x64_tn", "fp16"),
    ("ampere_hgemm_128x64_nn", "fp16"),
    ("void cutlass::Kernel<cutlass_70_simt_hgemm_128x128_8x2_nn_align1>", "fp16"),
    ("ampere_dgemm_128x64_nt", "fp64"),
    ("void cutlass::Kernel2<cutlass_80_simt_dgemm_64x64_8x5_nn_align1>", "fp64"),
    ("ampere_gcgemm_64x64_nt", "complex"),
    ("volta_cgemm_32x32_tn", "complex"),
    ("ampere_zgemm_64x64_nn", "complex"),
    ("void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16>", "fp16"),
    ("void gemvNSP_kernel<float, float, float, float, 1, 16, 4>", "fp32"),
    ("void gemv2N_kernel<int, int, float2, float2, float2, float2, 128>", "complex"),
    ("void gemmk1_kernel<int, double, 256, 5>", "fp64"),
    ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<__nv_bfloat16> > >", "bf16"),
]

TENSOR_CORES = [
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)", "tf32"),
    ("void cutlass::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64_16x10_nhwc>", "tf32"),
    ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1", "tf32"),
    ("sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwc_g1_tensor16x8x8_kernel", "tf32"),
    ("nvjet_sss_tf32_128x256_TNT", "tf32"),
    ("_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS_10tfloat32_tEEEEE", "tf32"),
    ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn", "bf16"),
    ("ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_nn", "bf16"),
    ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>", "bf16"),
    ("void cutlass::Kernel2<cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1>", "bf16"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1", "bf16"),
    ("nvjet_tst_128x128_64x4_1x2_h_bz_coopA_TNT", "bf16"),
    ("nvjet_sm100_tst_24x64_TNN", "bf16"),
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_bf16_128x128_nn>", "bf16"),
    ("ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_relu_f2f_stages_64x6_tn", "fp16"),
    ("ampere_h16816gemm_128x128_ldg8_stages_64x3_nt", "fp16"),
    ("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_tn", "fp16"),
    ("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn", "fp16"),
    ("volta_h884gemm_64x64_ldg8_nn", "fp16"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_tn>", "fp16"),
    ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1", "fp16"),
    ("nvjet_hsh_256x128_64x4_2x1_v_bz_TNN", "fp16"),
    ("nvjet_sm90_hss_320x128", "fp16"),
    ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x128_warpgroupsize1x1x1", "fp8"),
    ("nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT", "fp8"),
    ("nvjet_sm120_qqtst_mma_128x128", "fp8"),
    ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_sm100f", "fp4"),
    ("void cutlass::Kernel<cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16>", "int8"),
    ("turing_int8_i8816gemm_int8_128x128_ldg16_mn_tn", "int8"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_128x64_16x3_nt_align1>", "fp64"),
    (f"{XMMA}f64f64_f64f64_f64_tn_n_tilesize64x64x8_warpsize2x2x1_tensor8x8x4", "fp64"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688cgemm_64x64_16x4_nn_align1>", "complex"),
]

UNDECIDED = [
    # a template argument is a hint, not a claim
    ("void gemmSN_NN_kernel<float, 256, 4, 2, 8, 4, 4, false>", "fp32"),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", "fp32"),
    ("void gemmSN_TN_kernel<double, 128, 16, 2, 4, 8, 9>", "fp64"),
    ("void my_gemm<signed char, float>", None),
    ("void my_gemm<double, float>", None),
    (f"{XMMA}f32f32_f32f32_f32_nt_n_tilesize128x128x8_stage3", "fp32"),
    # names that do not show how they multiply
    # output x activation x weight; a half-precision activation has the weight unpacked to its type
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "bf16"),
    ("_p_matmul_NNT_mxfp4xbf16xmxfp4_128x256x64x1_swiglu", "bf16"),
    ("_matmul_ogs_NTN_fp32xfp16xmxfp4_16x128x256x1", "fp16"),
    ("_matmul_ogs_NNT_bf16xfp16xfp8e4nv_16x128x256x1", "fp16"),
    ("_matmul_ogs_NNT_bf16xfp8e4nvxmxfp4_16x128x256x1", "fp4"),
    ("_matmul_ogs_NNT_bf16xmxfp4xmxfp4_16x128x256x1", "fp4"),
    ("void deep_gemm::fp8_gemm_kernel<128, 128>", "fp8"),
    ("void my_gemm<__nv_bfloat16, float>", "bf16"),
    ("fused_moe_kernel", None),
    ("gemm_kernel", None),
    ("triton_tem_fused_mm_3", None),
    ("triton_tem_fused__int_mm_0", "int8"),
    ("triton_tem_fused__scaled_mm_0", "fp8"),
    # Composable Kernel hides its types
    ("_ZN2ck27kernel_gemm_xdl_cshuffle_v3INS_8GridwiseELb1EDF16bffE", None),
    ("_ZN7ck_tile6kentryILi1ENS_13FmhaFwdKernelINS_4fp16EE", None),
    ("cudnn_generated_fort_native_conv_gemm", None),
    # AMD: nothing is ever called plain CUDA cores
    (f"{CIJK}SB_MT64x64x16_MI16x16x4x1", "fp32"),
    (f"{CIJK}S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16x16x1_SN", "fp32"),
    (f"{CIJK}DB_MT64x64x16_MI16x16x4x1", "fp64"),
    (f"{CIJK}CB_MT64x64x16_SN", "complex"),
    (f"{CIJK}HHS_BH_MT128x128x32_SN", "fp16"),
    ("void rocblas_gemvn_kernel<64, 4, float, float, float>", "fp32"),
    ("void wvSplitK_hf_sml_<__hip_bfloat16, 64, 4, 16, 8>", "bf16"),
    ("igemm_fwd_gtcx2_nhwc_fp32_bx0_ex1_bt128x128x16", "fp32"),
    ("sgemm_kernel.kd", "fp32"),
]

AMD_MATRIX_CORES = [
    (f"{CIJK}BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN", "bf16"),
    (f"{CIJK}B_BS_BH_Bias_HA_S_SAV_UserArgs_MT128x224x64_MI16x16x1", "bf16"),
    ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1", "fp16"),
    ("Cijk_Ailk_Bljk_HB_MT128x128x32_MI32x32x8x1", "fp16"),
    (f"{CIJK}S_MX_B_Bias_HA_S_SAV_UserArgs_MT128x128x32_MI16x16x1", "tf32"),
    (f"{CIJK}F8B8BS_BH_Bias_SHB_HAS_SAB_SAV_UserArgs_MT256x256x128_MI16x16x1", "fp8"),
    (f"{CIJK}B8F8S_BH_UserArgs_MT256x256x128_MI16x16x1", "fp8"),
    (f"{CIJK}I8II_BH_MT128x128x64_MI32x32x16x1", "int8"),
    ("Custom_Cijk_Alik_Bljk_BBS_BH_UserArgs_MT256x256x64_MI16x16x1", "bf16"),
    ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x128x32", "bf16"),
]

ATTENTION = [
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params)", "bf16", True),
    ("fmha_cutlassB_f16_aligned_64x64_k64_sm80(Params)", "fp16", True),
    ("fmha_cutlassF_f16_aligned_64x64_rf_sm50(Params)", "fp16", None),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(AttentionKernel<float>::Params)", "fp32", None),
    ("void pytorch_flash::flash_fwd_kernel<traits<64, cutlass::bfloat16_t> >", "bf16", True),
    ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<cutlass::half_t>", "fp16", True),
    (
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<"
        "cutlass::float_e4m3_t, float, cutlass::bfloat16_t> >",
        "fp8",
        True,
    ),
    ("void pytorch_flash::flash_fwd_kernel<", None, True),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128", None, True),
    ("cudnn_generated_fort_native_sdpa_sm80_flash_bprop_wmma_f16_knob_3", None, True),
    ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausal", "fp8", True),
    ("fmhaSm100aKernel_QkvBfloat16OBfloat16H128", "bf16", True),
    ("attn_fwd.kd", None, None),
    ("bwd_kernel_dk_dv", None, None),
    ("kernel_unified_attention_2d", None, None),
    ("_ZN7ck_tile6kentryINS_13FmhaFwdKernelIDF16bfEE", None, None),
    (
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, "
        "(vllm::Fp8KVCacheDataType)0>",
        "bf16",
        True,
    ),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<__half, __nv_fp8_e4m3>", None, None),
    ("void paged_attention_v1_kernel<float, float, 128>", None, None),
]

NOT_PRODUCTS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, "
    "float, at::native::MulFunctor<float> >, std::array<char*, 2ul> >",
    "void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float, float> > >",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>",
    "void splitKreduce_kernel<32, 16, int, float, float, float, float>",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>",
    "void cudnn::cnn::im2col4d_kernel<float, long>",
    "void cask_cudnn::computeOffsetsKernel<false, false>",
    "batched_transpose_64x4_half",
    "void cask_plugin_cudnn::xmma_cudnn::init_device_tables<xmma_cudnn::Sm80>",
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>",
    "triton_poi_fused_mm_tf32_0",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "sm_fp32_sgem",
]


@pytest.mark.parametrize(("name", "precision"), CUDA_CORES)
def test_plain_fma(name: str, precision: str) -> None:
    facts = classify(name)
    assert (facts.precision, facts.tensor_core) == (precision, False)


@pytest.mark.parametrize(("name", "precision"), TENSOR_CORES)
def test_tensor_cores(name: str, precision: str) -> None:
    facts = classify(name)
    assert (facts.precision, facts.tensor_core) == (precision, True)


@pytest.mark.parametrize(("name", "precision"), UNDECIDED)
def test_matrix_units_unknown(name: str, precision: str | None) -> None:
    facts = classify(name)
    assert (facts.precision, facts.tensor_core) == (precision, None)


@pytest.mark.parametrize(("name", "precision"), AMD_MATRIX_CORES)
def test_amd_matrix_cores(name: str, precision: str) -> None:
    facts = classify(name)
    assert (facts.precision, facts.tensor_core) == (precision, True)


@pytest.mark.parametrize(("name", "precision", "tensor_core"), ATTENTION)
def test_attention(name: str, precision: str | None, tensor_core: bool | None) -> None:
    facts = classify(name)
    assert facts.family in {"attn.fwd", "attn.bwd"}
    assert (facts.precision, facts.tensor_core) == (precision, tensor_core)


@pytest.mark.parametrize("name", NOT_PRODUCTS)
def test_no_precision_where_nothing_is_multiplied(name: str) -> None:
    facts = classify(name)
    assert (facts.precision, facts.tensor_core) == (None, None)


def test_nvjet_without_a_known_type_is_still_tensor_cores() -> None:
    facts = classify("nvjet_sss_128x256_64x4_TNT")
    assert (facts.precision, facts.tensor_core) == (None, True)
