/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/activate.h"
#include "graph/stored.h"

static int32_t window(const oct_depthwise_i8 *d, int64_t left, int64_t o) {
    const int64_t first = o / d->group * d->depth;
    const int8_t *weights = (const int8_t *)d->weights + o * d->kernel_h * d->kernel_w * d->depth;
    int32_t sum = 0;
    for (int64_t i = 0; i < d->kernel_h; i++) {
        const int64_t y = d->top + i;
        if (y < 0 || y >= d->height) continue;
        for (int64_t j = 0; j < d->kernel_w; j++) {
            if (left + j < 0 || left + j >= d->width) continue;
            const int8_t *in = d->picture + y * d->row_stride + (left + j) * d->in_stride + first;
            const int8_t *w = weights + (i * d->kernel_w + j) * d->depth;
            for (int64_t k = 0; k < d->depth; k++) sum += (int32_t)in[k] * (int32_t)w[k];
        }
    }
    return sum;
}

void oct_depthwise_i8_c(const oct_depthwise_i8 *d) {
    for (int64_t x = 0; x < d->out_width; x++) {
        for (int64_t o = 0; o < d->outputs; o++) {
            float v = fmaf((float)window(d, x * d->step - d->pad, o), d->scales[o], d->bias[o]);
            if (d->residual != NULL) v += d->residual[x * d->residual_stride + o];
            v = oct_activate(d->finish.activation, v);
            if (d->out != NULL) d->out[x * d->out_stride + o] = v;
            if (d->codes != NULL) d->codes[x * d->code_stride + o] = oct_stored_int8(v, d->finish.inverse);
        }
    }
}
