/* SPDX-License-Identifier: Apache-2.0 */
/* AVX2: the end of int8 products (finish_i8.h), eight sums at a time. */
#ifndef OCT_CPU_KERNELS_FINISH_I8_AVX2_H
#define OCT_CPU_KERNELS_FINISH_I8_AVX2_H

#include "cpu/kernels/finish_i8.h"
#include "cpu/kernels/stored_avx2.h"

/* A bounded code before it is cut. */
OCT_INLINE __m256i oct_v_code(__m256i sum, __m256 scale, __m256 bias, __m256 inverse) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, bias), inverse));
}

/* Four vectors of codes cut to what `finish` says: lane by lane, four of a, then of b, c and d. */
OCT_INLINE __m256i oct_v_pack_codes(const oct_finish_i8 *finish, __m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    const __m256i low = _mm256_set1_epi8(finish->low), top = _mm256_set1_epi8(finish->top);
    return _mm256_min_epi8(top, _mm256_max_epi8(low, bytes));
}

/* The first `count` of 16 codes. */
OCT_INLINE void oct_v_store_codes(int8_t *to, __m128i codes, int64_t count) {
    if (count >= 16) {
        _mm_storeu_si128((__m128i *)(void *)to, codes);
        return;
    }
    int8_t bytes[16];
    _mm_storeu_si128((__m128i *)(void *)bytes, codes);
    memcpy(to, bytes, (size_t)count);
}

#endif
