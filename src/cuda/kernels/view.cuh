/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in and out of views of any format, by the rules of graph/stored.h. */
#ifndef OCT_CUDA_VIEW_CUH
#define OCT_CUDA_VIEW_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "cuda/launch.h"
#include "graph/activate.h"

static __device__ __forceinline__ float oct_e4m3_number(uint8_t code) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

/* The number of element c of a row. */
static __device__ __forceinline__ float oct_load(const oct_view &v, int64_t row, int c) {
    const int64_t at = row * v.stride + c;
    const float scale = v.scales != nullptr ? v.scales[row] : v.scale;
    switch (v.format) {
    case OCT_FORMAT_FP16:
        return __half2float(static_cast<const __half *>(v.data)[at]);
    case OCT_FORMAT_BF16:
        return __bfloat162float(static_cast<const __nv_bfloat16 *>(v.data)[at]);
    case OCT_FORMAT_E4M3:
        return oct_e4m3_number(static_cast<const uint8_t *>(v.data)[at]) * scale;
    case OCT_FORMAT_INT8:
        return static_cast<float>(static_cast<const int8_t *>(v.data)[at]) * scale;
    default:
        return static_cast<const float *>(v.data)[at];
    }
}

static __device__ __forceinline__ int8_t oct_int8_code(float x, float inverse) {
    float y = x * inverse;
    y = y == y ? y : 0.0f;
    return static_cast<int8_t>(__float2int_rn(fminf(fmaxf(y, -127.0f), 127.0f)));
}

/* As stored; of a scale a row, `inverse` is that row's. */
static __device__ __forceinline__ void oct_store(const oct_view &v, int64_t row, int c, float x, float inverse) {
    const int64_t at = row * v.stride + c;
    switch (v.format) {
    case OCT_FORMAT_FP16:
        static_cast<__half *>(v.data)[at] = __float2half_rn(x);
        break;
    case OCT_FORMAT_BF16:
        static_cast<__nv_bfloat16 *>(v.data)[at] = __float2bfloat16_rn(x);
        break;
    case OCT_FORMAT_E4M3:
        static_cast<uint8_t *>(v.data)[at] = __nv_cvt_float_to_fp8(x * inverse, __NV_SATFINITE, __NV_E4M3);
        break;
    case OCT_FORMAT_INT8:
        static_cast<int8_t *>(v.data)[at] = oct_int8_code(x, inverse);
        break;
    default:
        static_cast<float *>(v.data)[at] = x;
    }
}

/* What follows a product's sum, at one element; `sum` has its bias. */
static __device__ __forceinline__ void oct_finish(const oct_epilogue &e, int64_t row, int o, float sum) {
    if (e.residual.data != nullptr) sum = sum + oct_load(e.residual, row, o);
    sum = oct_activate(static_cast<oct_activation>(e.activation), sum);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < e.out_count) oct_store(e.out[i], row, o, sum, e.out[i].inverse);
}

/* The rule of int8 products. */
static __device__ __forceinline__ float oct_int8_sum(int sum, float scale, float bias) {
    return fmaf(static_cast<float>(sum), scale, bias);
}

#endif
