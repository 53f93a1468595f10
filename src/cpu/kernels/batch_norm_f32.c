/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "cpu/kernels/kernels.h"

void oct_batch_norm_f32_c(const oct_batch_norm_f32 *b) {
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t c = 0; c < b->channels; c++)
            b->out[r * b->out_stride + c] = fmaf(b->in[r * b->in_stride + c], b->scale[c], b->shift[c]);
}
