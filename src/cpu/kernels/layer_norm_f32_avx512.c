/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx512.h"

void oct_layer_norm_f32_avx512(const oct_layer_norm_f32 *n) {
    const float count = (float)n->channels;
    for (int64_t r = 0; r < n->rows; r++) {
        const float *in = n->in + r * n->in_stride;
        float *out = n->out + r * n->out_stride;
        __m512 sum = _mm512_setzero_ps(), squares = _mm512_setzero_ps();
        for (int64_t c = 0; c < n->channels; c += 16)
            sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(oct_mask(n->channels - c), in + c));
        const __m512 mean = _mm512_set1_ps(oct_v_fold(sum) / count);
        for (int64_t c = 0; c < n->channels; c += 16) {
            const __mmask16 mask = oct_mask(n->channels - c);
            const __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, in + c), mean);
            squares = _mm512_mask3_fmadd_ps(d, d, squares, mask);
        }
        const __m512 scale = _mm512_set1_ps(1.0f / sqrtf(oct_v_fold(squares) / count + n->epsilon));
        for (int64_t c = 0; c < n->channels; c += 16) {
            const __mmask16 mask = oct_mask(n->channels - c);
            const __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, in + c), mean);
            _mm512_mask_storeu_ps(out + c, mask,
                                  _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_maskz_loadu_ps(mask, n->gamma + c),
                                                  _mm512_maskz_loadu_ps(mask, n->beta + c)));
        }
    }
}
