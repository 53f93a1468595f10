/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512: the rounding of graph/stored.h, sixteen numbers at a time; the same codes. */
#ifndef OCT_CPU_KERNELS_STORED_AVX512_H
#define OCT_CPU_KERNELS_STORED_AVX512_H

#include "cpu/kernels/vector_avx512.h"

OCT_INLINE __m128i oct_v_int8(__m512 x, __m512 inverse) {
    const __m512 y = _mm512_mul_ps(x, inverse);
    const __m512 cut = _mm512_min_ps(_mm512_set1_ps(127.0f), _mm512_max_ps(_mm512_set1_ps(-127.0f), y));
    return _mm512_cvtepi32_epi8(_mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), cut));
}

/* Below 2^-6 the codes count 2^-9; from there on they are a float's upper bits, rounded, with another bias. */
OCT_INLINE __m128i oct_v_e4m3(__m512 x, __m512 inverse) {
    const __m512 y = _mm512_mul_ps(x, inverse);
    const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(_mm512_castps_si512(y), 24), _mm512_set1_epi32(0x80));
    const __m512 a = _mm512_min_ps(_mm512_abs_ps(y), _mm512_set1_ps(448.0f));
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 20), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7ffff)), odd);
    __m512i code = _mm512_sub_epi32(_mm512_srli_epi32(up, 20), _mm512_set1_epi32(120 << 3));
    const __m512i small = _mm512_cvtps_epi32(_mm512_mul_ps(a, _mm512_set1_ps(512.0f)));
    code = _mm512_mask_mov_epi32(code, _mm512_cmp_ps_mask(a, _mm512_set1_ps(0x1p-6f), _CMP_LT_OQ), small);
    code = _mm512_mask_mov_epi32(code, _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), _mm512_set1_epi32(0x7f));
    return _mm512_cvtepi32_epi8(_mm512_or_si512(code, sign));
}

#endif
