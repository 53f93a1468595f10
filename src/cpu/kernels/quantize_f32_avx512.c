/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/stored_avx512.h"
#include "graph/stored.h"

static float row_scale(oct_format format, const float *x, int64_t count) {
    __m512i most = _mm512_setzero_si512();
    for (int64_t c = 0; c < count; c += 16) {
        const __m512i bits = _mm512_castps_si512(_mm512_abs_ps(_mm512_maskz_loadu_ps(oct_mask(count - c), x + c)));
        const __mmask16 finite = _mm512_cmplt_epu32_mask(bits, _mm512_set1_epi32(0x7f800000));
        most = _mm512_mask_max_epu32(most, finite, most, bits);
    }
    const float amax = _mm512_reduce_max_ps(_mm512_castsi512_ps(most));
    return oct_stored_row_scale(format, &amax, 1);
}

static void row(const oct_quantize_f32 *q, const float *x, int64_t at, float inverse) {
    const __m512 factor = _mm512_set1_ps(inverse);
    for (int64_t c = 0; c < q->columns; c += 16) {
        const __mmask16 mask = oct_mask(q->columns - c);
        const __m512 v = _mm512_maskz_loadu_ps(mask, x + c);
        if (q->format == OCT_FORMAT_INT8)
            _mm_mask_storeu_epi8((int8_t *)q->out + at + c, mask, oct_v_int8(v, factor));
        else if (q->format == OCT_FORMAT_E4M3)
            _mm_mask_storeu_epi8((int8_t *)q->out + at + c, mask, oct_v_e4m3(v, factor));
        else
            _mm256_mask_storeu_epi16((uint16_t *)q->out + at + c, mask, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
}

void oct_quantize_f32_avx512(const oct_quantize_f32 *q) {
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
