/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>

#include "cpu/kernels/kernels.h"
#include "graph/math.h"
#include "graph/stored.h"

#define WIDTH 16

static float score(const oct_attention_f32 *t, int r, int64_t key) {
    const float *q = t->q + r * t->q_stride;
    const float *k = t->keys + key / WIDTH * t->depth * WIDTH + key % WIDTH;
    float sum = 0.0f;
    for (int64_t i = 0; i < t->depth; i++) sum = fmaf(q[i], k[i * WIDTH], sum);
    return sum * t->scale;
}

static void attend(const oct_attention_f32 *t, int r, float *p, float *sums) {
    float m = -FLT_MAX, l[OCT_ATTENTION_LANES] = {0};
    const bool rounds = t->probabilities != OCT_FORMAT_FP32;
    for (int64_t j = 0; rounds && j < t->tokens; j++) m = oct_max(m, score(t, r, j));
    for (int64_t first = 0; first < t->tokens; first += OCT_ATTENTION_BLOCK) {
        const int64_t left = t->tokens - first;
        const int64_t keys = left < OCT_ATTENTION_BLOCK ? left : OCT_ATTENTION_BLOCK;
        float top = m;
        for (int64_t j = 0; j < keys; j++) {
            p[j] = score(t, r, first + j);
            top = oct_max(top, p[j]);
        }
        const float a = oct_exp(m - top);
        m = top;
        for (int i = 0; i < OCT_ATTENTION_LANES; i++) l[i] *= a;
        for (int64_t j = 0; j < keys; j++) {
            p[j] = oct_exp(p[j] - m);
            l[j % OCT_ATTENTION_LANES] += p[j];
            if (rounds) p[j] = oct_stored_probability(t->probabilities, p[j]);
        }
        for (int64_t i = 0; i < t->depth; i++) {
            const float *v = t->values + (i / WIDTH * t->tokens + first) * WIDTH + i % WIDTH;
            float sum = first == 0 ? 0.0f : sums[i] * a;
            for (int64_t j = 0; j < keys; j++) sum = fmaf(p[j], v[j * WIDTH], sum);
            sums[i] = sum;
        }
    }
    for (int half = OCT_ATTENTION_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) l[i] += l[i + half];
    const float inverse = 1.0f / l[0];
    for (int64_t i = 0; i < t->depth; i++) t->out[r * t->out_stride + i] = sums[i] * inverse;
}

void oct_attention_f32_c(const oct_attention_f32 *t) {
    for (int r = 0; r < t->rows; r++) attend(t, r, t->scratch, t->scratch + OCT_ATTENTION_BLOCK);
}
