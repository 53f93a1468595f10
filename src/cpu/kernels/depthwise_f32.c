/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/activate.h"

void oct_depthwise_f32_c(const oct_depthwise_f32 *d) {
    for (int64_t x = 0; x < d->out_width; x++) {
        const int64_t left = x * d->step - d->pad;
        for (int64_t c = 0; c < d->channels; c++) {
            float sum = d->bias[c];
            for (int i = 0; i < d->kernel_h; i++) {
                if (d->in[i] == NULL) continue;
                for (int j = 0; j < d->kernel_w; j++) {
                    if (left + j < 0 || left + j >= d->width) continue;
                    sum = fmaf(d->in[i][(left + j) * d->in_stride + c],
                               d->weights[(i * d->kernel_w + j) * d->lanes + c], sum);
                }
            }
            if (d->residual != NULL) sum += d->residual[x * d->residual_stride + c];
            d->out[x * d->out_stride + c] = oct_activate(d->activation, sum);
        }
    }
}
