/* SPDX-License-Identifier: Apache-2.0 */
/* A batch norm that was not folded: out[c] = fmaf(in[c], scale[c], shift[c]), where scale = gamma / sqrt(variance +
 * epsilon) and shift = beta - mean scale come from double at packing. */
#ifndef OCT_CPU_KERNELS_BATCH_NORM_F32_H
#define OCT_CPU_KERNELS_BATCH_NORM_F32_H

#include <stdint.h>

typedef struct oct_batch_norm_f32 {
    const float *in, *scale, *shift;
    float *out;
    int64_t rows, channels, in_stride, out_stride;
} oct_batch_norm_f32;

typedef void oct_batch_norm_f32_body(const oct_batch_norm_f32 *b);

#endif
