/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512: graph/math.h mirrored operation by operation (the same bits), masks for tails, and the inner tile of
 * products. */
#ifndef OCT_CPU_KERNELS_VECTOR_AVX512_H
#define OCT_CPU_KERNELS_VECTOR_AVX512_H

#include <immintrin.h>

#include "graph/graph.h"
#include "graph/math.h"

#define OCT_INLINE static inline __attribute__((always_inline))

/* The first `count` lanes; all from 16 on, none at 0 and below. */
OCT_INLINE __mmask16 oct_mask(int64_t count) {
    if (count >= 16) return 0xffff;
    return count <= 0 ? 0 : (__mmask16)((1u << count) - 1u);
}

OCT_INLINE __m512 oct_v_exp2_scale(__m512 t, __m512 f) {
    __m512 p = _mm512_set1_ps(OCT_EXP2_C6);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(OCT_EXP2_C5));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(OCT_EXP2_C4));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(OCT_EXP2_C3));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(OCT_EXP2_C2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(OCT_EXP2_C1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_mul_ps(p, _mm512_castsi512_ps(bits));
}

OCT_INLINE __m512 oct_v_exp(__m512 x) {
    const __m512 low = _mm512_set1_ps(OCT_EXP_LOW);
    const __m512 y = _mm512_max_ps(low, _mm512_min_ps(_mm512_set1_ps(OCT_EXP_HIGH), x));
    const __m512 t = _mm512_fmadd_ps(y, _mm512_set1_ps(OCT_EXP_LOG2E_HIGH), _mm512_set1_ps(OCT_EXP2_ROUND));
    const __m512 n = _mm512_sub_ps(t, _mm512_set1_ps(OCT_EXP2_ROUND));
    __m512 f = _mm512_fmsub_ps(y, _mm512_set1_ps(OCT_EXP_LOG2E_HIGH), n);
    f = _mm512_fmadd_ps(y, _mm512_set1_ps(OCT_EXP_LOG2E_LOW), f);
    const __m512 e = oct_v_exp2_scale(t, f);
    return _mm512_mask_mov_ps(e, _mm512_cmp_ps_mask(x, low, _CMP_LT_OQ), _mm512_setzero_ps());
}

OCT_INLINE __m512 oct_v_exp2(__m512 x) {
    const __m512 low = _mm512_set1_ps(OCT_EXP2_LOW);
    const __m512 y = _mm512_max_ps(low, x);
    const __m512 t = _mm512_add_ps(y, _mm512_set1_ps(OCT_EXP2_ROUND));
    const __m512 f = _mm512_sub_ps(y, _mm512_sub_ps(t, _mm512_set1_ps(OCT_EXP2_ROUND)));
    const __m512 e = oct_v_exp2_scale(t, f);
    return _mm512_mask_mov_ps(e, _mm512_cmp_ps_mask(x, low, _CMP_LT_OQ), _mm512_setzero_ps());
}

OCT_INLINE __m512 oct_v_sigmoid(__m512 x) {
    const __m512 e = oct_v_exp(_mm512_or_ps(x, _mm512_set1_ps(-0.0f)));
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 d = _mm512_div_ps(one, _mm512_add_ps(one, e));
    return _mm512_mask_mul_ps(d, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), e, d);
}

OCT_INLINE __m512 oct_v_gelu(__m512 x) {
    const __m512 a = _mm512_min_ps(_mm512_set1_ps(OCT_GELU_LIMIT), _mm512_abs_ps(x));
    __m512 p = _mm512_set1_ps(OCT_GELU_C8);
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C7));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C6));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C5));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C4));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C3));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C2));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(OCT_GELU_C1));
    p = _mm512_fmadd_ps(p, a, _mm512_set1_ps(-1.0f));
    return _mm512_fnmadd_ps(a, oct_v_exp2(p), _mm512_max_ps(_mm512_setzero_ps(), x));
}

OCT_INLINE __m512 oct_v_activate(oct_activation activation, __m512 x) {
    switch (activation) {
    case OCT_ACTIVATION_RELU:
        return _mm512_max_ps(_mm512_setzero_ps(), x);
    case OCT_ACTIVATION_RELU6:
        return _mm512_min_ps(_mm512_set1_ps(6.0f), _mm512_max_ps(_mm512_setzero_ps(), x));
    case OCT_ACTIVATION_GELU:
        return oct_v_gelu(x);
    case OCT_ACTIVATION_SIGMOID:
        return oct_v_sigmoid(x);
    default:
        return x;
    }
}

/* 16 lanes to one: i + 8, i + 4, i + 2, i + 1. */
OCT_INLINE float oct_v_fold(__m512 v) {
    const __m256 w = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

/* acc[r][v] += sum over k of a[r row_stride + k] panel[k][v], `rows` x 16 `vectors` wide; both constants at the call.
 * Row addresses are three to a base, so that they fit the registers. Returns the panel behind the last k. */
OCT_INLINE const float *oct_v_tile(__m512 (*acc)[2], const int rows, const int vectors, const float *a,
                                   int64_t row_stride, int64_t length, const float *panel) {
    const float *base[5];
#pragma GCC unroll 5
    for (int b = 0; b < 5; b++) base[b] = a + (3 * b < rows ? 3 * b : 0) * row_stride;
    for (int64_t k = 0; k < length; k++, panel += 32) {
        const __m512 w0 = _mm512_loadu_ps(panel);
        const __m512 w1 = vectors == 2 ? _mm512_loadu_ps(panel + 16) : w0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            const __m512 x = _mm512_set1_ps(base[r / 3][r % 3 * row_stride + k]);
            acc[r][0] = _mm512_fmadd_ps(x, w0, acc[r][0]);
            if (vectors == 2) acc[r][1] = _mm512_fmadd_ps(x, w1, acc[r][1]);
        }
    }
    return panel;
}

#endif
