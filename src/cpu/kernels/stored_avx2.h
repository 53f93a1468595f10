/* SPDX-License-Identifier: Apache-2.0 */
/* AVX2: the rounding of graph/stored.h, eight numbers at a time; the same bits. */
#ifndef OCT_CPU_KERNELS_STORED_AVX2_H
#define OCT_CPU_KERNELS_STORED_AVX2_H

#include "cpu/kernels/vector_avx2.h"

/* Eight signed numbers of a byte each, the first `count` of them stored. */
OCT_INLINE void oct_v_store_bytes(uint8_t *out, __m256i codes, int64_t count) {
    const __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
    uint8_t bytes[16];
    _mm_storeu_si128((__m128i *)(void *)bytes, _mm_packs_epi16(pairs, pairs));
    memcpy(out, bytes, count >= 8 ? 8 : (size_t)count);
}

OCT_INLINE __m256i oct_v_int8(__m256 x, __m256 inverse) {
    const __m256 y = _mm256_mul_ps(x, inverse);
    const __m256 cut = _mm256_min_ps(_mm256_set1_ps(127.0f), _mm256_max_ps(_mm256_set1_ps(-127.0f), y));
    return _mm256_and_si256(_mm256_cvtps_epi32(cut), _mm256_castps_si256(_mm256_cmp_ps(y, y, _CMP_ORD_Q)));
}

/* ---- what round_f32_rows.h is written in */

typedef __m256 oct_v;
#define OCT_V_WIDTH 8

OCT_INLINE oct_v oct_v_set(float x) {
    return _mm256_set1_ps(x);
}
OCT_INLINE oct_v oct_v_load(const float *from, int64_t count) {
    return count >= 8 ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, oct_mask(count));
}
OCT_INLINE void oct_v_store(float *to, int64_t count, oct_v x) {
    if (count >= 8)
        _mm256_storeu_ps(to, x);
    else
        _mm256_maskstore_ps(to, oct_mask(count), x);
}
OCT_INLINE oct_v oct_v_mul(oct_v a, oct_v b) {
    return _mm256_mul_ps(a, b);
}
OCT_INLINE oct_v oct_v_div(oct_v a, oct_v b) {
    return _mm256_div_ps(a, b);
}
OCT_INLINE void oct_v_store_int8(int8_t *to, int64_t count, oct_v x, oct_v inverse) {
    oct_v_store_bytes((uint8_t *)to, oct_v_int8(x, inverse), count);
}
OCT_INLINE oct_v oct_v_round_int8(oct_v x, oct_v inverse) {
    return _mm256_cvtepi32_ps(oct_v_int8(x, inverse));
}
OCT_INLINE oct_v oct_v_round_uint8(oct_v x, oct_v inverse, int zero_point) {
    const __m256 y = _mm256_mul_ps(x, inverse);
    const __m256 cut = _mm256_min_ps(_mm256_set1_ps(255.0f), _mm256_max_ps(_mm256_set1_ps(-255.0f), y));
    const __m256i code =
        _mm256_and_si256(_mm256_cvtps_epi32(cut), _mm256_castps_si256(_mm256_cmp_ps(y, y, _CMP_ORD_Q)));
    const __m256i low = _mm256_set1_epi32(-zero_point), high = _mm256_set1_epi32(255 - zero_point);
    return _mm256_cvtepi32_ps(_mm256_min_epi32(high, _mm256_max_epi32(low, code)));
}
OCT_INLINE oct_v oct_v_round_fp16(oct_v x) {
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
/* The upper half, rounded by what is cut off; a NaN comes through. */
OCT_INLINE oct_v oct_v_round_bf16(oct_v x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256 y = _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32((int)0xffff0000u)));
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
/* Cut at `most`; then a number of y's own binade, at least `least`'s, is added and taken off again that leaves steps of
 * `shift` = 1.5 times a power of two less: 1.5 so that both signs stay in the binade. Zeros keep their sign. */
OCT_INLINE oct_v oct_v_round_minifloat(oct_v y, float most, float least, float shift) {
    const __m256 cut = _mm256_min_ps(_mm256_set1_ps(most), _mm256_max_ps(_mm256_set1_ps(-most), y));
    const __m256 power = _mm256_and_ps(cut, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000)));
    const __m256 added = _mm256_mul_ps(_mm256_max_ps(power, _mm256_set1_ps(least)), _mm256_set1_ps(shift));
    const __m256 r = _mm256_sub_ps(_mm256_add_ps(cut, added), added);
    return _mm256_or_ps(r, _mm256_and_ps(cut, _mm256_set1_ps(-0.0f)));
}
/* Magnitudes, of all or of the finite alone (the others count as 0). */
OCT_INLINE oct_v oct_v_magnitude(oct_v x, bool finite) {
    const __m256i bits = _mm256_castps_si256(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x));
    if (!finite) return _mm256_castsi256_ps(bits);
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), bits)));
}
OCT_INLINE oct_v oct_v_larger(oct_v a, oct_v b) { /* of magnitudes, as bits */
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
OCT_INLINE float oct_v_largest(oct_v x) {
    uint32_t lanes[8], most = 0;
    memcpy(lanes, &x, sizeof lanes);
    for (int i = 0; i < 8; i++) most = lanes[i] > most ? lanes[i] : most;
    float largest;
    memcpy(&largest, &most, sizeof largest);
    return largest;
}

#endif
