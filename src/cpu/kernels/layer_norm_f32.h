/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm over the channels of each row:
 *
 *     out[c] = (in[c] - mean) / sqrt(variance + epsilon) gamma[c] + beta[c]
 *
 * Order: 16 partial sums, sum i of the channels c = i mod 16, folded i + 8, i + 4, i + 2, i + 1, divided by the
 * channels; the variance likewise from fmaf(d, d, sum), d = in[c] - mean; then fmaf(d r, gamma, beta), r = 1 /
 * sqrt(variance + epsilon). */
#ifndef OCT_CPU_KERNELS_LAYER_NORM_F32_H
#define OCT_CPU_KERNELS_LAYER_NORM_F32_H

#include <stdint.h>

#define OCT_LAYER_NORM_LANES 16

typedef struct oct_layer_norm_f32 {
    const float *in;
    int64_t in_stride;
    const float *gamma, *beta;
    float epsilon;
    float *out;
    int64_t out_stride;
    int64_t rows, channels;
} oct_layer_norm_f32;

typedef void oct_layer_norm_f32_body(const oct_layer_norm_f32 *n);

#endif
