/* SPDX-License-Identifier: Apache-2.0 */
/* One output row of a depthwise convolution, all its pixels and channels:
 *
 *     out[x][c] = activation(bias[c] + sum over i, j of in[i][x stride - pad + j][c] weights[i][j][c]  +
 * residual[x][c])
 *
 * in[i] is the input row under kernel row i, NULL where that lies outside the picture; columns outside are left out
 * likewise. Pixels are `stride` floats apart. weights [kernel_h][kernel_w][lanes] and bias [lanes] are padded with
 * zeros to a multiple of 16 channels.
 *
 * Order: the sum starts at bias, takes i = 0 .. and in each j = 0 .. one fmaf each; then + residual, then the
 * activation. residual may be out's own memory. */
#ifndef OCT_CPU_KERNELS_DEPTHWISE_F32_H
#define OCT_CPU_KERNELS_DEPTHWISE_F32_H

#include "graph/graph.h"

#define OCT_DEPTHWISE_SIDE 16 /* the largest kernel height */

typedef struct oct_depthwise_f32 {
    const float *in[OCT_DEPTHWISE_SIDE];
    int kernel_h, kernel_w;
    int64_t width, in_stride; /* of the input row */
    int64_t step, pad;        /* columns from an output pixel to the next; zeros left of the first column */
    int64_t channels, lanes;
    const float *weights, *bias;
    const float *residual; /* NULL: none */
    int64_t residual_stride;
    float *out;
    int64_t out_width, out_stride;
    oct_activation activation;
} oct_depthwise_f32;

typedef void oct_depthwise_f32_body(const oct_depthwise_f32 *d);

#endif
