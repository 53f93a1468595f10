/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

void oct_pool_f32_c(const oct_pool_f32 *p) {
    const float count = (float)(p->height * p->width);
    for (int64_t c = 0; c < p->channels; c++) {
        float total = 0.0f;
        for (int64_t y = 0; y < p->height; y++) {
            float sum = 0.0f;
            for (int64_t x = 0; x < p->width; x++) sum += p->in[(y * p->width + x) * p->in_stride + c];
            total += sum;
        }
        p->out[c] = total / count;
    }
}
