/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx512.h"

/* Exponent and mantissa as those of a float, 2^-120 too small, which the multiplication makes good: subnormals too. */
OCT_INLINE __m512 from_e4m3(__m128i codes) {
    const __m512i wide = _mm512_cvtepu8_epi32(codes);
    const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi32(0x7f));
    const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(wide, _mm512_set1_epi32(0x80)), 24);
    const __m512 x = _mm512_castsi512_ps(_mm512_slli_epi32(magnitude, 20));
    __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(0x1p120f));
    y = _mm512_mask_mov_ps(y, _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7f)), _mm512_set1_ps(NAN));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(y), sign));
}

OCT_INLINE __m512 numbers(const oct_dequantize_f32 *q, int64_t at, __mmask16 mask, __m512 scale) {
    if (q->format == OCT_FORMAT_INT8) {
        const __m128i codes = _mm_maskz_loadu_epi8(mask, (const int8_t *)q->x + at);
        return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)), scale);
    }
    if (q->format == OCT_FORMAT_E4M3)
        return _mm512_mul_ps(from_e4m3(_mm_maskz_loadu_epi8(mask, (const uint8_t *)q->x + at)), scale);
    const __m256i codes = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)q->x + at);
    if (q->format == OCT_FORMAT_FP16) return _mm512_cvtph_ps(codes);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
}

void oct_dequantize_f32_avx512(const oct_dequantize_f32 *q) {
    for (int64_t r = 0; r < q->rows; r++) {
        const __m512 scale = _mm512_set1_ps(q->scales != NULL ? q->scales[r] : q->scale);
        for (int64_t c = 0; c < q->columns; c += 16) {
            const __mmask16 mask = oct_mask(q->columns - c);
            _mm512_mask_storeu_ps(q->out + r * q->out_stride + c, mask, numbers(q, r * q->x_stride + c, mask, scale));
        }
    }
}
