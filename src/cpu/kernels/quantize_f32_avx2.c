/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/stored_avx2.h"
#include "graph/stored.h"

static float row_scale(oct_format format, const float *x, int64_t count) {
    const __m256i infinite = _mm256_set1_epi32(0x7f800000);
    __m256i most = _mm256_setzero_si256();
    for (int64_t c = 0; c < count; c += 8) {
        const __m256 v = _mm256_maskload_ps(x + c, oct_mask(count - c));
        const __m256i bits = _mm256_castps_si256(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), v));
        most = _mm256_max_epi32(most, _mm256_and_si256(bits, _mm256_cmpgt_epi32(infinite, bits)));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, _mm256_castsi256_ps(most));
    float amax = 0;
    for (int i = 0; i < 8; i++) amax = lanes[i] > amax ? lanes[i] : amax;
    return oct_stored_row_scale(format, &amax, 1);
}

static void row(const oct_quantize_f32 *q, const float *x, int64_t at, float inverse) {
    const __m256 factor = _mm256_set1_ps(inverse);
    for (int64_t c = 0; c < q->columns; c += 8) {
        const int64_t count = q->columns - c;
        const __m256 v = _mm256_maskload_ps(x + c, oct_mask(count));
        if (q->format == OCT_FORMAT_INT8) {
            oct_v_store_bytes((uint8_t *)q->out + at + c, oct_v_int8(v, factor), count);
        } else if (q->format == OCT_FORMAT_E4M3) {
            oct_v_store_bytes((uint8_t *)q->out + at + c, oct_v_e4m3(v, factor), count);
        } else {
            const __m128i codes = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
            memcpy((uint16_t *)q->out + at + c, &codes, count >= 8 ? 16 : (size_t)count * 2);
        }
    }
}

void oct_quantize_f32_avx2(const oct_quantize_f32 *q) {
    if (q->format == OCT_FORMAT_BF16) {
        oct_quantize_f32_c(q);
        return;
    }
    for (int64_t r = 0; r < q->rows; r++) {
        const float *x = q->x + r * q->x_stride;
        if (q->scales != NULL) q->scales[r] = row_scale(q->format, x, q->columns);
        row(q, x, r * q->out_stride, q->scales != NULL ? 1.0f / q->scales[r] : q->inverse);
    }
}
