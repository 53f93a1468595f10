/* SPDX-License-Identifier: Apache-2.0 */
/* One output row of a convolution in groups, int8 times int8, by the rule of graph/stored.h; depthwise if depth is 1:
 *
 *     sum = sum over i, j, k of in[top + i][x step - pad + j][first(o) + k] w[o][i][j][k]         exact
 *     v[x][o] = activation(fmaf((float)sum, scales[o], bias[o]) + residual[x][o])
 *     out[x][o] = v, and codes[x][o] = v as int8; either may be NULL                   x < out_width, o < outputs
 *
 * k < depth, first(o) the first channel of o's group. What lies outside the picture counts as 0. residual may be out's
 * own memory.
 *
 * Bodies that multiply a pair or four of codes at once take their weights, scales and biases in blocks of channels,
 * each block in the order in which unpacking bytes deals them out (oct_depthwise_i8_channel), zeros beyond the last:
 *
 *     C       weights [o][i][j][k], scales and bias by channel
 *     AVX2    blocks of 16: int16 weights [j][pair of rows: 0 and 1, 2 and none][2 vectors][8][2]
 *     VNNI    blocks of 64: int8 weights [j][4 vectors][16][row 0, 1, 2, none] and offsets, -128 times the sum of a
 *             channel's weights, since this body takes codes + 128. A last block of at most OCT_DEPTHWISE_I8_HALF
 *             channels holds them twice, 32 apart */
#ifndef OCT_CPU_KERNELS_DEPTHWISE_I8_H
#define OCT_CPU_KERNELS_DEPTHWISE_I8_H

#include "cpu/kernels/finish_i8.h"

#define OCT_DEPTHWISE_I8_HALF 32

typedef struct oct_depthwise_i8 {
    const int8_t *picture;                        /* row 0 */
    int64_t height, width, row_stride, in_stride; /* codes */
    int64_t top;                                  /* input row under kernel row 0, may be outside */
    int64_t kernel_h, kernel_w, step, pad;
    int64_t depth, outputs, group; /* outputs a group */
    const void *weights;
    const float *scales, *bias;
    const int32_t *offsets;
    const float *residual; /* NULL: none */
    int64_t residual_stride;
    float *out;
    int64_t out_width, out_stride;
    int8_t *codes;
    int64_t code_stride;
    oct_finish_i8 finish;
} oct_depthwise_i8;

/* The channel, within its block, at place `at` of a block of `lanes` lanes of 16 bytes: vectors of `lanes` x 4. */
static inline int oct_depthwise_i8_channel(int at, int lanes) {
    const int vector = at / (4 * lanes), lane = at / 4 % lanes;
    return lane * 4 * lanes + vector * 4 + at % 4;
}

typedef void oct_depthwise_i8_body(const oct_depthwise_i8 *d);

#endif
