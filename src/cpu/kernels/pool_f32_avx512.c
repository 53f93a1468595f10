/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx512.h"

void oct_pool_f32_avx512(const oct_pool_f32 *p) {
    const __m512 count = _mm512_set1_ps((float)(p->height * p->width));
    for (int64_t c = 0; c < p->channels; c += 16) {
        const __mmask16 mask = oct_mask(p->channels - c);
        const float *in = p->in + c;
        __m512 total = _mm512_setzero_ps();
        for (int64_t y = 0; y < p->height; y++) {
            __m512 sum = _mm512_setzero_ps();
            for (int64_t x = 0; x < p->width; x++, in += p->in_stride)
                sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, in));
            total = _mm512_add_ps(total, sum);
        }
        _mm512_mask_storeu_ps(p->out + c, mask, _mm512_div_ps(total, count));
    }
}
