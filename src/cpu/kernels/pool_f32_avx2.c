/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx2.h"

void oct_pool_f32_avx2(const oct_pool_f32 *p) {
    const __m256 count = _mm256_set1_ps((float)(p->height * p->width));
    for (int64_t c = 0; c < p->channels; c += 8) {
        const __m256i mask = oct_mask(p->channels - c);
        const float *in = p->in + c;
        __m256 total = _mm256_setzero_ps();
        for (int64_t y = 0; y < p->height; y++) {
            __m256 sum = _mm256_setzero_ps();
            for (int64_t x = 0; x < p->width; x++, in += p->in_stride)
                sum = _mm256_add_ps(sum, _mm256_maskload_ps(in, mask));
            total = _mm256_add_ps(total, sum);
        }
        _mm256_maskstore_ps(p->out + c, mask, _mm256_div_ps(total, count));
    }
}
