/* SPDX-License-Identifier: Apache-2.0 */
/* One output row of a convolution with any number of groups: the body for what no better one takes.
 *
 *     out[x][o] = activation(bias[o] + sum over i, j, k of in[i][x step - pad + j][first(o) + k] weights[o][i][j][k] +
 * residual)
 *
 * weights as in the graph, k < channels / groups, first(o) the first channel of o's group. Rows and columns outside the
 * picture are left out. Order: bias, then i, j, k, one fmaf each; residual; activation. */
#ifndef OCT_CPU_KERNELS_GROUPED_F32_H
#define OCT_CPU_KERNELS_GROUPED_F32_H

#include "graph/graph.h"

typedef struct oct_grouped_f32 {
    const float *picture; /* row 0 */
    int64_t height, width, row_stride, in_stride;
    int64_t top; /* input row under kernel row 0, may be outside */
    int64_t kernel_h, kernel_w, step, pad;
    int64_t channels, groups, outputs;
    const float *weights, *bias;
    const float *residual; /* NULL: none */
    int64_t residual_stride;
    float *out;
    int64_t out_width, out_stride;
    oct_activation activation;
} oct_grouped_f32;

typedef void oct_grouped_f32_body(const oct_grouped_f32 *g);

#endif
