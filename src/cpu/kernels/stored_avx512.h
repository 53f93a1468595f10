/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512: the rounding of graph/stored.h, sixteen numbers at a time; the same bits. */
#ifndef OCT_CPU_KERNELS_STORED_AVX512_H
#define OCT_CPU_KERNELS_STORED_AVX512_H

#include "cpu/kernels/vector_avx512.h"

/* int8 codes, as round_f32_rows.h and products of int8 store them. */
OCT_INLINE __m512i oct_v_int8_wide(__m512 x, __m512 inverse) {
    const __m512 y = _mm512_mul_ps(x, inverse);
    const __m512 cut = _mm512_min_ps(_mm512_set1_ps(127.0f), _mm512_max_ps(_mm512_set1_ps(-127.0f), y));
    return _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), cut);
}
OCT_INLINE __m128i oct_v_int8(__m512 x, __m512 inverse) {
    return _mm512_cvtepi32_epi8(oct_v_int8_wide(x, inverse));
}

/* ---- what round_f32_rows.h is written in */

typedef __m512 oct_v;
#define OCT_V_WIDTH 16

OCT_INLINE oct_v oct_v_set(float x) {
    return _mm512_set1_ps(x);
}
OCT_INLINE oct_v oct_v_load(const float *from, int64_t count) {
    return _mm512_maskz_loadu_ps(oct_mask(count), from);
}
OCT_INLINE void oct_v_store(float *to, int64_t count, oct_v x) {
    _mm512_mask_storeu_ps(to, oct_mask(count), x);
}
OCT_INLINE oct_v oct_v_mul(oct_v a, oct_v b) {
    return _mm512_mul_ps(a, b);
}
OCT_INLINE oct_v oct_v_div(oct_v a, oct_v b) {
    return _mm512_div_ps(a, b);
}
OCT_INLINE void oct_v_store_int8(int8_t *to, int64_t count, oct_v x, oct_v inverse) {
    _mm_mask_storeu_epi8(to, oct_mask(count), oct_v_int8(x, inverse));
}
OCT_INLINE oct_v oct_v_round_int8(oct_v x, oct_v inverse) {
    return _mm512_cvtepi32_ps(oct_v_int8_wide(x, inverse));
}
OCT_INLINE oct_v oct_v_round_uint8(oct_v x, oct_v inverse, int zero_point) {
    const __m512 y = _mm512_mul_ps(x, inverse);
    const __m512 cut = _mm512_min_ps(_mm512_set1_ps(255.0f), _mm512_max_ps(_mm512_set1_ps(-255.0f), y));
    const __m512i code = _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), cut);
    const __m512i low = _mm512_set1_epi32(-zero_point), high = _mm512_set1_epi32(255 - zero_point);
    return _mm512_cvtepi32_ps(_mm512_min_epi32(high, _mm512_max_epi32(low, code)));
}
OCT_INLINE oct_v oct_v_round_fp16(oct_v x) {
    return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
/* The upper half, rounded by what is cut off; a NaN comes through. */
OCT_INLINE oct_v oct_v_round_bf16(oct_v x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512 y = _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32((int)0xffff0000u)));
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}
/* Cut at `most`; then a number of y's own binade, at least `least`'s, is added and taken off again that leaves steps of
 * `shift` = 1.5 times a power of two less: 1.5 so that both signs stay in the binade. Zeros keep their sign. */
OCT_INLINE oct_v oct_v_round_minifloat(oct_v y, float most, float least, float shift) {
    const __m512 cut = _mm512_min_ps(_mm512_set1_ps(most), _mm512_max_ps(_mm512_set1_ps(-most), y));
    const __m512i bits = _mm512_castps_si512(cut), sign = _mm512_set1_epi32((int)0x80000000u);
    const __m512 power = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(0x7f800000)));
    const __m512 added = _mm512_mul_ps(_mm512_max_ps(power, _mm512_set1_ps(least)), _mm512_set1_ps(shift));
    const __m512 r = _mm512_sub_ps(_mm512_add_ps(cut, added), added);
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(r), _mm512_and_si512(bits, sign)));
}
/* Magnitudes, of all or of the finite alone (the others count as 0). */
OCT_INLINE oct_v oct_v_magnitude(oct_v x, bool finite) {
    const __m512i bits = _mm512_castps_si512(_mm512_abs_ps(x));
    const __mmask16 good = _mm512_cmplt_epu32_mask(bits, _mm512_set1_epi32(0x7f800000));
    return _mm512_castsi512_ps(finite ? _mm512_maskz_mov_epi32(good, bits) : bits);
}
OCT_INLINE oct_v oct_v_larger(oct_v a, oct_v b) { /* of magnitudes, as bits */
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
OCT_INLINE float oct_v_largest(oct_v x) {
    const uint32_t bits = _mm512_reduce_max_epu32(_mm512_castps_si512(x));
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    return largest;
}

#endif
