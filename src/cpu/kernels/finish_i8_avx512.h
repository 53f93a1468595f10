/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512: the end of int8 products (finish_i8.h), sixteen sums at a time. */
#ifndef OCT_CPU_KERNELS_FINISH_I8_AVX512_H
#define OCT_CPU_KERNELS_FINISH_I8_AVX512_H

#include "cpu/kernels/finish_i8.h"
#include "cpu/kernels/stored_avx512.h"

/* A bounded code before it is cut. */
OCT_INLINE __m512i oct_v_code(__m512i sum, __m512 scale, __m512 bias, __m512 inverse) {
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, bias), inverse));
}

/* Four vectors of codes cut to [low, top]: lane by lane, four of a, then of b, c and d. */
OCT_INLINE __m512i oct_v_pack_codes(const __m512i v[4], __m512i low, __m512i top) {
    const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    return _mm512_min_epi8(top, _mm512_max_epi8(low, bytes));
}

/* Activation: GELU and sigmoid want registers of their own, so callers choose where they stand. */
OCT_INLINE __m512 oct_v_cut(oct_activation activation, __m512 x) {
    if (activation == OCT_ACTIVATION_NONE) return x;
    const float top = activation == OCT_ACTIVATION_RELU6 ? 6.0f : INFINITY;
    return _mm512_min_ps(_mm512_set1_ps(top), _mm512_max_ps(_mm512_setzero_ps(), x));
}

#endif
