/* SPDX-License-Identifier: Apache-2.0 */
/* Rows moved from one place to another, as they are. */
#ifndef OCT_CPU_KERNELS_COPY_F32_H
#define OCT_CPU_KERNELS_COPY_F32_H

#include <stdint.h>

typedef struct oct_copy_f32 {
    const float *in;
    float *out;
    int64_t rows, channels, in_stride, out_stride;
} oct_copy_f32;

typedef void oct_copy_f32_body(const oct_copy_f32 *m);

#endif
