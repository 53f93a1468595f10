/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "cpu/kernels/kernels.h"

static float fold(float *lane) {
    for (int half = OCT_LAYER_NORM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

void oct_layer_norm_f32_c(const oct_layer_norm_f32 *n) {
    const float count = (float)n->channels;
    for (int64_t r = 0; r < n->rows; r++) {
        const float *in = n->in + r * n->in_stride;
        float *out = n->out + r * n->out_stride;
        float sum[OCT_LAYER_NORM_LANES] = {0}, squares[OCT_LAYER_NORM_LANES] = {0};
        for (int64_t c = 0; c < n->channels; c++) sum[c % OCT_LAYER_NORM_LANES] += in[c];
        const float mean = fold(sum) / count;
        for (int64_t c = 0; c < n->channels; c++) {
            const float d = in[c] - mean;
            squares[c % OCT_LAYER_NORM_LANES] = fmaf(d, d, squares[c % OCT_LAYER_NORM_LANES]);
        }
        const float scale = 1.0f / sqrtf(fold(squares) / count + n->epsilon);
        for (int64_t c = 0; c < n->channels; c++) out[c] = fmaf((in[c] - mean) * scale, n->gamma[c], n->beta[c]);
    }
}
