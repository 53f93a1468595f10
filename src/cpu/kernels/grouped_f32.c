/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/activate.h"

static float window(const oct_grouped_f32 *g, int64_t left, int64_t o) {
    const int64_t depth = g->channels / g->groups;
    const int64_t first = o / (g->outputs / g->groups) * depth;
    const float *weights = g->weights + o * g->kernel_h * g->kernel_w * depth;
    float sum = g->bias[o];
    for (int64_t i = 0; i < g->kernel_h; i++) {
        const int64_t y = g->top + i;
        if (y < 0 || y >= g->height) continue;
        for (int64_t j = 0; j < g->kernel_w; j++) {
            if (left + j < 0 || left + j >= g->width) continue;
            const float *in = g->picture + y * g->row_stride + (left + j) * g->in_stride + first;
            for (int64_t k = 0; k < depth; k++) sum = fmaf(in[k], weights[(i * g->kernel_w + j) * depth + k], sum);
        }
    }
    return sum;
}

void oct_grouped_f32_c(const oct_grouped_f32 *g) {
    for (int64_t x = 0; x < g->out_width; x++) {
        for (int64_t o = 0; o < g->outputs; o++) {
            float sum = window(g, x * g->step - g->pad, o);
            if (g->residual != NULL) sum += g->residual[x * g->residual_stride + o];
            g->out[x * g->out_stride + o] = oct_activate(g->activation, sum);
        }
    }
}
