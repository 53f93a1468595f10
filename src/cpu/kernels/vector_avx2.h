/* SPDX-License-Identifier: Apache-2.0 */
/* AVX2: graph/math.h mirrored operation by operation (the same bits), masks for tails, and the inner tile of products.
 */
#ifndef OCT_CPU_KERNELS_VECTOR_AVX2_H
#define OCT_CPU_KERNELS_VECTOR_AVX2_H

#include <immintrin.h>

#include "graph/graph.h"
#include "graph/math.h"

#define OCT_INLINE static inline __attribute__((always_inline))

/* The first `count` lanes; all from 8 on, none at 0 and below. */
OCT_INLINE __m256i oct_mask(int64_t count) {
    const int lanes = count >= 8 ? 8 : (count <= 0 ? 0 : (int)count);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

OCT_INLINE __m256 oct_v_exp2_scale(__m256 t, __m256 f) {
    __m256 p = _mm256_set1_ps(OCT_EXP2_C6);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(OCT_EXP2_C5));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(OCT_EXP2_C4));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(OCT_EXP2_C3));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(OCT_EXP2_C2));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(OCT_EXP2_C1));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(bits));
}

OCT_INLINE __m256 oct_v_exp(__m256 x) {
    const __m256 low = _mm256_set1_ps(OCT_EXP_LOW);
    const __m256 y = _mm256_max_ps(low, _mm256_min_ps(_mm256_set1_ps(OCT_EXP_HIGH), x));
    const __m256 t = _mm256_fmadd_ps(y, _mm256_set1_ps(OCT_EXP_LOG2E_HIGH), _mm256_set1_ps(OCT_EXP2_ROUND));
    const __m256 n = _mm256_sub_ps(t, _mm256_set1_ps(OCT_EXP2_ROUND));
    __m256 f = _mm256_fmsub_ps(y, _mm256_set1_ps(OCT_EXP_LOG2E_HIGH), n);
    f = _mm256_fmadd_ps(y, _mm256_set1_ps(OCT_EXP_LOG2E_LOW), f);
    const __m256 e = oct_v_exp2_scale(t, f);
    return _mm256_andnot_ps(_mm256_cmp_ps(x, low, _CMP_LT_OQ), e);
}

OCT_INLINE __m256 oct_v_exp2(__m256 x) {
    const __m256 low = _mm256_set1_ps(OCT_EXP2_LOW);
    const __m256 y = _mm256_max_ps(low, x);
    const __m256 t = _mm256_add_ps(y, _mm256_set1_ps(OCT_EXP2_ROUND));
    const __m256 f = _mm256_sub_ps(y, _mm256_sub_ps(t, _mm256_set1_ps(OCT_EXP2_ROUND)));
    const __m256 e = oct_v_exp2_scale(t, f);
    return _mm256_andnot_ps(_mm256_cmp_ps(x, low, _CMP_LT_OQ), e);
}

OCT_INLINE __m256 oct_v_sigmoid(__m256 x) {
    const __m256 e = oct_v_exp(_mm256_or_ps(x, _mm256_set1_ps(-0.0f)));
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 d = _mm256_div_ps(one, _mm256_add_ps(one, e));
    return _mm256_blendv_ps(d, _mm256_mul_ps(e, d), _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}

OCT_INLINE __m256 oct_v_gelu(__m256 x) {
    const __m256 a = _mm256_min_ps(_mm256_set1_ps(OCT_GELU_LIMIT), _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x));
    __m256 p = _mm256_set1_ps(OCT_GELU_C8);
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C7));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C6));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C5));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C4));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C3));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C2));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(OCT_GELU_C1));
    p = _mm256_fmadd_ps(p, a, _mm256_set1_ps(-1.0f));
    return _mm256_fnmadd_ps(a, oct_v_exp2(p), _mm256_max_ps(_mm256_setzero_ps(), x));
}

OCT_INLINE __m256 oct_v_activate(oct_activation activation, __m256 x) {
    switch (activation) {
    case OCT_ACTIVATION_RELU:
        return _mm256_max_ps(_mm256_setzero_ps(), x);
    case OCT_ACTIVATION_RELU6:
        return _mm256_min_ps(_mm256_set1_ps(6.0f), _mm256_max_ps(_mm256_setzero_ps(), x));
    case OCT_ACTIVATION_GELU:
        return oct_v_gelu(x);
    case OCT_ACTIVATION_SIGMOID:
        return oct_v_sigmoid(x);
    default:
        return x;
    }
}

/* 16 lanes, in two vectors, to one: i + 8, i + 4, i + 2, i + 1. */
OCT_INLINE float oct_v_fold(__m256 low, __m256 high) {
    const __m256 w = _mm256_add_ps(low, high);
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

/* acc[r][v] += sum over k of a[r row_stride + k] panel[k][v], `rows` x 16, rows a constant at the call. Row addresses
 * are three to a base. Returns the panel behind the last k. */
OCT_INLINE const float *oct_v_tile(__m256 (*acc)[2], const int rows, const float *a, int64_t row_stride, int64_t length,
                                   const float *panel) {
    const float *base[2] = {a, a + (rows > 3 ? 3 : 0) * row_stride};
    for (int64_t k = 0; k < length; k++, panel += 16) {
        const __m256 w0 = _mm256_loadu_ps(panel), w1 = _mm256_loadu_ps(panel + 8);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            const __m256 x = _mm256_set1_ps(base[r / 3][r % 3 * row_stride + k]);
            acc[r][0] = _mm256_fmadd_ps(x, w0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(x, w1, acc[r][1]);
        }
    }
    return panel;
}

#endif
