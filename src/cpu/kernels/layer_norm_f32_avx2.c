/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx2.h"

/* The 16 partial sums are two vectors: v = 0 and 1 hold channels 0 .. 7 and 8 .. 15 of every 16. */
void oct_layer_norm_f32_avx2(const oct_layer_norm_f32 *n) {
    const float count = (float)n->channels;
    for (int64_t r = 0; r < n->rows; r++) {
        const float *in = n->in + r * n->in_stride;
        float *out = n->out + r * n->out_stride;
        __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, squares[2] = {sum[0], sum[1]};
        for (int64_t c = 0; c < n->channels; c += 16)
            for (int v = 0; v < 2; v++)
                sum[v] = _mm256_add_ps(sum[v], _mm256_maskload_ps(in + c + 8 * v, oct_mask(n->channels - c - 8 * v)));
        const __m256 mean = _mm256_set1_ps(oct_v_fold(sum[0], sum[1]) / count);
        for (int64_t c = 0; c < n->channels; c += 16)
            for (int v = 0; v < 2; v++) {
                const __m256i mask = oct_mask(n->channels - c - 8 * v);
                __m256 d = _mm256_sub_ps(_mm256_maskload_ps(in + c + 8 * v, mask), mean);
                d = _mm256_and_ps(d, _mm256_castsi256_ps(mask));
                squares[v] = _mm256_fmadd_ps(d, d, squares[v]);
            }
        const __m256 scale = _mm256_set1_ps(1.0f / sqrtf(oct_v_fold(squares[0], squares[1]) / count + n->epsilon));
        for (int64_t c = 0; c < n->channels; c += 8) {
            const __m256i mask = oct_mask(n->channels - c);
            const __m256 d = _mm256_mul_ps(_mm256_sub_ps(_mm256_maskload_ps(in + c, mask), mean), scale);
            _mm256_maskstore_ps(
                out + c, mask,
                _mm256_fmadd_ps(d, _mm256_maskload_ps(n->gamma + c, mask), _mm256_maskload_ps(n->beta + c, mask)));
        }
    }
}
