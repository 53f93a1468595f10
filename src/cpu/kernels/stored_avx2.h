/* SPDX-License-Identifier: Apache-2.0 */
/* AVX2: the rounding of graph/stored.h, eight numbers at a time; the same codes. */
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

/* As signed bytes. Below 2^-6 the codes count 2^-9; from there on they are a float's upper bits, rounded, with another
 * bias. */
OCT_INLINE __m256i oct_v_e4m3(__m256 x, __m256 inverse) {
    const __m256 y = _mm256_mul_ps(x, inverse);
    const __m256i sign =
        _mm256_and_si256(_mm256_srai_epi32(_mm256_castps_si256(y), 31), _mm256_set1_epi32((int)0xffffff80u));
    const __m256 a = _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), y), _mm256_set1_ps(448.0f));
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7ffff)), odd);
    const __m256i normal = _mm256_sub_epi32(_mm256_srli_epi32(up, 20), _mm256_set1_epi32(120 << 3));
    const __m256i small = _mm256_cvtps_epi32(_mm256_mul_ps(a, _mm256_set1_ps(512.0f)));
    const __m256 less = _mm256_cmp_ps(a, _mm256_set1_ps(0x1p-6f), _CMP_LT_OQ);
    __m256 code = _mm256_blendv_ps(_mm256_castsi256_ps(normal), _mm256_castsi256_ps(small), less);
    code = _mm256_blendv_ps(code, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f)), _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
    return _mm256_or_si256(_mm256_castps_si256(code), sign);
}

#endif
