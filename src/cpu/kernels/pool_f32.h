/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of a picture's pixels, for each of some channels: out[c] = (sum over y, x of in[y][x][c]) / (height width).
 * Order: x within a picture row from 0, then the rows' sums one after the other from 0. */
#ifndef OCT_CPU_KERNELS_POOL_F32_H
#define OCT_CPU_KERNELS_POOL_F32_H

#include <stdint.h>

typedef struct oct_pool_f32 {
    const float *in;
    int64_t height, width, in_stride; /* floats from a pixel to the next */
    float *out;
    int64_t channels;
} oct_pool_f32;

typedef void oct_pool_f32_body(const oct_pool_f32 *p);

#endif
