/* SPDX-License-Identifier: Apache-2.0 */
/* A block of rows of int8 codes times one panel of packed int8 weights, by the rule of graph/stored.h:
 *
 *     sum = sum over k of a[r][k] w[j][k]                                    exact
 *     v[r][j] = activation(fmaf((float)sum, s, bias[j]) + residual[r][j])    s = scales[j], or row_scales[r] scales[j]
 *     out[r][j] = v, and codes[r][j] = v as int8 of `inverse`; either may be NULL           r < rows, j < columns
 *
 * Row r of a lies in `segments` pieces of `length` codes: piece s begins at a + r row_stride + s segment_stride. A
 * panel holds each piece's weights [length / unit, rounded up][width][unit], zeros beyond length and columns: `unit`
 * neighbours of K for one column together, 4 or, for AVX2, 2. bias and scales hold `width` floats.
 *
 * VNNI multiplies unsigned by signed: its panels hold w + 128, and row r's sum starts at -128 times the sum of a[r],
 * which is in `offsets` [rows]. Other bodies do not look at it. residual may be out's own memory. */
#ifndef OCT_CPU_KERNELS_GEMM_I8_H
#define OCT_CPU_KERNELS_GEMM_I8_H

#include "graph/graph.h"

typedef struct oct_gemm_i8 {
    const int8_t *a;
    int64_t row_stride, segment_stride;
    int64_t segments, length;
    const uint8_t *panel;
    const float *bias, *scales;
    const float *row_scales; /* NULL: none */
    const int32_t *offsets;
    const float *residual; /* NULL: none */
    int64_t residual_stride;
    float *out;
    int64_t out_stride;
    int8_t *codes;
    int64_t code_stride;
    float inverse;
    int64_t rows;
    int columns;
    oct_activation activation;
} oct_gemm_i8;

typedef void oct_gemm_i8_body(const oct_gemm_i8 *g);

#endif
